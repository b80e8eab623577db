package executor

import (
	"context"
	"encoding/json"
	"testing"

	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// TestRecordIDsAreUnique: two calls with the same request ID have records with
// different IDs. Without a request ID in the call that of the context is used,
// and a nested call records its parent.
func TestRecordIDsAreUnique(t *testing.T) {
	r := newFixture(t)
	r.do = func(ctx context.Context, _ string, req tool.Request) (json.RawMessage, error) {
		if len(r.records) == 0 && string(req.Params) == `{"name":"write","arguments":{"outer":true}}` {
			if _, err := r.Call(ctx, call("write", `{}`)); err != nil {
				return nil, err
			}
		}
		return json.RawMessage(`{"content":[]}`), nil
	}
	ctx := telemetry.WithRequest(t.Context(), "from-the-header")
	if _, err := r.Call(ctx, call("write", `{"outer":true}`)); err != nil {
		t.Fatal(err)
	}
	again := call("write", `{}`)
	again.ID, again.RequestID = "chosen", "from-the-header"
	if _, err := r.Call(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	inner, outer, last := r.records[0], r.records[1], r.records[2]
	if outer.RequestID != "from-the-header" || last.RequestID != "from-the-header" {
		t.Errorf("request ids = %q, %q", outer.RequestID, last.RequestID)
	}
	if outer.ID == last.ID || last.ID == "chosen" || last.ID == "from-the-header" || outer.ID == "" {
		t.Errorf("ids = %q, %q; want two of our own", outer.ID, last.ID)
	}
	if inner.Parent != outer.ID || outer.Parent != "" {
		t.Errorf("parents = %q, %q; want %q and none", inner.Parent, outer.Parent, outer.ID)
	}
}
