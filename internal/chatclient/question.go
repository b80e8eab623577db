package chatclient

import (
	"context"
	"fmt"
	"strings"

	"junctor/internal/chat/wire"
	"junctor/internal/form"
	"junctor/internal/terminal"
)

// answer shows a server's question at the terminal and sends the answer.
func (t *terminalChat) answer(ctx context.Context, q wire.QuestionPayload) error {
	t.endLine()
	t.question = &q
	reply := func(a wire.Action, more map[string]any) error {
		payload := map[string]any{"questionId": q.QuestionID, "action": a}
		for k, v := range more {
			payload[k] = v
		}
		return t.conn.send(ctx, "answer", payload)
	}
	if !t.canAsk() {
		t.Note("%s asks a question, but this is not a terminal; it gets no answer.", terminal.OneLine(q.Server))
		return reply(wire.Cancel, nil)
	}
	fmt.Fprintf(t.Err, "%s asks: %s\n", t.Paint(t.Err, terminal.Bold, terminal.OneLine(q.Server)), terminal.Printable(q.Message))
	switch q.Kind {
	case wire.QuestionURL:
		fmt.Fprintf(t.Err, "Open this URL if you trust it and expected it:\n  %s\n", terminal.Printable(q.URL))
		if yes(t.readLine("Have you opened it? [y/N]: ")) {
			return reply(wire.Accept, nil)
		}
		return reply(wire.Decline, nil)
	case wire.QuestionModel:
		for _, line := range q.Prompt {
			fmt.Fprintf(t.Err, "  %s: %s\n", line.Role, strings.ReplaceAll(terminal.Printable(line.Text), "\n", "\n    "))
		}
		switch word := t.readLine(fmt.Sprintf("May %s ask %s this? [y]es, for this [s]ession, [N]o: ", terminal.OneLine(q.Server), terminal.OneLine(q.Model))); {
		case yes(word):
			return reply(wire.Accept, nil)
		case strings.EqualFold(word, "s"):
			return reply(wire.Accept, map[string]any{"scope": wire.ForSession})
		}
		return reply(wire.Decline, nil)
	}
	content, action, err := form.Fill(ctx, t.Terminal, q.Schema, t.askLine)
	if err != nil {
		return err
	}
	if content == nil {
		return reply(wire.Action(action), nil)
	}
	return reply(wire.Accept, map[string]any{"content": content})
}

// askLine shows a prompt and returns one line; an error means the end of the
// input.
func (t *terminalChat) askLine(prompt string) (string, error) {
	fmt.Fprint(t.Err, prompt)
	line, err := t.input.ReadString('\n')
	if line != "" {
		err = nil
	}
	return strings.TrimSpace(line), err
}

// readLine is askLine, but returns "" at the end of the input.
func (t *terminalChat) readLine(prompt string) string {
	word, _ := t.askLine(prompt) // the end of the input is an empty answer
	return word
}

func yes(word string) bool { return strings.EqualFold(word, "y") || strings.EqualFold(word, "yes") }
