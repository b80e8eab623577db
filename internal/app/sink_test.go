package app

import (
	"encoding/json"
	"testing"

	"junctor/internal/tool"
)

// The tools of a removed server are no longer tracked for changes in memory, those
// of a disabled one are.
func TestRemovedServerIsNotGuarded(t *testing.T) {
	r := start(t, `{"builtin":false,"mcpServers":{"off":{"command":"x","disabled":true}}}`, t.TempDir())
	for server, tracked := range map[string]bool{"gone": false, "off": true} {
		d := observeChange(t, r, server)
		r.sink.Removed(server)
		if got := r.guard.Review(d).Changed; got != tracked {
			t.Errorf("the changed tool of %s is tracked: %t", server, got)
		}
	}
}

// observeChange shows the guard a tool whose definition changes, and returns the
// new one.
func observeChange(t *testing.T, r *fixture, server string) (d tool.Definition) {
	t.Helper()
	for _, description := range []string{"first", "second"} {
		var err error
		if d, err = tool.ParseDefinition(server, json.RawMessage(`{"name":"x","description":"`+description+`","inputSchema":{}}`)); err != nil {
			t.Fatal(err)
		}
		if err := r.guard.Observe(t.Context(), server, []tool.Definition{d}); err != nil {
			t.Fatal(err)
		}
	}
	if !r.guard.Review(d).Changed {
		t.Error("a changed tool is not reported")
	}
	return d
}
