package mcpserver

import (
	"context"
	"encoding/json"
	"slices"
	"sync"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
)

// subscription is one open subscriptions/listen.
type subscription struct {
	call  *call
	lists map[string]bool // methods of notifications
	uris  map[string]struct{}
	done  chan struct{} // closed when the server ends it
}

// listLabels are the members of a filter that ask for changed lists.
var listLabels = []struct{ member, capability, method string }{
	{"toolsListChanged", "tools", "notifications/tools/list_changed"},
	{"promptsListChanged", "prompts", "notifications/prompts/list_changed"},
	{"resourcesListChanged", "resources", "notifications/resources/list_changed"},
}

// listen serves subscriptions/listen: it acknowledges what it can deliver and
// then delivers, until the caller leaves or the server closes.
func (s *Server) listen(ctx context.Context, c *call) (json.RawMessage, error) {
	filter := rawjson.Field(c.req.Params, "notifications")
	if !rawjson.IsObject(filter) {
		return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "notifications must say, as an object, what to listen for"}
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
	ack, err := encodePlain(map[string]any{"_meta": map[string]json.RawMessage{mcp.MetaSubscriptionID: json.RawMessage(c.req.ID)}, "notifications": agreed})
	if err != nil {
		return nil, err
	}
	acknowledge := func() { c.notify(mcp.MethodSubscriptionsAcknowledged, ack) }
	if len(agreed) == 0 {
		acknowledge()
	} else if s.subs.add(sub, acknowledge) {
		defer s.subs.remove(sub)
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-sub.done:
		}
	}
	return json.RawMessage(`{"_meta":{"` + mcp.MetaSubscriptionID + `":` + string(c.req.ID) + `}}`), nil
}

// follow subscribes to the resources of a filter, as a session would.
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
	own.Method, own.Params = method, rawjson.SetField(nil, rawjson.AppendQuoted(nil, uri), "uri")
	return &own
}

// subscriptionTable holds the open subscriptions.
type subscriptionTable struct {
	mu     sync.Mutex
	all    map[*subscription]struct{}
	closed bool
}

// add opens a subscription. It is acknowledged in the same step: before
// anything is delivered, and so that nothing is missed in between.
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

// publish delivers a notification to the subscriptions that asked for it, of
// one caller or, with "", of all.
func (t *subscriptionTable) publish(caller, method, uri string, params json.RawMessage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for s := range t.all {
		if caller != "" && s.call.req.Caller.ID != caller {
			continue
		}
		if uri == "" && s.lists[method] || uri != "" && follows(s.uris, uri) {
			s.call.notify(method, rawjson.SetField(params, json.RawMessage(s.call.req.ID), "_meta", mcp.MetaSubscriptionID))
		}
	}
}
