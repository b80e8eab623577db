package llm

import (
	"encoding/json"
	"testing"
)

func TestCallsOfOneTurnHaveDifferentIDs(t *testing.T) {
	var b Builder
	var tools *Toolset
	for _, id := range []string{"0", "0", "1", "0"} {
		c, faithful := tools.Call(id, "x", []byte("{}"))
		if ev := b.Call(c, faithful); ev.Call != c {
			t.Errorf("the event has the call %+v, want %+v", ev.Call, c)
		}
	}
	turn := b.Turn(StopCalls, "", Usage{}, "m", json.RawMessage(`{}`)).Turn
	calls, ids := turn.Message.Calls(), map[string]bool{}
	for _, c := range calls {
		ids[c.ID] = true
	}
	if len(ids) != 4 || calls[0].ID != "0" || calls[2].ID != "1" {
		t.Errorf("ids %v", ids)
	}
	if turn.Message.Native != nil {
		t.Error("the native form, which has the old ids, is kept")
	}
}
