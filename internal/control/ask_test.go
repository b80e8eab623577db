package control

import (
	"context"
	"slices"
	"testing"

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
