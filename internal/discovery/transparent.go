package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// transparentView is the view of one upstream: every method is forwarded, and
// tool calls go through the executor.
type transparentView struct {
	face   *Face
	name   string
	server *mcpserver.Server

	notifying atomic.Int64 // notifications from clients in flight
}

// maxNotifications bounds the notifications from clients in flight to one
// server.
const maxNotifications = 64

// transparentFor returns the view of a server, or an error if the server does
// not exist or the caller may not see it.
func (f *Face) transparentFor(ctx context.Context, name string) (*mcpserver.Server, error) {
	caller := tool.CallerFrom(ctx)
	if !caller.MaySee(name) || !f.opts.Upstreams.Has(name) {
		return nil, f.opts.Tools.ServerNotFoundError(&caller, name)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return nil, &tool.Error{Kind: tool.Unavailable, Msg: "the server is shutting down"}
	}
	s := f.single[name]
	if s == nil {
		s = &transparentView{face: f, name: name}
		s.server = f.server(s, nil)
		f.single[name] = s
	}
	return s.server, nil
}

// notifyTransparent sends a notification of an upstream to the clients of its
// transparent view; see [mcpserver.Server.NotifyCallers].
func (f *Face) notifyTransparent(server string, to func(*tool.Caller) bool, method string, params json.RawMessage) {
	f.mu.Lock()
	s := f.single[server]
	f.mu.Unlock()
	if s != nil {
		s.server.NotifyCallers(to, method, params)
	}
}

// prune closes the views of removed servers.
func (f *Face) prune() {
	var gone []*transparentView
	f.mu.Lock()
	for name, s := range f.single {
		if !f.opts.Upstreams.Has(name) {
			gone = append(gone, s)
			delete(f.single, name)
		}
	}
	f.mu.Unlock()
	for _, s := range gone {
		s.server.Close()
	}
}

// Describe implements mcpserver.Handler. It returns the upstream's own
// description.
func (s *transparentView) Describe(ctx context.Context, r *mcpserver.Request) (mcpserver.Description, error) {
	s.face.opts.Upstreams.Await(ctx, s.name)
	info, ok := s.face.opts.Upstreams.Describe(ctx, s.name, r.Caller.ID, tool.Exchange{
		Capabilities: r.Exchange.Capabilities, Protocol: r.Protocol, PassInput: r.Stateless(), Transparent: true,
	})
	if !ok {
		return mcpserver.Description{}, s.down(ctx, r)
	}
	own := rawjson.Field(info.Raw, "serverInfo")
	if own == nil {
		own = rawjson.Field(info.Raw, "_meta", mcp.MetaServerInfo)
	}
	if own == nil {
		own = marshal(map[string]string{"name": info.Name, "version": info.Version})
	}
	return mcpserver.Description{Info: own, Capabilities: info.Capabilities, Instructions: info.Instructions, TTL: time.Minute}, nil
}

// down returns the reason why the upstream is unavailable.
func (s *transparentView) down(ctx context.Context, r *mcpserver.Request) error {
	st, ok := s.face.opts.Upstreams.StatusOf(s.name)
	if !ok {
		return &tool.Error{Kind: tool.ServerNotFound, Msg: fmt.Sprintf("server %q was removed", s.name)}
	}
	if st.State == upstream.Disabled {
		return tool.ServerDisabledError(s.name)
	}
	if st.Login == upstream.LoginPerCaller {
		return s.face.signInError(ctx, r, s.name, &tool.Error{Kind: tool.UpstreamAuthRequired, Msg: s.name + " requires you to sign in with your own account"})
	}
	e := &tool.Error{Kind: tool.Unavailable, Msg: fmt.Sprintf("server %q is %s", s.name, st.State)}
	if st.Reason != "" {
		e.Msg += ": " + st.Reason
	}
	if st.State == upstream.AuthRequired {
		e.Kind = tool.UpstreamAuthRequired
	}
	return e
}

// Serve implements mcpserver.Handler.
func (s *transparentView) Serve(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	r.Exchange.Transparent = true
	switch r.Method {
	case mcp.MethodToolsCall:
		return s.call(ctx, r)
	case mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		return s.face.follows.change(ctx, s.face, r, s.name, rawjson.FieldString(r.Params, "uri"))
	}
	return s.face.forward(ctx, r, s.name, r.Method, r.Params)
}

func (s *transparentView) call(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	name := tool.Name{Server: s.name, Tool: r.Name()}
	if e := s.face.opts.Tools.Snapshot().Lookup(name); e != nil && e.ListedFor(&r.Caller) && r.Stateless() {
		if err := mcpserver.CheckParamHeaders(r.Header, e.InputSchema, r.Arguments()); err != nil {
			return nil, err
		}
	}
	r.LendMemory()
	called, err := s.face.opts.Calls.Call(ctx, callWithParams(r, name))
	if err != nil {
		err = s.face.explain(err, &r.Caller, name.Server)
	}
	if first := mcp.SignInRequired(err); first != nil && canOpenURLs(r) {
		return nil, first
	}
	if e, ok := errors.AsType[*tool.Error](err); ok && (e.Kind == tool.ToolNotFound || e.Kind == tool.InvalidArguments) {
		if _, theirs := errors.AsType[*mcp.Error](err); !theirs {
			own := mcp.ToolError(e)
			own.Code = mcp.CodeInvalidParams // as MCP defines for tools/call
			return nil, own
		}
	}
	return called.Raw, err
}

// Notified implements mcpserver.Handler. It forwards a client's notification
// if the client may send it to the upstream. Notifications about this
// connection, with request ids or progress tokens, are not forwarded, because
// at the upstream they could refer to another caller's request.
func (s *transparentView) Notified(ctx context.Context, _ *mcpserver.Session, method string, params json.RawMessage) {
	switch method {
	case mcp.MethodInitialized, mcp.MethodCancelled, mcp.MethodProgress:
		return
	}
	caller := tool.CallerFrom(ctx)
	if err := s.face.opts.Calls.Permit(&caller, s.name, method); err != nil {
		s.face.log.WarnContext(ctx, "notification refused", "server", s.name, "method", tool.Shorten(method, 80), "caller", caller.ID, "err", err)
		return
	}
	if s.notifying.Add(1) > maxNotifications { // the server does not accept them
		s.notifying.Add(-1)
		s.face.log.WarnContext(ctx, "notification dropped: too many are queued for the server", "server", s.name, "method", tool.Shorten(method, 80), "caller", caller.ID)
		return
	}
	go func() {
		defer s.notifying.Add(-1)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
		defer cancel()
		if err := s.face.opts.Upstreams.Notify(ctx, s.name, caller.ID, method, params); err != nil {
			s.face.log.DebugContext(ctx, "cannot forward a notification", "server", s.name, "method", method, "err", err)
		}
	}()
}
