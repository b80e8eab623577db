package codemode

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"junctor/internal/script"
	"junctor/internal/tool"
)

// Limits of the values that scripts store.
const (
	maxSessionBytes = 4 << 20
	maxSessionKeys  = 1000
	maxSessions     = 1000
	maxAllBytes     = 128 << 20
	sessionTTL      = time.Hour // after its last use
)

// sessionValues are the values that scripts store for later scripts of the same
// session. The least recently used sessions are evicted.
type sessionValues struct {
	mu       sync.Mutex
	sessions map[string]*session
	bytes    int
}

type session struct {
	values map[string]json.RawMessage
	bytes  int
	used   time.Time
}

// sync executes the functions of store.
func (run *scriptRun) sync(name string, argument json.RawMessage) (json.RawMessage, error) {
	var a struct {
		Key   string          `json:"key"`
		Value json.RawMessage `json:"value"`
	}
	if err := json.Unmarshal(argument, &a); err != nil {
		return nil, err
	}
	v := &run.s.values
	owner := run.r.Caller.View() + "\x00" + run.r.Session
	switch name {
	case "get":
		return v.get(owner, a.Key), nil
	case "keys":
		return json.Marshal(v.keys(owner))
	case "set":
		return nil, v.set(owner, a.Key, a.Value)
	case "delete":
		return nil, v.set(owner, a.Key, nil)
	}
	return nil, fmt.Errorf("no function %q", name)
}

func (v *sessionValues) get(owner, key string) json.RawMessage {
	v.mu.Lock()
	defer v.mu.Unlock()
	s, ok := v.sessions[owner]
	if !ok || time.Since(s.used) > sessionTTL {
		return nil
	}
	s.used = time.Now()
	return s.values[key]
}

func (v *sessionValues) keys(owner string) []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	keys := []string{}
	if s, ok := v.sessions[owner]; ok && time.Since(s.used) <= sessionTTL {
		keys = slices.AppendSeq(keys, maps.Keys(s.values))
	}
	slices.Sort(keys)
	return keys
}

// set stores a value, or deletes it if value is nil.
func (v *sessionValues) set(owner, key string, value json.RawMessage) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.sessions == nil {
		v.sessions = map[string]*session{}
	}
	s, ok := v.sessions[owner]
	if !ok || time.Since(s.used) > sessionTTL {
		v.drop(owner)
		s = &session{values: map[string]json.RawMessage{}}
		v.sessions[owner] = s
	}
	s.used = time.Now()
	old, had := s.values[key]
	grows := len(value) - len(old)
	switch {
	case had && value == nil:
		grows -= len(key)
	case !had && value != nil:
		grows += len(key)
	}
	if value != nil && (s.bytes+grows > maxSessionBytes || !had && len(s.values) >= maxSessionKeys) {
		return &script.Exception{Code: string(tool.TooLarge), Message: fmt.Sprintf("store keeps up to %d bytes under %d keys in a session; delete what is not needed with store.delete", maxSessionBytes, maxSessionKeys)}
	}
	if value == nil {
		delete(s.values, key)
	} else {
		s.values[key] = value
	}
	s.bytes += grows
	v.bytes += grows
	for v.bytes > maxAllBytes || len(v.sessions) > maxSessions {
		v.drop(v.oldest(owner))
	}
	return nil
}

func (v *sessionValues) drop(owner string) {
	if s, ok := v.sessions[owner]; ok {
		v.bytes -= s.bytes
		delete(v.sessions, owner)
	}
}

// oldest returns the least recently used session other than except.
func (v *sessionValues) oldest(except string) string {
	var found string
	for owner, s := range v.sessions {
		if owner != except && (found == "" || s.used.Before(v.sessions[found].used)) {
			found = owner
		}
	}
	return found
}
