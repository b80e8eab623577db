package mcpserver

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// subscription is one open subscriptions/listen.
type subscription struct {
	call  *call
	lists map[string]bool // methods of notifications
	uris  map[string]struct{}
	tasks []string
	done  chan struct{} // closed when the server ends it
}

// listLabels are the members of a filter that subscribe to list changes.
var listLabels = []struct{ member, capability, method string }{
	{"toolsListChanged", "tools", mcp.MethodToolsChanged},
	{"promptsListChanged", "prompts", mcp.MethodPromptsChanged},
	{"resourcesListChanged", "resources", mcp.MethodResourcesChanged},
}

// listen serves subscriptions/listen: it acknowledges the notifications that it
// can deliver and then delivers them, until the caller disconnects or the
// server closes.
func (s *Server) listen(ctx context.Context, c *call) (json.RawMessage, error) {
	filter := rawjson.Field(c.req.Params, "notifications")
	if !rawjson.IsObject(filter) {
		return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "notifications must be an object that says what to listen for"}
	}
	d, err := s.handler.Describe(ctx, c.req)
	if err != nil {
		return nil, err
	}
	sub := &subscription{call: c, lists: map[string]bool{}, uris: map[string]struct{}{}, done: make(chan struct{})}
	agreed := map[string]any{}
	for _, l := range listLabels {
		if string(rawjson.Field(filter, l.member)) == "true" && string(rawjson.Field(d.Capabilities, l.capability, "listChanged")) == "true" {
			sub.lists[l.method] = true
			agreed[l.member] = true
		}
	}
	uris, err := s.follow(ctx, c.req, filter, d.Capabilities)
	if err != nil {
		return nil, err
	}
	defer s.unfollow(ctx, c.req, uris)
	for _, uri := range uris {
		sub.uris[uri] = struct{}{}
	}
	if len(uris) > 0 {
		agreed["resourceSubscriptions"] = uris
	}
	follow, err := s.followTasks(ctx, sub, filter)
	if err != nil {
		return nil, err
	}
	if len(sub.tasks) > 0 {
		agreed["taskIds"] = sub.tasks
	}
	ack, err := rawjson.Marshal(map[string]any{"_meta": map[string]json.RawMessage{mcp.MetaSubscriptionID: json.RawMessage(c.req.ID)}, "notifications": agreed})
	if err != nil {
		return nil, err
	}
	acknowledge := func() { c.notify(mcp.MethodSubscriptionsAcknowledged, ack) }
	if len(agreed) == 0 {
		acknowledge()
	} else if s.subs.add(sub, acknowledge) {
		defer s.subs.remove(sub)
		defer sub.start(ctx, follow)()
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-sub.done:
		}
	}
	return json.RawMessage(`{"_meta":{"` + mcp.MetaSubscriptionID + `":` + string(c.req.ID) + `}}`), nil
}

// follow subscribes to the resources of a filter, like a session, and returns
// their URIs.
func (s *Server) follow(ctx context.Context, r *Request, filter, capabilities json.RawMessage) ([]string, error) {
	if string(rawjson.Field(capabilities, "resources", "subscribe")) != "true" {
		return nil, nil
	}
	var uris []string
	for raw := range rawjson.Elements(rawjson.Field(filter, "resourceSubscriptions")) {
		uri, ok := rawjson.Unquote(raw)
		if !ok || len(uris) == maxURIs {
			s.unfollow(ctx, r, uris)
			return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "resourceSubscriptions must be a list of at most 1000 URIs"}
		}
		if slices.Contains(uris, uri) {
			continue
		}
		if _, err := s.handler.Serve(ctx, subscribeRequest(r, mcp.MethodSubscribe, uri)); err != nil {
			s.unfollow(ctx, r, uris)
			return nil, err
		}
		uris = append(uris, uri)
	}
	return uris, nil
}

func (s *Server) unfollow(ctx context.Context, r *Request, uris []string) {
	ctx = context.WithoutCancel(ctx)
	for _, uri := range uris {
		if _, err := s.handler.Serve(ctx, subscribeRequest(r, mcp.MethodUnsubscribe, uri)); err != nil {
			s.log.DebugContext(ctx, "unsubscribe", "err", err)
		}
	}
}

func subscribeRequest(r *Request, method, uri string) *Request {
	own := *r
	own.Method, own.Listen, own.Params = method, r, rawjson.SetField(nil, rawjson.AppendQuoted(nil, uri), "uri")
	return &own
}

// TaskFollower is a Handler with tasks that clients can follow.
type TaskFollower interface {
	// FollowTasks returns those of the tasks that the caller may follow, and a
	// function that follows them until its context is done. The function calls
	// notify with the state of a task, unless states are published with
	// [Server.NotifyCallers].
	FollowTasks(ctx context.Context, r *Request, ids []string) (followed []string, follow FollowFunc, err error)
}

// FollowFunc follows tasks until ctx is done.
type FollowFunc func(ctx context.Context, notify func(task json.RawMessage))

// maxTasks bounds the tasks that one subscription follows.
const maxTasks = 100

// followTasks sets the tasks of the subscription from a filter and returns the
// function that follows them, or nil.
func (s *Server) followTasks(ctx context.Context, sub *subscription, filter json.RawMessage) (FollowFunc, error) {
	wanted := rawjson.Field(filter, "taskIds")
	follower, ok := s.handler.(TaskFollower)
	if wanted == nil || !ok {
		return nil, nil
	}
	r := sub.call.req
	if rawjson.Field(r.Exchange.Capabilities, "extensions", mcp.ExtensionTasks) == nil {
		return nil, mcp.MissingTasksExtension()
	}
	var ids []string
	for raw := range rawjson.Elements(wanted) {
		id, ok := rawjson.Unquote(raw)
		if !ok || len(ids) == maxTasks {
			return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "taskIds must be a list of at most 100 ids of tasks"}
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	followed, follow, err := follower.FollowTasks(ctx, r, ids)
	sub.tasks = followed
	return follow, err
}

// start runs follow until stop is called. After stop returns nothing more is
// sent.
func (s *subscription) start(ctx context.Context, follow FollowFunc) (stop func()) {
	if follow == nil || len(s.tasks) == 0 {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		follow(ctx, func(task json.RawMessage) { s.notify(mcp.MethodTasks, task) })
	}()
	return func() {
		cancel()
		<-done
	}
}

// notify sends a notification with the id of the subscription.
func (s *subscription) notify(method string, params json.RawMessage) {
	s.call.notify(method, rawjson.SetField(params, json.RawMessage(s.call.req.ID), "_meta", mcp.MetaSubscriptionID))
}

// wants reports whether the subscription includes a notification.
func (s *subscription) wants(method, uri string, params json.RawMessage) bool {
	switch {
	case method == mcp.MethodTasks:
		return slices.Contains(s.tasks, rawjson.FieldString(params, "taskId"))
	case uri != "":
		return follows(s.uris, uri)
	}
	return s.lists[method]
}

// subscriptionTable holds the open subscriptions.
type subscriptionTable struct {
	mu     sync.Mutex
	all    map[*subscription]struct{}
	closed bool
}

// add opens a subscription. It calls acknowledge under the lock, so that the
// acknowledgement is sent before any notification and none is missed in
// between.
func (t *subscriptionTable) add(s *subscription, acknowledge func()) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	acknowledge()
	if t.closed {
		return false
	}
	if t.all == nil {
		t.all = map[*subscription]struct{}{}
	}
	t.all[s] = struct{}{}
	return true
}

func (t *subscriptionTable) remove(s *subscription) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.all, s)
}

func (t *subscriptionTable) closeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for s := range t.all {
		close(s.done)
		delete(t.all, s)
	}
}

// publish delivers a notification to the subscriptions that include it, of the
// callers that to accepts; nil accepts all.
func (t *subscriptionTable) publish(to func(*tool.Caller) bool, method, uri string, params json.RawMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for s := range t.all {
		if s.wants(method, uri, params) && (to == nil || to(&s.call.req.Caller)) {
			s.notify(method, params)
		}
	}
}
