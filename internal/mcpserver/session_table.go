package mcpserver

import (
	"container/list"
	"sync"
)

// sessionTable holds the sessions over HTTP, ordered by last use.
type sessionTable struct {
	mu    sync.Mutex
	max   int
	byID  map[string]*Session
	of    map[string]int // how many each caller has
	order *list.List
}

func (t *sessionTable) init(max int) {
	t.max, t.byID, t.of, t.order = max, map[string]*Session{}, map[string]int{}, list.New()
}

// setMax changes the limit and returns the evicted idle sessions, which the
// caller must end. Sessions in use stay, and new ones are refused until there
// is room.
func (t *sessionTable) setMax(max int) (evicted []*Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.max = max
	return t.evict(max, nil)
}

// evict drops idle sessions, the least recently used first, until at most n are
// left. If caller is not nil it only drops that caller's sessions.
func (t *sessionTable) evict(n int, caller *string) (evicted []*Session) {
	for e := t.order.Front(); e != nil && len(t.byID) > n; {
		s := e.Value.(*Session)
		e = e.Next() // drop removes the element
		if (caller == nil || s.caller.ID == *caller) && s.idle() {
			t.drop(s)
			evicted = append(evicted, s)
		}
	}
	return evicted
}

func (t *sessionTable) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.byID)
}

func (t *sessionTable) all() []*Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]*Session, 0, len(t.byID))
	for _, s := range t.byID {
		all = append(all, s)
	}
	return all
}

// add registers a session. If the table is full it evicts the longest idle
// sessions, which the caller must end; ok is false if too many are in use. A
// caller with more than a quarter of the sessions only evicts its own, so that
// it cannot evict those of others. If there is a session with the same id, add
// returns it as existing instead.
func (t *sessionTable) add(s *Session) (evicted []*Session, existing *Session, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if existing := t.byID[s.id]; existing != nil {
		return nil, existing, true
	}
	var only *string
	if t.of[s.caller.ID] > t.max/4 {
		only = &s.caller.ID
	}
	if evicted = t.evict(t.max-1, only); len(t.byID) >= t.max {
		return evicted, nil, false
	}
	t.byID[s.id] = s
	t.of[s.caller.ID]++
	s.place = t.order.PushBack(s)
	return evicted, nil, true
}

func (t *sessionTable) drop(s *Session) {
	if t.byID[s.id] == s {
		delete(t.byID, s.id)
		t.order.Remove(s.place)
		if t.of[s.caller.ID]--; t.of[s.caller.ID] == 0 {
			delete(t.of, s.caller.ID)
		}
	}
}

func (t *sessionTable) remove(s *Session) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drop(s)
}

// get returns the caller's session with the id, or nil. It does not return
// sessions of other callers.
func (t *sessionTable) get(id, caller string) *Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.byID[id]
	if s == nil || s.caller.View() != caller {
		return nil
	}
	t.order.MoveToBack(s.place)
	return s
}

// find returns the session with the id, of any caller, or nil.
func (t *sessionTable) find(id string) *Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}
