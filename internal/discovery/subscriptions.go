package discovery

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// subscriptions counts the subscriptions of each caller, because all sessions
// of a caller share one subscription at the upstream, which is canceled with
// the last of them. Each one is forwarded nevertheless, because a server may
// have lost the earlier ones. Package upstream separates callers that share a
// connection.
type subscriptions struct {
	changing upstream.KeyLocks[subscription] // held while a subscription is counted and forwarded; acquired before mu

	mu        sync.Mutex
	counts    map[subscription]int
	followers map[follower]map[string][]subscription // by the URI that the client sent
}

// subscription is a resource that a caller subscribed to.
type subscription struct{ caller, server, uri string }

// follower is the client that subscribed: a session or, in the stateless era,
// a subscriptions/listen request.
type follower struct {
	session *mcpserver.Session
	listen  *mcpserver.Request
}

func followerOf(r *mcpserver.Request) follower { return follower{r.Session, r.Listen} }

// uriOf returns the URI that the client sent.
func uriOf(r *mcpserver.Request) string { return rawjson.FieldString(r.Params, "uri") }

// change handles resources/subscribe and resources/unsubscribe.
func (f *subscriptions) change(ctx context.Context, face *Face, r *mcpserver.Request, server, uri string) (json.RawMessage, error) {
	key := subscription{r.Caller.ID, server, uri}
	params := rawjson.SetField(r.Params, marshal(uri), "uri")
	unlock, err := f.changing.Lock(ctx, key)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if r.Method == mcp.MethodUnsubscribe {
		if !f.remove(r, key) {
			return json.RawMessage(`{}`), nil
		}
		return face.forward(ctx, r, server, r.Method, params)
	}
	added := f.add(face, r, key)
	result, err := face.forward(ctx, r, server, r.Method, params)
	if err != nil && added {
		f.remove(r, key)
	}
	return result, err
}

// unsubscribe handles resources/unsubscribe for the servers where the client
// subscribed to this URI. The owners cannot be used for that, because the
// lists may have changed since.
func (f *subscriptions) unsubscribe(ctx context.Context, face *Face, r *mcpserver.Request) (json.RawMessage, error) {
	f.mu.Lock()
	keys := slices.Clone(f.followers[followerOf(r)][uriOf(r)])
	f.mu.Unlock()
	result := json.RawMessage(`{}`)
	var failed error
	for _, key := range keys {
		var err error
		if result, err = f.change(ctx, face, r, key.server, key.uri); err != nil {
			failed = err
		}
	}
	return result, failed
}

// add counts a subscription. It returns false if the client already has it.
func (f *subscriptions) add(face *Face, r *mcpserver.Request, key subscription) (added bool) {
	who, uri := followerOf(r), uriOf(r)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.counts == nil {
		f.counts, f.followers = map[subscription]int{}, map[follower]map[string][]subscription{}
	}
	if f.followers[who] == nil {
		f.followers[who] = map[string][]subscription{}
		if s := r.Session; s != nil {
			last := lastRequest(r)
			s.OnEnd(func() { f.end(face, last, s) }) // called immediately if the session has ended
		}
	}
	if slices.Contains(f.followers[who][uri], key) {
		return false
	}
	f.followers[who][uri] = append(f.followers[who][uri], key)
	f.counts[key]++
	return true
}

// lastRequest returns a copy of a request with what is needed to unsubscribe
// at the end of the session: enough to use the same connection to the server.
// It does not refer to the message, which may be large and is referenced by
// the functions of the exchange.
func lastRequest(r *mcpserver.Request) *mcpserver.Request {
	ex := tool.Exchange{Capabilities: r.Exchange.Capabilities, Protocol: r.Exchange.Protocol, Transparent: r.Exchange.Transparent}
	if r.Exchange.Ask != nil {
		ex.Ask = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
			return nil, &tool.Error{Kind: tool.Canceled, Msg: "the session has ended"}
		}
	}
	return &mcpserver.Request{Caller: r.Caller, Session: r.Session, Exchange: ex}
}

// remove removes a subscription and reports whether it was the caller's last
// one to the resource.
func (f *subscriptions) remove(r *mcpserver.Request, key subscription) bool {
	who, uri := followerOf(r), uriOf(r)
	f.mu.Lock()
	defer f.mu.Unlock()
	keys := f.followers[who][uri]
	i := slices.Index(keys, key)
	if i < 0 {
		return false
	}
	if keys = slices.Delete(keys, i, i+1); len(keys) > 0 {
		f.followers[who][uri] = keys
	} else {
		delete(f.followers[who], uri)
	}
	if r.Session == nil && len(f.followers[who]) == 0 { // a session's entry is deleted when it ends
		delete(f.followers, who)
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

// end removes all subscriptions of a session. A concurrent request may add one
// afterwards; it then registers the session again, and end is called again. A
// subscription counts until it is its turn, so that another session of the
// caller can share it. Servers are handled concurrently, so that one that does
// not respond does not delay the others.
func (f *subscriptions) end(face *Face, r *mcpserver.Request, s *mcpserver.Session) {
	servers := map[string][]subscription{}
	f.mu.Lock()
	for _, keys := range f.followers[follower{session: s}] {
		for _, key := range keys {
			servers[key.server] = append(servers[key.server], key)
		}
	}
	delete(f.followers, follower{session: s})
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
	// Lock only fails when its context is done. The lock will be released:
	// requests of this session are canceled, and those of others have a
	// timeout.
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
