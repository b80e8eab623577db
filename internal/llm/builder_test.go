package llm

import (
	"context"
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

func TestCallCutOffBeforeArgumentsIsMalformed(t *testing.T) {
	var tools *Toolset
	for _, tt := range []struct {
		arguments string
		stop      Stop
		malformed bool
	}{
		{"", StopLength, true}, {"\n", StopFilter, true},
		{"", StopCalls, false}, {"", StopEnd, false}, {"{}", StopLength, false}, {`{"a":1}`, StopLength, false},
	} {
		var b Builder
		for _, arguments := range []string{"", tt.arguments} { // only the last call may be incomplete
			c, faithful := tools.Call(NewCallID(), "x", []byte(arguments))
			b.Call(c, faithful)
		}
		calls := b.Turn(tt.stop, "", Usage{}, "", nil).Turn.Message.Calls()
		if calls[0].Malformed != "" || (calls[1].Malformed != "") != tt.malformed || (calls[1].Problem != "") != tt.malformed {
			t.Errorf("%q, %s: %+v, %+v", tt.arguments, tt.stop, calls[0], calls[1])
		}
	}
	// A call in the text is complete if its block is closed.
	text := "```tool\n{\"tool\": \"s:t\"}\n```\n"
	m := WithPromptTools(&fake{answers: []any{Turn{Message: Text(Assistant, text), Stop: StopLength}}})
	turn, err := Collect(m.Stream(context.Background(), Request{}), nil)
	if calls := turn.Message.Calls(); err != nil || turn.Stop != StopLength || len(calls) != 1 || calls[0].Malformed != "" {
		t.Errorf("a call in the text: %+v, %v", turn, err)
	}
}
