package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// Limits of the state of callers per connection.
const (
	maxSubscribed = 10_000 // resources
	maxLevels     = 10_000 // callers that have set a log level
)

// sharedState is what callers set in a shared session of the server: their
// subscriptions and log levels. It keeps them per caller, so that the requests of
// one caller do not affect the others. A session that replaces a lost one gets
// the same state, see restore.
type sharedState struct {
	mu          sync.Mutex
	subscribers map[string]map[string]struct{} // callers by URI
	changing    KeyLocks[string]               // URIs whose subscription is being changed
	levels      map[string]string              // the log level of each caller that set one
	sent        string                         // the level last set at the server
	setting     chan struct{}                  // has one element while a level is being sent
}

func newSharedState() *sharedState {
	return &sharedState{
		subscribers: map[string]map[string]struct{}{}, levels: map[string]string{}, setting: make(chan struct{}, 1),
	}
}

var emptyResult = json.RawMessage(`{}`)

// exchange sends a request of a caller on the connection. State that the server
// keeps per session (subscriptions, the log level) is kept per caller. Tasks
// always belong to the caller that created them.
func (u *upstream) exchange(ctx context.Context, c *conn, r tool.Request) (json.RawMessage, error) {
	if r.Caller == "" {
		return c.client.Do(ctx, r)
	}
	if strings.HasPrefix(r.Method, "tasks/") {
		return u.doTask(ctx, c, r)
	}
	switch r.Method {
	case mcp.MethodSubscribe:
		return c.sharedState.subscribe(ctx, c.client, r)
	case mcp.MethodUnsubscribe:
		defer u.unsubscribeExtra(ctx, c, r)
		return c.sharedState.unsubscribe(ctx, c.client, r)
	case mcp.MethodSetLevel:
		return c.sharedState.setLevel(ctx, c.client, r)
	}
	c.sharedState.applyLevel(c.client.Info().Stateless(), &r)
	wait := r.Method == mcp.MethodToolsCall && !r.Exchange.Transparent
	if wait && rawjson.Field(r.Params, "task") == nil {
		r.Params = u.requestTask(c, r.Params)
	} else {
		wait = wait && c.client.Info().Stateless() // otherwise the caller requested the task itself
	}
	result, err := c.client.Do(ctx, r)
	if err != nil || !mcp.MayNameTask(result) {
		return result, err
	}
	if c.login == "" { // otherwise the server checks the owner
		u.claimTask(ctx, r.Caller, result)
	}
	if id := mcpclient.TaskID(result); wait && id != "" {
		if announce := r.Exchange.Task; announce != nil {
			var kept tool.ServerTask
			if u.config().remote() && len(id) <= maxTaskID {
				kept = tool.ServerTask{Server: u.name, ID: id}
			}
			announce(kept)
		}
		r.Exchange.Memory.Keep()
		return c.client.AwaitTask(ctx, r, result)
	}
	return result, nil
}

const changingElsewhere = "another subscription to this resource is still being changed"

// subscribe forwards every subscription, even if another caller has the same
// one, because the server may have lost that. If the caller stops waiting for
// the answer, the server is unsubscribed from, because it may have subscribed.
func (s *sharedState) subscribe(ctx context.Context, client *mcpclient.Client, r tool.Request) (json.RawMessage, error) {
	uri := rawjson.FieldString(r.Params, "uri")
	unlock, err := s.changing.Lock(ctx, uri)
	if err != nil {
		return nil, waitError(ctx, changingElsewhere)
	}
	had, err := s.addSubscriber(uri, r.Caller)
	if err != nil {
		unlock()
		return nil, err
	}
	result, err := client.Do(ctx, r)
	_, answered := errors.AsType[*mcp.Error](err)
	if err == nil || had || s.removeSubscriber(uri, r.Caller) || answered {
		unlock()
		return result, err
	}
	go func() {
		defer unlock()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), listTimeout)
		defer cancel()
		_, _ = client.Do(ctx, tool.Request{Method: mcp.MethodUnsubscribe, Params: r.Params}) // the caller has left
	}()
	return nil, err
}

// addSubscriber adds a caller to the subscribers of a resource. It reports
// whether the caller was one already.
func (s *sharedState) addSubscriber(uri, caller string) (had bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.subscribers[uri] == nil {
		if len(s.subscribers) >= maxSubscribed {
			return false, &tool.Error{Kind: tool.RateLimited, Msg: fmt.Sprintf("%d resources of this server are subscribed to, which is the maximum; end a subscription first", maxSubscribed)}
		}
		s.subscribers[uri] = map[string]struct{}{}
	}
	_, had = s.subscribers[uri][caller]
	s.subscribers[uri][caller] = struct{}{}
	return had, nil
}

// removeSubscriber removes a caller from the subscribers of a resource. It
// reports whether there are others.
func (s *sharedState) removeSubscriber(uri, caller string) (others bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.subscribers[uri], caller)
	if len(s.subscribers[uri]) > 0 {
		return true
	}
	delete(s.subscribers, uri)
	return false
}

func (s *sharedState) hasSubscribers() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.subscribers) > 0
}

// unsubscribe unsubscribes from the server when the last caller has
// unsubscribed.
func (s *sharedState) unsubscribe(ctx context.Context, client *mcpclient.Client, r tool.Request) (json.RawMessage, error) {
	uri := rawjson.FieldString(r.Params, "uri")
	unlock, err := s.changing.Lock(ctx, uri)
	if err != nil {
		s.removeSubscriber(uri, r.Caller) // even though the server is not notified
		return nil, waitError(ctx, changingElsewhere)
	}
	defer unlock()
	if s.removeSubscriber(uri, r.Caller) {
		return emptyResult, nil
	}
	return client.Do(ctx, r)
}

// setLevel sets the most verbose level that any caller has requested. Each
// caller gets messages according to its own level.
func (s *sharedState) setLevel(ctx context.Context, client *mcpclient.Client, r tool.Request) (json.RawMessage, error) {
	level := rawjson.FieldString(r.Params, "level")
	if !mcp.ValidLogLevel(level) {
		return client.Do(ctx, r) // the server's error explains the accepted values
	}
	select {
	case s.setting <- struct{}{}:
		defer func() { <-s.setting }()
	case <-ctx.Done():
		return nil, waitError(ctx, "another caller's log level is still being set")
	}
	s.mu.Lock()
	before, had := s.levels[r.Caller]
	if !had && len(s.levels) >= maxLevels {
		clear(s.levels)
	}
	s.levels[r.Caller] = level
	lowest := s.lowestLevel()
	same := lowest == s.sent
	s.mu.Unlock()
	if same || client.Info().Stateless() { // each request carries its level
		return emptyResult, nil
	}
	r.Params = rawjson.SetField(r.Params, json.RawMessage(`"`+lowest+`"`), "level")
	result, err := client.Do(ctx, r)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.sent = lowest
	case had:
		s.levels[r.Caller] = before
	default:
		delete(s.levels, r.Caller)
	}
	return result, err
}

// lowestLevel returns the most verbose level of all callers; "" if none has set
// one. s.mu is held.
func (s *sharedState) lowestLevel() string {
	lowest := ""
	for _, level := range s.levels {
		if lowest == "" || mcp.LessSevere(level, lowest) {
			lowest = level
		}
	}
	return lowest
}

// applyLevel drops log messages below the caller's level, and adds the level to
// tool calls of the stateless era that specify none.
func (s *sharedState) applyLevel(stateless bool, r *tool.Request) {
	s.mu.Lock()
	level := s.levels[r.Caller]
	s.mu.Unlock()
	if level == "" {
		return
	}
	if stateless && r.Method == mcp.MethodToolsCall && rawjson.Field(r.Params, "_meta", mcp.MetaLogLevel) == nil {
		r.Params = rawjson.SetField(r.Params, json.RawMessage(`"`+level+`"`), "_meta", mcp.MetaLogLevel)
	}
	if notify := r.Exchange.Notify; notify != nil {
		r.Exchange.Notify = func(method string, params json.RawMessage) {
			if method == mcp.MethodLogMessage && mcp.LessSevere(rawjson.FieldString(params, "level"), level) {
				return
			}
			notify(method, params)
		}
	}
}
