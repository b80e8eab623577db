// Package form asks the user at a terminal for the fields of an MCP
// elicitation.
package form

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"junctor/internal/rawjson"
	"junctor/internal/schema"
	"junctor/internal/terminal"
)

// field is one field of a form.
type field struct {
	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Default     json.RawMessage `json:"default"`
	Enum        []string        `json:"enum"`
	EnumNames   []string        `json:"enumNames"` // used by older servers
	OneOf       []choice        `json:"oneOf"`
	Items       *struct {
		Enum  []string `json:"enum"`
		AnyOf []choice `json:"anyOf"`
	} `json:"items"`

	required bool
	schema   *schema.Schema // nil if it cannot be checked
}

type choice struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// Fill asks for the fields of a form and returns the content as JSON and the
// action: accept, decline or cancel. ask shows a prompt and returns one line of
// input; the end of the input cancels.
func Fill(ctx context.Context, c *terminal.Terminal, requested json.RawMessage, ask func(prompt string) (string, error)) (content json.RawMessage, action string, err error) {
	content, err = fill(ctx, c, requested, ask)
	switch {
	case errors.Is(err, errDeclined):
		return nil, "decline", nil
	case errors.Is(err, errCancelled), errors.Is(err, io.EOF):
		return nil, "cancel", nil
	case err != nil:
		return nil, "", err
	}
	return content, "accept", nil
}

// The errors of a form that is declined or cancelled.
var (
	errDeclined  = errors.New("declined")
	errCancelled = errors.New("cancelled")
)

func fill(ctx context.Context, c *terminal.Terminal, requested json.RawMessage, ask func(prompt string) (string, error)) (json.RawMessage, error) {
	var required []string
	_ = json.Unmarshal(rawjson.Field(requested, "required"), &required) // missing means that no field is required
	fmt.Fprintln(c.Err, "Press Enter to skip a field or keep its default; type /no to decline, /cancel to cancel. Never enter passwords here.")
	out := map[string]json.RawMessage{}
	for name, raw := range rawjson.Members(rawjson.Field(requested, "properties")) {
		var f field
		if json.Unmarshal(raw, &f) != nil {
			continue // the server reports a missing field
		}
		f.required = slices.Contains(required, name)
		// Draft 7 checks formats, which later drafts treat as annotations. If
		// the schema does not compile, checking is left to the server.
		f.schema, _ = schema.Compile(rawjson.SetField(raw, json.RawMessage(`"http://json-schema.org/draft-07/schema#"`), "$schema"))
		for {
			word, err := ask(f.prompt(name))
			switch {
			case err != nil:
				return nil, err
			case word == "/no":
				return nil, errDeclined
			case word == "/cancel":
				return nil, errCancelled
			}
			value, err := f.read(ctx, word)
			if err != nil {
				fmt.Fprintln(c.Err, "    "+terminal.OneLine(err.Error()))
				continue
			}
			if value != nil {
				out[name] = value
			}
			break
		}
	}
	if len(out) == 0 {
		word, err := ask("Send it? [y/N]: ")
		if err != nil {
			return nil, err
		}
		if !yes(word) {
			return nil, errDeclined
		}
	}
	return json.Marshal(out)
}

func yes(word string) bool { return strings.EqualFold(word, "y") || strings.EqualFold(word, "yes") }

// read parses and checks the input and returns the value as JSON; nil omits the
// field.
func (f field) read(ctx context.Context, word string) (json.RawMessage, error) {
	v, err := f.value(word)
	if err != nil {
		return nil, err
	}
	if v == nil {
		if f.required {
			return nil, errors.New("this field is required")
		}
		return nil, nil
	}
	raw, err := json.Marshal(v)
	if err != nil || f.schema == nil {
		return raw, err
	}
	if wrong, err := f.schema.Check(ctx, raw); err == nil && len(wrong) > 0 {
		return nil, errors.New(schema.Summary(wrong))
	}
	return raw, nil
}

func (f field) prompt(name string) string {
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
		fmt.Fprintf(&b, ", default %s", terminal.OneLine(f.defaultText()))
	} else if f.required {
		b.WriteString(" *")
	}
	return b.String() + ": "
}

// defaultText returns the default value as a user would type it.
func (f field) defaultText() string {
	var (
		one     string
		several []string
	)
	if json.Unmarshal(f.Default, &one) == nil {
		several = []string{one}
	} else if json.Unmarshal(f.Default, &several) != nil {
		return string(f.Default)
	}
	of, _ := f.choices()
	if len(of) == 0 {
		return string(f.Default)
	}
	for i, v := range several {
		for _, c := range of {
			if c.Const == v {
				several[i] = cmp.Or(c.Title, v)
			}
		}
	}
	return strings.Join(several, ", ")
}

// choices returns the values that a field allows, if they are limited, and
// whether several may be chosen.
func (f field) choices() (of []choice, several bool) {
	plain := func(values []string, titles ...string) (out []choice) {
		for i, v := range values {
			c := choice{Const: v}
			if i < len(titles) {
				c.Title = titles[i]
			}
			out = append(out, c)
		}
		return out
	}
	if f.Items != nil {
		return append(plain(f.Items.Enum), f.Items.AnyOf...), true
	}
	return append(plain(f.Enum, f.EnumNames...), f.OneOf...), false
}

// value parses the input; nil omits the field.
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
		if !yes(word) && !strings.EqualFold(word, "n") && !strings.EqualFold(word, "no") {
			return nil, fmt.Errorf("%q is not y or n", word)
		}
		return yes(word), nil
	case f.Type == "integer" || f.Type == "number":
		if _, err := strconv.ParseFloat(word, 64); err != nil || !json.Valid([]byte(word)) {
			return nil, fmt.Errorf("%q is not a number", word)
		}
		return json.Number(word), nil
	}
	return word, nil
}
