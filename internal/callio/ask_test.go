package callio

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"junctor/internal/terminal"
)

// lockedBuffer is the output of a terminal, safe for concurrent use.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func question(kind, params string) string {
	return fmt.Sprintf(`{"type":"question","call":"c","input":{"id":"q","kind":%q,"params":%s}}`, kind, params)
}

const resultLine = `{"type":"result","result":{}}` + "\n"

func TestFollowAsks(t *testing.T) {
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct{ question, typed, answer, shown string }{
		"a form":       {question("elicitation/create", `{"message":"Who\u001b[2J?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}`), "Ada\n", `{"action":"accept","content":{"name":"Ada"}}`, "The server asks: Who[2J?"},
		"an address":   {question("elicitation/create", `{"mode":"url","message":"Sign in","url":"https://example.com/x"}`), "y\n", `{"action":"accept"}`, "on example.com"},
		"refused":      {question("elicitation/create", `{"mode":"url","message":"Sign in","url":"https://example.com/x"}`), "what\nn\n", `{"action":"decline"}`, "https://example.com/x"},
		"a bad scheme": {question("elicitation/create", `{"mode":"url","message":"Sign in","url":"file:///etc/passwd"}`), "", `{"action":"decline"}`, "Sign in"},
		"the model":    {question("sampling/createMessage", `{"systemPrompt":"be brief","messages":[{"role":"user","content":{"type":"text","text":"hello"}}]}`), "y\n", `{"action":"accept"}`, "user: hello"},
		"a folder":     {question("roots/list", `{}`), "y\n", `{"roots":[{"uri":"file://` + filepath.ToSlash(folder) + `","name":"callio"}]}`, "Name " + folder},
		"no folder":    {question("roots/list", `{}`), "n\n", `{"roots":[]}`, ""},
		"the end":      {question("sampling/createMessage", `{"messages":[]}`), "", `{"action":"cancel"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var shown lockedBuffer
			c := &terminal.Terminal{In: strings.NewReader(tt.typed), Err: &shown, Width: func(io.Writer) (int, bool) { return 0, false }}
			body, gateway := io.Pipe()
			answers := make(chan string, 1)
			go func() {
				fmt.Fprintln(gateway, tt.question)
				answers <- <-answers // the gateway continues once it has the answer
				fmt.Fprint(gateway, resultLine)
				gateway.Close()
			}()
			_, err := Follow(t.Context(), c, body, func(_ context.Context, call, input string, answer json.RawMessage) error {
				if call != "c" || input != "q" {
					t.Errorf("the answer is for %s, %s", call, input)
				}
				answers <- string(answer)
				return nil
			})
			if got := <-answers; err != nil || got != tt.answer {
				t.Errorf("answered %s, want %s; %v", got, tt.answer, err)
			}
			if !strings.Contains(shown.String(), tt.shown) {
				t.Errorf("%q is not shown:\n%s", tt.shown, shown.String())
			}
		})
	}
}

// TestFollowWithdrawsQuestion: a question that is answered elsewhere is
// cancelled, and the call continues although nothing was typed.
func TestFollowWithdrawsQuestion(t *testing.T) {
	var shown lockedBuffer
	typed, _ := io.Pipe()
	defer typed.Close()
	c := &terminal.Terminal{In: typed, Err: &shown, Width: func(io.Writer) (int, bool) { return 0, false }}
	body := strings.NewReader(question("sampling/createMessage", `{"messages":[]}`) + "\n" + `{"type":"answered","call":"c","input":{"id":"q"}}` + "\n" + resultLine)
	_, err := Follow(t.Context(), c, body, func(context.Context, string, string, json.RawMessage) error {
		t.Error("an answer was sent")
		return nil
	})
	if err != nil || !strings.Contains(shown.String(), "withdrawn") {
		t.Errorf("%v\n%s", err, shown.String())
	}
}
