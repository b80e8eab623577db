package mcp

import (
	"container/list"
	"sync"
)

// sessionTable holds the sessions over HTTP, the longest unused in front.
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

func (t *sessionTable) setMax(max int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.max = max
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

// add registers a session. When the table is full the session that has been
// idle longest is returned, to be ended; ok is false when all are in use. A
// caller with more than its share evicts one of its own sessions, so that no
// caller can evict the others'. An existing session of the same id is returned
// as existing instead.
func (t *sessionTable) add(s *Session) (evicted, existing *Session, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if existing := t.byID[s.id]; existing != nil {
		return nil, existing, true
	}
	if len(t.byID) >= t.max {
		greedy := t.of[s.caller.ID] > t.max/4
		for e := t.order.Front(); e != nil && evicted == nil; e = e.Next() {
			if old := e.Value.(*Session); (!greedy || old.caller.ID == s.caller.ID) && old.idle() {
				evicted = old
			}
		}
		if evicted == nil {
			return nil, nil, false
		}
		t.drop(evicted)
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

// get returns the caller's session of that id. Another caller's session does
// not exist for it.
func (t *sessionTable) get(id, caller string) *Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.byID[id]
	if s == nil || s.caller.ID != caller {
		return nil
	}
	t.order.MoveToBack(s.place)
	return s
}

// find returns the session of that id, of any caller.
func (t *sessionTable) find(id string) *Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.byID[id]
}
