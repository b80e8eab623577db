package approval

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"junctor/internal/tool"
	"junctor/internal/waiting"
)

// TestClientAndInboxAreAskedTogether checks that the first answer applies, on
// any node, and that the other question is withdrawn.
func TestClientAndInboxAreAskedTogether(t *testing.T) {
	n := cluster(t, 2, DefaultConfig())
	var audited []string
	n[0].inbox.Audit = func(ctx context.Context, action, target string, _ any) {
		audited = append(audited, action+" "+target+" by "+tool.CallerFrom(ctx).ID)
	}
	asked, answers, closed := make(chan struct{}, 1), make(chan bool), make(chan error, 1)
	c := write("key:a", "chat-1", "1")
	c.Exchange.ApproveInInbox = true
	c.Exchange.Approve = func(ctx context.Context, _ tool.Name, _ json.RawMessage) (bool, error) {
		asked <- struct{}{}
		select {
		case yes := <-answers:
			return yes, nil
		case <-ctx.Done():
			closed <- context.Cause(ctx)
			return false, context.Cause(ctx)
		}
	}
	// Without a page only the client is asked.
	out := n[0].begin(t.Context(), c)
	<-asked
	answers <- false
	if o := <-out; tool.KindOf(o.err) != tool.Denied {
		t.Errorf("denied by the user: %v", o.err)
	}
	if got := strings.Join(audited, ", "); got != "approval.deny fs:write by key:a" {
		t.Errorf("audited %q", got)
	}
	n[1].openPage(t)
	n[0].seen(t)

	out = n[0].begin(t.Context(), c)
	<-asked
	id := n[1].waits(t).ID
	answers <- true
	if o := <-out; o.err != nil {
		t.Errorf("allowed by the user: %v", o.err)
	}
	if code := n[1].decide(t, id, `{"action":"deny"}`); code != 404 {
		t.Errorf("the inbox answers after the user: %d", code)
	}

	out = n[0].begin(t.Context(), c)
	<-asked
	if code := n[1].decide(t, n[1].waits(t).ID, `{"action":"deny","reason":"not on Fridays"}`); code != 200 {
		t.Errorf("deny: %d", code)
	}
	if o := <-out; tool.KindOf(o.err) != tool.Denied || !strings.Contains(o.err.Error(), "not on Fridays") {
		t.Errorf("denied in the inbox: %v", o.err)
	}
	if err := <-closed; !errors.Is(err, ErrAnswered) {
		t.Errorf("the user's question ended with %v", err)
	}

	out = n[0].begin(t.Context(), c)
	<-asked
	if code := n[1].decide(t, n[1].waits(t).ID, `{"action":"allow","scope":"session"}`); code != 200 {
		t.Errorf("allow: %d", code)
	}
	if o := <-out; o.err != nil {
		t.Errorf("allowed in the inbox: %v", o.err)
	}
	<-closed
	if o := <-n[0].begin(t.Context(), c); o.err != nil { // allowed without a question
		t.Errorf("again in the session: %v", o.err)
	}

	// Cancelling the record cancels the call.
	c.Session = "chat-2"
	out = n[0].begin(t.Context(), c)
	<-asked
	if _, err := n[1].inbox.Calls.Cancel(t.Context(), n[1].waits(t).ID, func(*waiting.Record) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if o := <-out; !errors.Is(o.err, waiting.ErrCancelled) {
		t.Errorf("cancelled: %v", o.err)
	}
	<-closed
}
