package mcpserver

import (
	"slices"
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
		if len(old) > 1 {
			t.Errorf("%s%d ended %d sessions", caller, n, len(old))
		}
		for _, s := range old {
			evicted = s
		}
		return evicted
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
	// A caller with few sessions evicts the longest idle one of any caller.
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

func TestLowerSessionLimit(t *testing.T) {
	var table sessionTable
	table.init(100)
	session := func(i int) *Session {
		return &Session{id: strconv.Itoa(i), caller: tool.Caller{ID: strconv.Itoa(i % 2)}}
	}
	ids := func(sessions []*Session) (ids []string) {
		for _, s := range sessions {
			ids = append(ids, s.id)
		}
		return ids
	}
	for i := range 6 {
		table.add(session(i))
	}
	busy := table.find("1")
	busy.enter()
	table.get("0", "0") // used last
	if got, want := ids(table.setMax(3)), []string{"2", "3", "4"}; !slices.Equal(got, want) {
		t.Errorf("a lower limit ends the sessions %q, want %q", got, want)
	}
	if got, want := ids(table.setMax(1)), []string{"5", "0"}; !slices.Equal(got, want) {
		t.Errorf("a lower limit ends the sessions %q, want %q", got, want)
	}
	if evicted, _, ok := table.add(session(6)); ok || len(evicted) > 0 {
		t.Errorf("a session beside one in use, where one may be: ok %v, ended %q", ok, ids(evicted))
	}
	table.setMax(2)
	table.add(session(7))
	table.setMax(1) // ends 7, and 1 stays
	busy.leave()
	if evicted, _, ok := table.add(session(8)); !ok || !slices.Equal(ids(evicted), []string{"1"}) {
		t.Errorf("when it is no longer in use: ok %v, ended %q", ok, ids(evicted))
	}
	if table.len() != 1 {
		t.Errorf("%d sessions", table.len())
	}
}
