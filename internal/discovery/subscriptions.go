package discovery

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// subscriptions counts the subscriptions of each caller, because all sessions
// of a caller share one subscription at the upstream: it is unsubscribed with
// the last one. Each is passed on, because a server may have lost those before.
// Callers that share a connection are separated by package upstream.
type subscriptions struct {
	changing upstream.KeyLocks[subscription] // held while one is counted and the upstream told, in this order

	mu       sync.Mutex
	counts   map[subscription]int
	sessions map[*mcpserver.Session]map[subscription]struct{}
}

// subscription is a resource that a caller subscribed to.
type subscription struct{ caller, server, uri string }

// change executes resources/subscribe and resources/unsubscribe.
func (f *subscriptions) change(ctx context.Context, face *Face, r *mcpserver.Request, server, uri string) (json.RawMessage, error) {
	key := subscription{r.Caller.ID, server, uri}
	params := rawjson.SetField(r.Params, marshal(uri), "uri")
	unlock, err := f.changing.Lock(ctx, key)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if r.Method == mcp.MethodUnsubscribe {
		if !f.remove(r.Session, key) {
			return json.RawMessage(`{}`), nil
		}
		return face.forward(ctx, r, server, r.Method, params)
	}
	added := f.add(face, r, key)
	result, err := face.forward(ctx, r, server, r.Method, params)
	if err != nil && added {
		f.remove(r.Session, key)
	}
	return result, err
}

// add counts a subscription, unless the session has it already.
func (f *subscriptions) add(face *Face, r *mcpserver.Request, key subscription) (added bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counts == nil {
		f.counts, f.sessions = map[subscription]int{}, map[*mcpserver.Session]map[subscription]struct{}{}
	}
	if s := r.Session; s != nil {
		if f.sessions[s] == nil {
			f.sessions[s] = map[subscription]struct{}{}
			last := lastRequest(r)
			s.OnEnd(func() { f.end(face, last, s) }) // called at once if the session has ended
		}
		if _, again := f.sessions[s][key]; again {
			return false
		}
		f.sessions[s][key] = struct{}{}
	}
	f.counts[key]++
	return true
}

// lastRequest returns what the end of a session needs of one of its requests: as
// much as finds the same connection to the server. The message itself may be
// large, and the functions of the exchange refer to it.
func lastRequest(r *mcpserver.Request) *mcpserver.Request {
	ex := tool.Exchange{Capabilities: r.Exchange.Capabilities, Protocol: r.Exchange.Protocol, Transparent: r.Exchange.Transparent}
	if r.Exchange.Ask != nil {
		ex.Ask = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			return nil, &tool.Error{Kind: tool.Canceled, Msg: "the session has ended"}
		}
	}
	return &mcpserver.Request{Caller: r.Caller, Session: r.Session, Exchange: ex}
}

// remove reports whether it was the caller's last subscription to the resource.
func (f *subscriptions) remove(s *mcpserver.Session, key subscription) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s != nil {
		if _, ok := f.sessions[s][key]; !ok {
			return false
		}
		delete(f.sessions[s], key)
	}
	return f.release(key)
}

// release removes one subscription and reports whether it was the caller's last
// one. f.mu is held.
func (f *subscriptions) release(key subscription) bool {
	if f.counts[key]--; f.counts[key] > 0 {
		return false
	}
	delete(f.counts, key)
	return true
}

// end removes all subscriptions of a session. A request in progress may add one
// afterwards; it then registers the session again, and end is called again.
// Until a subscription's turn comes it counts, so that another session of the
// caller can share it. A server that does not answer delays no other.
func (f *subscriptions) end(face *Face, r *mcpserver.Request, s *mcpserver.Session) {
	servers := map[string][]subscription{}
	f.mu.Lock()
	for key := range f.sessions[s] {
		servers[key.server] = append(servers[key.server], key)
	}
	delete(f.sessions, s)
	f.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	for _, keys := range servers {
		wg.Go(func() {
			for _, key := range keys {
				f.endOne(ctx, face, r, key)
			}
		})
	}
	wg.Wait()
}

func (f *subscriptions) endOne(ctx context.Context, face *Face, r *mcpserver.Request, key subscription) {
	// Without a deadline there is no error. A request that has the lock ends: one
	// of this session is cancelled, and one of another has a timeout.
	unlock, _ := f.changing.Lock(context.Background(), key)
	defer unlock()
	f.mu.Lock()
	last := f.release(key)
	f.mu.Unlock()
	if !last {
		return
	}
	if _, err := face.forward(ctx, r, key.server, mcp.MethodUnsubscribe, rawjson.SetField(nil, marshal(key.uri), "uri")); err != nil {
		face.log.DebugContext(ctx, "unsubscribe", "server", key.server, "err", err)
	}
}
