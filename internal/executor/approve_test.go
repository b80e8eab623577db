package executor

import (
	"context"
	"encoding/json"
	"io"
	"strings"
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

func TestApproval(t *testing.T) {
	ctx := context.Background()
	answer := func(text string, err error) func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		return func(_ context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			if method != "elicitation/create" || !strings.Contains(string(params), "fs:write") || len(params) > 3000 {
				t.Errorf("asked %s with %d bytes", method, len(params))
			}
			return json.RawMessage(text), err
		}
	}
	forms := json.RawMessage(`{"elicitation":{}}`)
	for name, tt := range map[string]struct {
		exchange tool.Exchange
		kind     tool.Kind
		says     string
	}{
		"nobody to ask":        {tool.Exchange{}, tool.Denied, "toolRules"},
		"cannot elicit":        {tool.Exchange{Ask: answer(`{}`, nil), Capabilities: json.RawMessage(`{"sampling":{}}`)}, tool.Denied, "cannot be asked"},
		"only by URL":          {tool.Exchange{Ask: answer(`{}`, nil), Capabilities: json.RawMessage(`{"elicitation":{"url":{}}}`)}, tool.Denied, "cannot be asked"},
		"accepted":             {tool.Exchange{Ask: answer(`{"action":"accept","content":{}}`, nil), Capabilities: forms}, "", ""},
		"declined":             {tool.Exchange{Ask: answer(`{"action":"decline"}`, nil), Capabilities: forms}, tool.Denied, "not approved"},
		"no answer":            {tool.Exchange{Ask: answer(``, io.EOF), Capabilities: forms}, tool.Denied, "no answer"},
		"garbage":              {tool.Exchange{Ask: answer(`[`, nil), Capabilities: forms}, tool.Denied, "no answer"},
		"by the face itself":   {tool.Exchange{Approve: func(context.Context, tool.Name, json.RawMessage) (bool, error) { return true, nil }}, "", ""},
		"refused by the face":  {tool.Exchange{Approve: func(context.Context, tool.Name, json.RawMessage) (bool, error) { return false, nil }}, tool.Denied, "not approved"},
		"face comes before it": {tool.Exchange{Approve: func(context.Context, tool.Name, json.RawMessage) (bool, error) { return true, nil }, Ask: answer(`{"action":"decline"}`, nil), Capabilities: forms}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newFixture(t)
			r.catalog.Configure(catalog.Settings{Rules: []catalog.ToolRule{{Pattern: []string{"fs:write"}, Approval: catalog.AskApproval}}}, nil)
			c := call("write", `{"text":"`+strings.Repeat("x", 5000)+`"}`)
			c.Exchange = tt.exchange
			_, err := r.Call(ctx, c)
			if tool.KindOf(err) != tt.kind || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error = %v, want kind %q that says %q", err, tt.kind, tt.says)
			}
			if (r.calls == 1) != (tt.kind == "") {
				t.Errorf("%d calls reached the upstream", r.calls)
			}
		})
	}
}
