package callio

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"junctor/internal/control"
	"junctor/internal/form"
	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/terminal"
	"junctor/internal/tool"
	"junctor/internal/waiting"
)

// SupportedQuestions are the kinds of questions that can be answered at a
// terminal.
var SupportedQuestions = []string{"elicitation", "sampling", "roots"}

// errWithdrawn is the cause with which a question is cancelled whose answer is
// no longer needed.
var errWithdrawn = errors.New("withdrawn")

// questions shows the questions of a call at the terminal, one after the other.
type questions struct {
	*terminal.Terminal
	send func(ctx context.Context, call, input string, answer json.RawMessage) error

	read  sync.Once
	lines chan string // typed by the user; closed at the end of the input
	turn  sync.Mutex  // held by the question that is shown
	wg    sync.WaitGroup

	mu      sync.Mutex
	waiting map[string]context.CancelCauseFunc // by input
}

func newQuestions(c *terminal.Terminal, send func(context.Context, string, string, json.RawMessage) error) *questions {
	return &questions{Terminal: c, send: send, lines: make(chan string), waiting: map[string]context.CancelCauseFunc{}}
}

// open reports whether there are unanswered questions.
func (q *questions) open() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) > 0
}

// ask shows a question and sends the answer in the background.
func (q *questions) ask(ctx context.Context, call string, in waiting.Input) {
	if in.Kind == waiting.KindApproval {
		q.Note("The call waits for approval: junctor approvals list")
		return
	}
	ctx, cancel := context.WithCancelCause(ctx)
	q.mu.Lock()
	q.waiting[in.ID] = cancel
	q.mu.Unlock()
	q.wg.Go(func() {
		defer q.done(in.ID)
		q.turn.Lock()
		defer q.turn.Unlock()
		answer, err := q.put(ctx, in)
		if err == nil {
			q.done(in.ID) // before the gateway reports the question as answered
			err = q.send(ctx, call, in.ID, answer)
		}
		switch {
		case errors.Is(context.Cause(ctx), errWithdrawn):
			fmt.Fprintln(q.Err, "\nThe question was withdrawn.")
		case err != nil:
			fmt.Fprintf(q.Err, "The answer was not sent: %v\n", err)
		}
	})
}

func (q *questions) done(input string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.waiting, input)
}

// withdraw cancels a question that no longer needs an answer.
func (q *questions) withdraw(input string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if cancel := q.waiting[input]; cancel != nil {
		cancel(errWithdrawn)
	}
}

// stop cancels all questions and waits for them.
func (q *questions) stop() {
	q.mu.Lock()
	for _, cancel := range q.waiting {
		cancel(errWithdrawn)
	}
	q.mu.Unlock()
	q.wg.Wait()
}

// line shows a prompt and returns one line of input.
func (q *questions) line(ctx context.Context, prompt string) (string, error) {
	fmt.Fprint(q.Err, prompt)
	q.read.Do(func() {
		go func() { // runs until the program exits, because reading a terminal cannot be interrupted
			defer close(q.lines)
			r := bufio.NewReader(q.In)
			for {
				line, err := r.ReadString('\n')
				if line != "" {
					q.lines <- strings.TrimSpace(line)
				}
				if err != nil {
					return
				}
			}
		}()
	})
	select {
	case line, ok := <-q.lines:
		if !ok {
			return "", io.EOF
		}
		return line, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// choose asks whether to accept, decline or cancel; the end of the input
// cancels.
func (q *questions) choose(ctx context.Context, prompt string) (action string, err error) {
	for {
		line, err := q.line(ctx, prompt+" [y]es, [n]o or [c]ancel: ")
		if err == io.EOF {
			return "cancel", nil
		}
		if err != nil {
			return "", err
		}
		switch strings.ToLower(line) {
		case "y", "yes":
			return "accept", nil
		case "n", "no":
			return "decline", nil
		case "c", "cancel":
			return "cancel", nil
		}
	}
}

// put shows a question and returns the user's answer.
func (q *questions) put(ctx context.Context, in waiting.Input) (json.RawMessage, error) {
	if _, ok := q.Width(q.Err); ok {
		fmt.Fprint(q.Err, "\r\x1b[K")
	}
	if message := rawjson.FieldString(in.Params, "message"); message != "" {
		fmt.Fprintln(q.Err, q.Paint(q.Err, terminal.Bold, "The server asks: ")+terminal.Printable(tool.Shorten(message, 8<<10)))
	}
	switch in.Kind {
	case mcp.MethodElicit:
		if rawjson.FieldString(in.Params, "mode") == "url" {
			return q.address(ctx, in.Params)
		}
		content, chosen, err := form.Fill(ctx, q.Terminal, rawjson.Field(in.Params, "requestedSchema"), func(prompt string) (string, error) { return q.line(ctx, prompt) })
		if err != nil {
			return nil, err
		}
		return action(chosen, content)
	case mcp.MethodSample:
		return q.sampling(ctx, in.Params)
	case mcp.MethodRootsList:
		return q.roots(ctx)
	}
	return action("decline", nil)
}

// action returns the result of an elicitation.
func action(name string, content json.RawMessage) (json.RawMessage, error) {
	return json.Marshal(struct {
		Action  string          `json:"action"`
		Content json.RawMessage `json:"content,omitempty"`
	}{name, content})
}

func (q *questions) address(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	u, err := url.Parse(rawjson.FieldString(params, "url"))
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" {
		return action("decline", nil)
	}
	fmt.Fprintf(q.Err, "It wants you to open this address on %s:\n  %s\n", terminal.OneLine(u.Host), terminal.OneLine(u.String()))
	prompt := "Will you open it?"
	if string(rawjson.Field(params, "_meta", control.MetaRetry)) == "true" {
		prompt = "Have you done what it asks for, so that the tool can be called again?"
	}
	chosen, err := q.choose(ctx, prompt)
	if err != nil {
		return nil, err
	}
	return action(chosen, nil)
}

func (q *questions) sampling(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	fmt.Fprintln(q.Err, "The server wants to send this to the gateway's model and read the reply:")
	if system := rawjson.FieldString(params, "systemPrompt"); system != "" {
		fmt.Fprintf(q.Err, "  system: %s\n", terminal.Printable(tool.Shorten(system, 4<<10)))
	}
	for m := range rawjson.Elements(rawjson.Field(params, "messages")) {
		text := rawjson.FieldString(m, "content", "text")
		if text == "" {
			text = string(rawjson.Field(m, "content"))
		}
		fmt.Fprintf(q.Err, "  %s: %s\n", terminal.OneLine(rawjson.FieldString(m, "role")), terminal.Printable(tool.Shorten(text, 4<<10)))
	}
	chosen, err := q.choose(ctx, "Allow it?")
	if err != nil {
		return nil, err
	}
	return action(chosen, nil)
}

func (q *questions) roots(ctx context.Context) (json.RawMessage, error) {
	type root struct {
		URI  string `json:"uri"`
		Name string `json:"name"`
	}
	shared := []root{}
	if folder, err := os.Getwd(); err == nil {
		chosen, err := q.choose(ctx, fmt.Sprintf("The server asks for the folders that you work in. Name %s?", terminal.OneLine(folder)))
		if err != nil {
			return nil, err
		}
		if chosen == "accept" {
			u := url.URL{Scheme: "file", Path: filepath.ToSlash(folder)}
			shared = append(shared, root{u.String(), filepath.Base(folder)})
		}
	}
	return json.Marshal(map[string]any{"roots": shared})
}
