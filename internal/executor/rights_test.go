package executor

import (
	"context"
	"encoding/json"
	"testing"

	"junctor/internal/tool"
)

// TestForwardOfALimitedKey: the right to use some tools of a server does not
// include its resources or unknown methods.
func TestForwardOfALimitedKey(t *testing.T) {
	r := newFixture(t)
	r.do = func(context.Context, string, tool.Request) (json.RawMessage, error) {
		return json.RawMessage(`{}`), nil
	}
	for name, tt := range map[string]struct {
		tools  []string
		method string
		denied bool
	}{
		"no limit":           {nil, "resources/read", false},
		"other tools":        {[]string{"fs:read_*"}, "resources/read", true},
		"unknown method":     {[]string{"fs:read_*"}, "x/unknown", true},
		"named":              {[]string{"fs:read_*", "fs:resources/*"}, "resources/read", false},
		"all of the server":  {[]string{"fs:*"}, "prompts/get", false},
		"all of another":     {[]string{"git:*"}, "prompts/get", true},
		"list of tools":      {[]string{"fs:read_*"}, "tools/list", false},
		"ping":               {[]string{"fs:read_*"}, "ping", false},
		"a call in disguise": {[]string{"fs:read_*"}, "tools/call ", true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := r.Forward(t.Context(), tool.Forward{Face: "broker", Caller: tool.Caller{ID: "key:k", Tools: tt.tools}, Server: "fs", Method: tt.method})
			kind := tool.KindOf(err)
			if name == "all of another" && kind != tool.ServerNotFound {
				t.Errorf("Forward to a hidden server: %v", err)
			}
			if denied := kind == tool.Denied || kind == tool.ServerNotFound; denied != tt.denied || err != nil && !denied {
				t.Errorf("Forward: %v, want it denied: %t", err, tt.denied)
			}
		})
	}
}

// TestCallWithoutCallerHasNoRights: a call without a caller ID is anonymous,
// whatever the other fields of the caller are.
func TestCallWithoutCallerHasNoRights(t *testing.T) {
	r := newFixture(t)
	r.do = succeed
	for _, caller := range []tool.Caller{{}, {Admin: true}, {Servers: []string{"fs"}}} {
		c := call("fs:write", `{}`)
		c.Caller = caller
		if _, err := r.Call(t.Context(), c); tool.KindOf(err) != tool.ToolNotFound && tool.KindOf(err) != tool.ServerNotFound {
			t.Errorf("Call by %+v: %v", caller, err)
		}
		if _, err := r.Forward(t.Context(), tool.Forward{Caller: caller, Server: "fs", Method: "resources/list"}); tool.KindOf(err) != tool.ServerNotFound {
			t.Errorf("Forward by %+v: %v", caller, err)
		}
		if _, err := r.Group(t.Context(), c, func(_ context.Context, work *tool.Call) (tool.Result, error) {
			if work.Caller.ID != tool.AnonymousID || work.Caller.Admin {
				t.Errorf("the work of %+v runs for %+v", caller, work.Caller)
			}
			return tool.Result{}, nil
		}); err != nil {
			t.Errorf("Group by %+v: %v", caller, err)
		}
	}
	if r.calls > 0 {
		t.Errorf("%d requests were sent", r.calls)
	}
	for _, rec := range r.records {
		if rec.Caller != tool.AnonymousID {
			t.Errorf("recorded as a call by %q", rec.Caller)
		}
	}
}

// TestListsAreFilteredByCallerRights: a server's own list is filtered by the
// rights of the caller.
func TestListsAreFilteredByCallerRights(t *testing.T) {
	r := newFixture(t)
	const list = `{"tools":[{"name":"read" , "x":1},{"name":"write"},{"name":"new"}],"ttlMs" : 5}`
	r.do = func(context.Context, string, tool.Request) (json.RawMessage, error) {
		return json.RawMessage(list), nil
	}
	for name, tt := range map[string]struct {
		caller tool.Caller
		want   string
	}{
		"all":     {tool.Local, list},
		"one":     {tool.Caller{ID: "key:k", Tools: []string{"fs:read"}}, `{"tools":[{"name":"read" , "x":1}],"ttlMs" : 5}`},
		"nothing": {tool.Caller{ID: "key:k", Tools: []string{"fs:else"}}, `{"tools":[],"ttlMs" : 5}`},
	} {
		got, err := r.Forward(t.Context(), tool.Forward{Caller: tt.caller, Server: "fs", Method: "tools/list"})
		if err != nil || string(got) != tt.want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}
