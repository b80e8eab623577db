package llm

import (
	"context"
	"errors"
	"iter"
	"testing"

	"junctor/internal/tool"
)

// speaker is a model whose stream is the function itself.
type speaker func(yield func(Event, error) bool)

func (s speaker) Info() Info { return Info{} }

func (s speaker) Stream(context.Context, Request) iter.Seq2[Event, error] {
	return iter.Seq2[Event, error](s)
}

// spent is a Limiter that admits every request and counts tokens.
type spent struct{ tokens int }

func (*spent) PermitModel(context.Context, *tool.Caller) error { return nil }

func (s *spent) UsedTokens(_ context.Context, _ *tool.Caller, n int) { s.tokens += n }

// TestMissingTokenCountsAreEstimated checks that a reply without token counts
// is charged by an estimate, so that aborted replies are not free, and that a
// rejected request is free.
func TestMissingTokenCountsAreEstimated(t *testing.T) {
	broken := errors.New("broken off")
	for name, tt := range map[string]struct {
		model    speaker
		min, max int
	}{
		"counted": {func(yield func(Event, error) bool) {
			yield(Event{Turn: &Turn{Usage: Usage{Input: 40, Output: 2}}}, nil)
		}, 42, 42},
		"not counted": {func(yield func(Event, error) bool) { yield(Event{Turn: &Turn{Message: Text(Assistant, "hello")}}, nil) }, 5, 50},
		"broken off":  {func(yield func(Event, error) bool) { _ = yield(Event{Text: "hel"}, nil) && yield(Event{}, broken) }, 5, 50},
		"refused":     {func(yield func(Event, error) bool) { yield(Event{}, broken) }, 0, 0},
	} {
		var s spent
		_, _ = Ask(t.Context(), &s, &tool.Local, tt.model, Request{System: "be brief", Messages: []Message{Text(User, "say hello")}}, nil)
		if s.tokens < tt.min || s.tokens > tt.max {
			t.Errorf("%s: %d tokens, want %d to %d", name, s.tokens, tt.min, tt.max)
		}
	}
}
