// Package chatclient is a terminal client for the chat of a gateway: it sends
// what the user types and shows replies, tool calls, approvals and questions as
// they arrive. It reconnects if the connection is lost.
package chatclient

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"junctor/internal/apiclient"
	"junctor/internal/chat/wire"
	"junctor/internal/terminal"
)

// terminalChat is a conversation at a terminal.
type terminalChat struct {
	*terminal.Terminal
	api   apiclient.Client
	model string
	ask   bool // read further messages after the first reply

	conn     *connection
	input    *bufio.Reader
	open     bool                  // the last line of output is incomplete
	begun    bool                  // the gateway has accepted the last message
	failed   bool                  // the last reply was an error
	question *wire.QuestionPayload // the last one answered, in case the answer is refused as invalid
}

// Options configure a conversation.
type Options struct {
	Session string // to continue; "" for a new one
	Model   string // "" for the first one configured
	Message string // the only message; "" reads messages from the terminal
}

// ErrNoReply means that there was no reply and that the reason was already
// printed.
var ErrNoReply = errors.New("no reply")

// Run connects client to the chat of a gateway and runs the conversation until
// the user leaves or the only message is answered.
func Run(ctx context.Context, term *terminal.Terminal, client *http.Client, o Options) error {
	t := &terminalChat{
		Terminal: term, api: apiclient.Client{HTTP: client}, model: o.Model, ask: o.Message == "",
		conn: &connection{client: client, session: o.Session, seq: -1}, input: bufio.NewReader(term.In),
	}
	defer t.conn.close()
	if err := t.conn.dial(ctx); err != nil {
		return err
	}
	if err := t.greet(ctx); err != nil {
		return err
	}
	return t.converse(ctx, o.Message)
}

func (t *terminalChat) converse(ctx context.Context, first string) error {
	var err error
	for message := first; ; message = "" {
		if message == "" {
			if message, err = t.prompt(); err != nil {
				return nil // the end of the input ends the chat
			}
		}
		switch message = strings.TrimSpace(message); {
		case message == "":
			continue
		case message == "/quit" || message == "/exit":
			return nil
		case strings.HasPrefix(message, "/"):
			t.command(ctx, message)
			continue
		}
		if err := t.turn(ctx, message); err != nil {
			return err
		}
		if !t.ask {
			if t.failed {
				return ErrNoReply
			}
			return nil
		}
	}
}

// greet reads the first message and prints the model and unavailable servers.
func (t *terminalChat) greet(ctx context.Context) error {
	var hello wire.ConnectionPayload
	m, err := t.conn.next(ctx)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(m.Payload, &hello); err != nil {
		return err
	}
	if hello.State == "error" {
		return errors.New(hello.Message)
	}
	if t.ask {
		model := hello.Model
		if model == "" {
			model = "no model yet"
		}
		t.Note("%s. Type /help for help, /quit to exit.", terminal.OneLine(model))
	}
	for _, s := range hello.Unavailable {
		t.Note("%s", t.Paint(t.Err, terminal.Yellow, fmt.Sprintf("%s cannot be used now: %s", s.Server, terminal.OneLine(s.Reason))))
	}
	return nil
}

func (t *terminalChat) prompt() (string, error) {
	if t.IsInput {
		fmt.Fprint(t.Out, t.Paint(t.Out, terminal.Bold, "> "))
	}
	line, err := t.input.ReadString('\n')
	if line != "" {
		return line, nil
	}
	return "", err
}

func (t *terminalChat) command(ctx context.Context, line string) {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "/help":
		fmt.Fprintln(t.Out, `/model [ID]   list the models, or switch to another one
/tools        the number of tools
/session      this session's id, to resume it with --session
/quit         exit
While the model answers, Ctrl-C stops it.`)
	case "/session":
		fmt.Fprintln(t.Out, t.conn.session)
	case "/model":
		if rest = strings.TrimSpace(rest); rest != "" {
			t.model = rest
			return
		}
		var list struct {
			Models  []wire.ModelInfo `json:"models"`
			Message string           `json:"message"`
		}
		if err := t.api.Get(ctx, "/api/models", nil, &list); err != nil {
			t.Note("%s", err)
			return
		}
		for _, m := range list.Models {
			fmt.Fprintf(t.Out, "%s (%s, %d tokens)\n", m.ID, m.Provider, m.ContextWindow)
		}
		if list.Message != "" {
			fmt.Fprintln(t.Out, list.Message)
		}
	case "/tools":
		var list struct{ Total int }
		if err := t.api.Get(ctx, "/api/tools", url.Values{"limit": {"1"}, "state": {"enabled"}}, &list); err != nil {
			t.Note("%s", err)
			return
		}
		fmt.Fprintf(t.Out, "%d tools; junctor tools list shows them\n", list.Total)
	default:
		t.Note("unknown command %s; /help lists the commands", word)
	}
}

// turn sends a message and shows the reply as it arrives.
func (t *terminalChat) turn(ctx context.Context, text string) error {
	// Reconnect if needed: a restarted gateway still has the conversation.
	if err := t.conn.ready(ctx); err != nil {
		return err
	}
	if err := t.conn.send(ctx, "message", map[string]any{"text": text, "model": t.model}); err != nil {
		return err
	}
	t.begun, t.failed = false, false
	for done := false; !done; {
		m, err := t.conn.next(ctx)
		if ctx.Err() != nil { // Ctrl-C: stop the reply, not the conversation's history
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			_ = t.conn.send(last, "abort", nil)
			return fmt.Errorf("%w: %w", ErrNoReply, ctx.Err())
		}
		if err != nil {
			return err
		}
		if done, err = t.show(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// show prints one message and reports whether the reply is complete.
func (t *terminalChat) show(ctx context.Context, m message) (done bool, err error) {
	switch m.Type {
	case wire.TypeMessage:
		t.begun = true
	case wire.TypeText:
		var p wire.ContentPayload
		if err := json.Unmarshal(m.Payload, &p); err != nil {
			return false, err
		}
		fmt.Fprint(t.Out, terminal.Printable(p.Content))
		t.open = !strings.HasSuffix(p.Content, "\n")
	case wire.TypeStatus:
		var p wire.StatusPayload
		if err := json.Unmarshal(m.Payload, &p); err != nil {
			return false, err
		}
		return t.showStatus(p) && t.begun, nil
	case wire.TypeApproval:
		var p wire.ApprovalPayload
		if err := json.Unmarshal(m.Payload, &p); err != nil {
			return false, err
		}
		return false, t.decide(ctx, p)
	case wire.TypeQuestion:
		var p wire.QuestionPayload
		if err := json.Unmarshal(m.Payload, &p); err != nil {
			return false, err
		}
		return false, t.answer(ctx, p)
	case wire.TypeError:
		var p wire.ErrorPayload
		if err := json.Unmarshal(m.Payload, &p); err != nil {
			return false, err
		}
		t.endLine()
		fmt.Fprintln(t.Err, t.Paint(t.Err, terminal.Red, terminal.OneLine(p.Message)))
		if t.question != nil && p.QuestionID == t.question.QuestionID && p.Code != wire.CodeNoQuestion {
			return false, t.answer(ctx, *t.question)
		}
		if p.Code == wire.CodeInterrupted && !t.begun {
			return false, nil // an earlier reply, which ends before the gateway accepts a message
		}
		t.failed = true
		// After a refused message there is no status complete. While another
		// client's reply runs, the reason is CodeBusy.
		return !t.begun && p.CallID == "" && p.QuestionID == "" || p.Code == wire.CodeBusy, nil
	}
	return false, nil
}

// showStatus prints a status and reports whether it ends a reply.
func (t *terminalChat) showStatus(p wire.StatusPayload) (done bool) {
	if p.Tool == "" {
		if p.State == "complete" {
			t.endLine()
			return true
		}
		return false
	}
	if p.Data == nil || len(p.Data.Progress) > 0 {
		return false
	}
	t.endLine()
	switch {
	case p.State == "processing":
		t.Note("%s", t.Paint(t.Err, terminal.Dim, fmt.Sprintf("… %s %s", terminal.OneLine(p.Tool), terminal.Clip(terminal.OneLine(string(p.Data.Arguments)), 120))))
	case p.Data.IsError:
		t.Note("%s", t.Paint(t.Err, terminal.Yellow, fmt.Sprintf("✗ %s %s", terminal.OneLine(p.Tool), terminal.OneLine(p.Message))))
	default:
		t.Note("%s", t.Paint(t.Err, terminal.Dim, fmt.Sprintf("✓ %s (%d ms)", terminal.OneLine(p.Tool), p.Data.TookMs)))
	}
	return false
}

// decide asks the user whether a call may be made.
func (t *terminalChat) decide(ctx context.Context, p wire.ApprovalPayload) error {
	t.endLine()
	if !t.canAsk() {
		t.Note("%s needs approval, but this is not a terminal; the call is denied.", terminal.OneLine(p.Tool))
		return t.conn.send(ctx, "deny", map[string]any{"callId": p.CallID, "reason": "not a terminal"})
	}
	fmt.Fprintf(t.Err, "Run %s with %s?\n[y]es, for this [s]ession, [a]lways, [N]o: ", terminal.OneLine(p.Tool), terminal.OneLine(string(p.Arguments)))
	scope := map[string]wire.Scope{"y": wire.Once, "yes": wire.Once, "s": wire.ForSession, "a": wire.Always}[strings.ToLower(t.typed())]
	if scope == "" {
		return t.conn.send(ctx, "deny", map[string]any{"callId": p.CallID})
	}
	return t.conn.send(ctx, "approve", map[string]any{"callId": p.CallID, "scope": scope})
}

// canAsk reports whether a user can answer.
func (t *terminalChat) canAsk() bool { return t.IsInput || t.ask }

// typed returns the next line of input, or "" at the end.
func (t *terminalChat) typed() string {
	line, _ := t.input.ReadString('\n')
	return strings.TrimSpace(line)
}

func (t *terminalChat) endLine() {
	if t.open {
		fmt.Fprintln(t.Out)
		t.open = false
	}
}
