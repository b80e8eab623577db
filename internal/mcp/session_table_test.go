package mcp

import (
	"strconv"
	"testing"

	"junctor/internal/tool"
)

func TestSessionEvictionIsFairBetweenCallers(t *testing.T) {
	var table sessionTable
	table.init(8)
	add := func(caller string, n int) (evicted *Session) {
		t.Helper()
		old, twin, ok := table.add(&Session{id: caller + strconv.Itoa(n), caller: tool.Caller{ID: caller}})
		if twin != nil || !ok {
			t.Fatalf("%s%d: twin %v, ok %v", caller, n, twin, ok)
		}
		return old
	}
	for i := range 4 {
		add("quiet", i)
	}
	for i := range 100 { // far more than there is room for
		add("greedy", i)
	}
	for i := range 4 {
		if table.find("quiet"+strconv.Itoa(i)) == nil {
			t.Errorf("quiet%d was pushed out", i)
		}
	}
	if table.len() != 8 {
		t.Errorf("%d sessions", table.len())
	}
	// One who has little gets room from whoever was idle longest.
	if old := add("new", 0); old == nil || old.id != "quiet0" {
		t.Errorf("made room by ending %+v", old)
	}
	for _, s := range table.all() {
		table.remove(s)
	}
	if len(table.of) != 0 {
		t.Errorf("still counted: %v", table.of)
	}
}
