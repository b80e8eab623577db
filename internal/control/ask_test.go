package control

import (
	"context"
	"encoding/json"
	"log/slog"
	"path/filepath"
	"slices"
	"testing"

	"junctor/internal/mcp"
	"junctor/internal/sqlite"
	"junctor/internal/sqlite/sqlitetest"
	"junctor/internal/store"
	"junctor/internal/tool"
	"junctor/internal/waiting"
)

// endedCall is a record with a question that ends after the first read.
type endedCall struct{ Waiting }

func (endedCall) Await(_ context.Context, _ string, version int64) (waiting.Record, error) {
	if version > 0 {
		return waiting.Record{}, waiting.ErrNotFound
	}
	return waiting.Record{Version: 1, Inputs: []waiting.Input{{ID: "q", Kind: "elicitation/create"}}}, nil
}

// A question is reported as answered even if its call ends immediately after
// the answer.
func TestQuestionsEndWithTheirCall(t *testing.T) {
	var sent []string
	(&Control{Options: Options{Waiting: endedCall{}}}).sendQuestions(t.Context(), "call", func(a CallAnswer) { sent = append(sent, a.Type+" "+a.Input.ID) })
	if want := []string{"question q", "answered q"}; !slices.Equal(sent, want) {
		t.Errorf("sent %q, want %q", sent, want)
	}
}

// anyQuestion accepts every question.
type anyQuestion struct{ Questions }

func (anyQuestion) CheckElicitation(json.RawMessage) error { return nil }

// A call is retried each time the person has opened its URLs, also the last
// time.
func TestCallIsRetriedAfterEachURL(t *testing.T) {
	cfg := store.DefaultConfig()
	cfg.Path = sqlitetest.Create(t, filepath.Join(t.TempDir(), "junctor.db"))
	s, err := sqlite.Open(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	service := waiting.NewService(s, slog.New(slog.DiscardHandler))
	c := &Control{Options: Options{Waiting: service, Questions: anyQuestion{}}}
	openURL := &mcp.Error{Code: mcp.CodeURLElicitation, Message: "open it", Data: json.RawMessage(`{"elicitations":[{"url":"https://example.com/"}]}`)}
	for name, tt := range map[string]struct {
		needed    int // openings after which the call succeeds
		runs      int
		questions int
		fails     bool
	}{
		"no URL":       {needed: 0, runs: 1},
		"one":          {needed: 1, runs: 2, questions: 1},
		"the maximum":  {needed: maxURLRounds, runs: maxURLRounds + 1, questions: maxURLRounds},
		"one too many": {needed: maxURLRounds + 1, runs: maxURLRounds + 1, questions: maxURLRounds, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			runs, questions := 0, 0
			send := func(a CallAnswer) {
				if a.Type != "question" {
					return
				}
				questions++
				if _, err := service.Answer(t.Context(), a.Call, a.Input.ID, tool.Local, json.RawMessage(`{"action":"accept"}`), func(*waiting.Record, *waiting.Input) error { return nil }); err != nil {
					t.Error(err)
				}
			}
			err := c.runWithQuestions(t.Context(), &tool.Call{Caller: tool.Local, Tool: "t"}, []string{"elicitation"}, send, func(context.Context) error {
				if runs++; runs <= tt.needed {
					return openURL
				}
				return nil
			})
			if (err != nil) != tt.fails || runs != tt.runs || questions != tt.questions {
				t.Errorf("%d runs, %d questions, error %v; want %d, %d, failure %v", runs, questions, err, tt.runs, tt.questions, tt.fails)
			}
		})
	}
}
