package chatclient

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"junctor/internal/chat/wire"
	"junctor/internal/rawjson"
	"junctor/internal/terminal"
)

// answer puts what a server asks to the person at the terminal.
func (t *terminalChat) answer(ctx context.Context, q wire.QuestionPayload) error {
	t.endLine()
	t.question = &q
	reply := func(a wire.Action, more map[string]any) error {
		payload := map[string]any{"questionId": q.QuestionID, "action": a}
		for k, v := range more {
			payload[k] = v
		}
		return t.line.send(ctx, "answer", payload)
	}
	if !t.canAsk() {
		t.Note("%s asks a question, but this is not a terminal; it gets no answer.", terminal.OneLine(q.Server))
		return reply(wire.Cancel, nil)
	}
	fmt.Fprintf(t.Err, "%s asks: %s\n", t.Paint(t.Err, terminal.Bold, terminal.OneLine(q.Server)), terminal.Printable(q.Message))
	switch q.Kind {
	case wire.QuestionURL:
		fmt.Fprintf(t.Err, "Open this URL if you trust it and expected it:\n  %s\n", terminal.Printable(q.URL))
		if yes(t.ask1("Have you opened it? [y/N]: ")) {
			return reply(wire.Accept, nil)
		}
		return reply(wire.Decline, nil)
	case wire.QuestionModel:
		for _, line := range q.Prompt {
			fmt.Fprintf(t.Err, "  %s: %s\n", line.Role, strings.ReplaceAll(terminal.Printable(line.Text), "\n", "\n    "))
		}
		switch word := t.ask1(fmt.Sprintf("May %s ask %s this? [y]es, for this [s]ession, [N]o: ", terminal.OneLine(q.Server), terminal.OneLine(q.Model))); {
		case yes(word):
			return reply(wire.Accept, nil)
		case strings.EqualFold(word, "s"):
			return reply(wire.Accept, map[string]any{"scope": wire.ForSession})
		}
		return reply(wire.Decline, nil)
	}
	content, ok := t.fill(q.Schema)
	if !ok {
		return reply(wire.Decline, nil)
	}
	return reply(wire.Accept, map[string]any{"content": content})
}

func (t *terminalChat) ask1(prompt string) string {
	fmt.Fprint(t.Err, prompt)
	return t.typed()
}

func yes(word string) bool { return strings.EqualFold(word, "y") || strings.EqualFold(word, "yes") }

// field is one line of a form.
type field struct {
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Default     json.RawMessage `json:"default"`
	Enum        []string        `json:"enum"`
	OneOf       []choice        `json:"oneOf"`
	Items       *struct {
		Enum  []string `json:"enum"`
		AnyOf []choice `json:"anyOf"`
	} `json:"items"`
}

type choice struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// fill asks for every field of a form; false is a no to the whole.
func (t *terminalChat) fill(schema json.RawMessage) (map[string]any, bool) {
	var required []string
	_ = json.Unmarshal(rawjson.Field(schema, "required"), &required) // without any, none is
	fmt.Fprintln(t.Err, "Press Enter to skip a field or keep its default; type /no to decline.")
	out := map[string]any{}
	for name, raw := range rawjson.Members(rawjson.Field(schema, "properties")) {
		var f field
		if json.Unmarshal(raw, &f) != nil {
			continue // the gateway says what is missing
		}
		for {
			word := t.ask1(f.prompt(name, slices.Contains(required, name)))
			if word == "/no" {
				return nil, false
			}
			value, err := f.value(word)
			if err != nil {
				t.Note("%s", err)
				continue
			}
			if value != nil {
				out[name] = value
			}
			break
		}
	}
	if len(out) == 0 && !yes(t.ask1("Send it? [y/N]: ")) {
		return nil, false
	}
	return out, true
}

func (f field) prompt(name string, required bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "  %s", terminal.OneLine(cmp.Or(f.Title, name)))
	if f.Description != "" {
		fmt.Fprintf(&b, " (%s)", terminal.OneLine(f.Description))
	}
	if of, several := f.choices(); len(of) > 0 {
		var names []string
		for _, c := range of {
			names = append(names, terminal.OneLine(cmp.Or(c.Title, c.Const)))
		}
		fmt.Fprintf(&b, " [%s]", strings.Join(names, ", "))
		if several {
			b.WriteString(", separated by commas")
		}
	} else if f.Type == "boolean" {
		b.WriteString(" [y/n]")
	}
	if len(f.Default) > 0 {
		fmt.Fprintf(&b, ", default %s", terminal.OneLine(string(f.Default)))
	} else if required {
		b.WriteString(" *")
	}
	return b.String() + ": "
}

// choices are the values of a field that has only some, and whether several
// may be chosen.
func (f field) choices() (of []choice, several bool) {
	plain := func(values []string) (out []choice) {
		for _, v := range values {
			out = append(out, choice{Const: v})
		}
		return out
	}
	if f.Items != nil {
		return append(plain(f.Items.Enum), f.Items.AnyOf...), true
	}
	return append(plain(f.Enum), f.OneOf...), false
}

// value reads what was typed; nil leaves the field out.
func (f field) value(word string) (any, error) {
	if word == "" {
		if len(f.Default) > 0 {
			return f.Default, nil
		}
		return nil, nil
	}
	of, several := f.choices()
	pick := func(word string) (any, error) {
		for _, c := range of {
			if strings.EqualFold(word, c.Const) || strings.EqualFold(word, c.Title) {
				return c.Const, nil
			}
		}
		return nil, fmt.Errorf("%q is not one of the choices", word)
	}
	switch {
	case several && len(of) > 0:
		var all []any
		for _, part := range strings.Split(word, ",") {
			v, err := pick(strings.TrimSpace(part))
			if err != nil {
				return nil, err
			}
			all = append(all, v)
		}
		return all, nil
	case len(of) > 0:
		return pick(word)
	case f.Type == "boolean":
		return yes(word), nil
	case f.Type == "integer" || f.Type == "number":
		if _, err := strconv.ParseFloat(word, 64); err != nil || !json.Valid([]byte(word)) {
			return nil, fmt.Errorf("%q is not a number", word)
		}
		return json.Number(word), nil
	}
	return word, nil
}
