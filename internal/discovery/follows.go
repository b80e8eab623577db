package discovery

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"junctor/internal/mcp"
)

// follows counts who follows which resource of which upstream, because many
// clients share one connection to it: the upstream hears of the first
// subscription of a caller, and of the end of the last one of all.
type follows struct {
	mu       sync.Mutex
	resource map[resource]map[string]int // how often each caller follows it
	sessions map[*mcp.Session]map[resource]struct{}
}

type resource struct{ server, uri string }

// change carries out resources/subscribe and resources/unsubscribe.
func (f *follows) change(ctx context.Context, face *Face, r *mcp.Request, server, uri string) (json.RawMessage, error) {
	key := resource{server, uri}
	params := mcp.SetField(r.Params, marshal(uri), "uri")
	if r.Method == "resources/unsubscribe" {
		if !f.remove(r.Session, r.Caller.ID, key) {
			return json.RawMessage(`{}`), nil
		}
		return face.forward(ctx, r, server, r.Method, params)
	}
	if !f.add(face, r, key) {
		return json.RawMessage(`{}`), nil
	}
	result, err := face.forward(ctx, r, server, r.Method, params)
	if err != nil {
		f.remove(r.Session, r.Caller.ID, key)
	}
	return result, err
}

// add reports whether the upstream must be told.
func (f *follows) add(face *Face, r *mcp.Request, key resource) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.resource == nil {
		f.resource, f.sessions = map[resource]map[string]int{}, map[*mcp.Session]map[resource]struct{}{}
	}
	if s := r.Session; s != nil {
		if f.sessions[s] == nil {
			f.sessions[s] = map[resource]struct{}{}
			own := *r
			s.OnEnd(func() { f.end(face, &own, s) })
		}
		if _, again := f.sessions[s][key]; again {
			return false
		}
		f.sessions[s][key] = struct{}{}
	}
	if f.resource[key] == nil {
		f.resource[key] = map[string]int{}
	}
	f.resource[key][r.Caller.ID]++
	return f.resource[key][r.Caller.ID] == 1
}

// remove reports whether nobody follows the resource any more.
func (f *follows) remove(s *mcp.Session, caller string, key resource) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s != nil {
		if _, ok := f.sessions[s][key]; !ok {
			return false
		}
		delete(f.sessions[s], key)
	}
	if f.resource[key] == nil {
		return true // not known here: let the upstream decide
	}
	if f.resource[key][caller]--; f.resource[key][caller] <= 0 {
		delete(f.resource[key], caller)
	}
	if len(f.resource[key]) > 0 {
		return false
	}
	delete(f.resource, key)
	return true
}

// end lets go of everything that a session followed.
func (f *follows) end(face *Face, r *mcp.Request, s *mcp.Session) {
	f.mu.Lock()
	keys := f.sessions[s]
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for key := range keys {
		if f.remove(s, r.Caller.ID, key) {
			r.Params = nil
			if _, err := face.forward(ctx, r, key.server, "resources/unsubscribe", mcp.SetField(nil, marshal(key.uri), "uri")); err != nil {
				face.log.DebugContext(ctx, "unsubscribe", "server", key.server, "err", err)
			}
		}
	}
	f.mu.Lock()
	delete(f.sessions, s)
	f.mu.Unlock()
}
