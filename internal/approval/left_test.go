package approval

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"junctor/internal/tool"
	"junctor/internal/waiting"
)

// TestLeftCallsWaitInTheInbox checks that a caller that left its call answers
// the server's questions itself but cannot approve the call, which waits in the
// inbox with its arguments.
func TestLeftCallsWaitInTheInbox(t *testing.T) {
	t.Parallel()
	n := cluster(t, 1, DefaultConfig())[0]
	n.openPage(t)
	c := write("key:a", "", "1")
	record, err := n.inbox.Calls.Start(t.Context(), waiting.StartOptions{Caller: c.Caller, Face: c.Face, Tool: "fs__write"})
	if err != nil {
		t.Fatal(err)
	}
	c.Exchange = tool.Exchange{
		Capabilities: json.RawMessage(`{"elicitation":{}}`),
		Ask: func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			return nil, errors.New("the caller was asked to approve its own call")
		},
	}
	ctx, cancel := record.Context(t.Context())
	defer cancel()
	out := n.begin(ctx, c)
	ended := make(chan outcome, 1)
	go func() {
		o := <-out
		_ = record.Finish(t.Context(), o.result, o.err)
		ended <- o
	}()
	var seen waiting.Record
	for seen.Status != waiting.InputRequired {
		if seen, err = n.inbox.Calls.Await(t.Context(), record.ID(), seen.Version); err != nil {
			t.Fatal(err)
		}
		if seen.Status.Final() {
			t.Fatalf("ended as %s: %s; want a call that waits", seen.Status, seen.Message)
		}
	}
	r := n.waits(t)
	if r.ID != record.ID() || r.Tool != "fs:write" || string(r.Arguments) != `{"text":"1"}` || r.Inputs[0].Kind != waiting.KindApproval {
		t.Errorf("the inbox shows %+v; want the call with its arguments", r)
	}
	if code := n.decide(t, r.ID, `{"action":"allow"}`); code != 200 {
		t.Fatalf("allow: %d", code)
	}
	if o := <-ended; o.err != nil {
		t.Fatal(o.err)
	}
}
