package app

import (
	"encoding/json"
	"testing"

	"junctor/internal/tool"
)

// The tools of a removed server are no longer tracked for changes in memory.
func TestRemovedServerIsNotGuarded(t *testing.T) {
	r := start(t, `{"builtin":false}`, t.TempDir())
	var d tool.Definition
	for _, description := range []string{"first", "second"} {
		var err error
		if d, err = tool.ParseDefinition("gone", json.RawMessage(`{"name":"x","description":"`+description+`","inputSchema":{}}`)); err != nil {
			t.Fatal(err)
		}
		if err := r.guard.Observe(t.Context(), "gone", []tool.Definition{d}); err != nil {
			t.Fatal(err)
		}
	}
	if !r.guard.Review(d).Changed {
		t.Error("a changed tool is not reported")
	}
	r.sink.Removed("gone")
	if r.guard.Review(d).Changed {
		t.Error("a tool of a removed server is still tracked")
	}
}
