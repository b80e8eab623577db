package executor

import (
	"context"
	"testing"
	"time"

	"junctor/internal/catalog"
	"junctor/internal/tool"
)

// inbox approves every call and counts whether the wait for it was announced.
type inbox struct{ waits, asked *int }

func (inbox) Allowed(context.Context, *tool.Call, *catalog.Entry) bool   { return false }
func (inbox) Timeout() time.Duration                                     { return time.Minute }
func (inbox) Answered(context.Context, *tool.Call, *catalog.Entry, bool) {}
func (i inbox) Ask(context.Context, *tool.Call, *catalog.Entry, func(context.Context) (bool, error)) (bool, string, error) {
	*i.asked = *i.waits
	return true, "", nil
}

// TestWaitForInboxIsAnnounced: a caller with a time limit is notified when its
// call begins to wait for the inbox.
func TestWaitForInboxIsAnnounced(t *testing.T) {
	var waits, asked int
	r := newFixture(t, func(o *Options) { o.Approvals = inbox{&waits, &asked} })
	r.catalog.Configure(catalog.Settings{Rules: []catalog.ToolRule{{Pattern: []string{"fs:write"}, Approval: catalog.AskApproval}}}, nil)
	c := call("write", `{"text":"x"}`)
	c.Exchange.AwaitPerson = func() func() { waits++; return func() { waits-- } }
	if _, err := r.Call(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if asked != 1 || waits != 0 {
		t.Errorf("%d waits while the inbox was asked, %d afterwards; want 1 and 0", asked, waits)
	}
}
