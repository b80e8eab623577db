package discovery

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"junctor/internal/catalog"
	"junctor/internal/codemode"
	"junctor/internal/listing"
	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/results"
	"junctor/internal/search"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
	"junctor/internal/upstream"
	"junctor/internal/waiting"
)

// Calls executes calls and forwards other requests.
type Calls interface {
	Call(ctx context.Context, c tool.Call) (tool.Result, error)
	Forward(ctx context.Context, r tool.Forward) (json.RawMessage, error)
	Permit(caller *tool.Caller, server, method string) error
}

// Upstreams provides the state of the servers.
type Upstreams interface {
	StatusOf(server string) (upstream.Status, bool)
	Has(server string) bool
	Await(ctx context.Context, servers ...string) (pending []string)
	Info(server, caller string) (mcpclient.ServerInfo, bool)
	Describe(ctx context.Context, server, caller string, ex tool.Exchange) (mcpclient.ServerInfo, bool)
	Notify(ctx context.Context, server, caller, method string, params json.RawMessage) error
	FollowTasks(ctx context.Context, server, caller string, ex tool.Exchange, ids []string) (own []string, follow func(context.Context), err error)
}

// Scripts runs scripts.
type Scripts interface {
	Run(ctx context.Context, r codemode.Request) (codemode.Outcome, error)
	Warm()
}

// Options are the dependencies of a Face.
type Options struct {
	Tools        *listing.Service
	Calls        Calls
	Upstreams    Upstreams
	Scripts      Scripts
	Results      *results.Cache
	Config       Config
	Version      string
	Waiting      *waiting.Service     // stores tasks; nil disables tasks
	NewItemIndex func() *search.Index // creates an index of resources and prompts; if nil, only tools are searched
	Log          *slog.Logger

	// Server has the options of the views' MCP servers; New sets Info and Log.
	Server mcpserver.Options
}

// View selects what a client sees. The transparent view of a server has no
// mode.
type View struct {
	Mode    Mode
	Server  string
	Profile string // restricts the local user; "" for none
}

// ParseView parses a view: a mode, or "" for the configured one, and the name
// of a server for its transparent view.
func ParseView(mode, server string) (View, error) {
	switch {
	case server != "" && mode != "":
		return View{}, &tool.Error{Kind: tool.InvalidArguments, Msg: "a view of one server has no mode; remove one of the two"}
	case server != "":
		return View{Server: server}, nil
	case mode == "" || slices.Contains(MetaMode.Values(), mode):
		return View{Mode: Mode(mode)}, nil
	}
	return View{}, &tool.Error{Kind: tool.InvalidArguments, Msg: fmt.Sprintf("invalid mode %q; use meta, direct or code", mode)}
}

// Face serves MCP clients. It is safe for concurrent use.
type Face struct {
	opts    Options
	config  atomic.Pointer[Config]
	log     *slog.Logger
	info    json.RawMessage
	initial *catalog.Snapshot // at creation; Run announces later changes
	meta    *mcpserver.Server
	code    *mcpserver.Server
	direct  *mcpserver.Server
	view    *directView

	mu      sync.Mutex
	single  map[string]*transparentView // transparent views by server
	closed  bool
	follows subscriptions
}

// Sessions returns the number of open MCP sessions over HTTP.
func (f *Face) Sessions() int {
	n := 0
	for _, s := range f.mcpServers() {
		n += s.Sessions()
	}
	return n
}

// Answering returns the number of requests in progress; see
// [mcpserver.Server.Answering].
func (f *Face) Answering() int {
	n := 0
	for _, s := range f.mcpServers() {
		n += s.Answering()
	}
	return n
}

// mcpServers returns the servers of all views.
func (f *Face) mcpServers() []*mcpserver.Server {
	f.mu.Lock()
	defer f.mu.Unlock()
	all := []*mcpserver.Server{f.meta, f.direct, f.code}
	for _, s := range f.single {
		all = append(all, s.server)
	}
	return all
}

// New returns a Face. It starts no goroutines.
func New(o Options) *Face {
	f := &Face{opts: o, log: o.Log.With(telemetry.KeyComponent, "discovery"), single: map[string]*transparentView{}}
	f.config.Store(&o.Config)
	f.info = marshal(map[string]string{"name": "junctor", "title": "Junctor", "version": o.Version})
	f.meta = f.server(&metaView{face: f}, f.info)
	f.code = f.server(&metaView{face: f, code: true}, f.info)
	f.view = newDirectView(f)
	f.direct = f.server(f.view, f.info)
	f.initial = o.Tools.Snapshot()
	return f
}

// server returns the MCP server of a view. Results of a transparent view are
// the upstream's own, so its info is nil.
func (f *Face) server(h mcpserver.Handler, info json.RawMessage) *mcpserver.Server {
	o := f.opts.Server
	o.Log, o.Info = f.opts.Log, info
	switch h := h.(type) {
	case *metaView:
		o.View = "meta"
		if h.code {
			o.View = "code"
		}
	case *directView:
		o.View = "direct"
	case *transparentView:
		o.View = "server/" + h.name
	}
	return mcpserver.New(o, h)
}

// SetConfig replaces the settings for new requests.
func (f *Face) SetConfig(c Config) { f.config.Store(&c) }

// CurrentConfig returns the settings in effect.
func (f *Face) CurrentConfig() Config { return *f.config.Load() }

// SetMaxSessions sets the maximum number of sessions of each view.
func (f *Face) SetMaxSessions(n int) {
	f.mu.Lock()
	f.opts.Server.MaxSessions = n
	f.mu.Unlock()
	for _, s := range f.mcpServers() {
		s.SetMaxSessions(n)
	}
}

// MaxSessions returns the maximum number of sessions of each view.
func (f *Face) MaxSessions() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.opts.Server.MaxSessions
}

// Run notifies clients of changes of the catalogue until ctx is done, and then
// closes all sessions.
func (f *Face) Run(ctx context.Context) error {
	defer f.Close()
	changed := f.opts.Tools.Watch(ctx)
	last := f.initial
	for {
		next := f.opts.Tools.Snapshot()
		f.announce(last, next)
		last = next
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// RightsChanged drops what is cached by the callers' rights and makes clients
// list again, after a change of profiles or credentials.
func (f *Face) RightsChanged() {
	f.view.forget()
	for _, v := range f.mcpServers() {
		if v == f.meta || v == f.code { // their tool lists never change
			continue
		}
		for _, method := range []string{mcp.MethodToolsChanged, mcp.MethodPromptsChanged, mcp.MethodResourcesChanged} {
			v.Notify(method, nil)
		}
	}
}

// Close closes every session and stream.
func (f *Face) Close() {
	f.mu.Lock()
	f.closed = true // no views are added
	f.mu.Unlock()
	for _, s := range f.mcpServers() {
		s.Close()
	}
	f.mu.Lock()
	clear(f.single)
	f.mu.Unlock()
}

// announce notifies the views of the differences between two snapshots, each
// caller only of servers that it may see, and closes the views of removed
// servers.
func (f *Face) announce(last, next *catalog.Snapshot) {
	var changed []string
	for _, s := range next.Servers() {
		if !sameTools(last.Server(s.Name), s) {
			changed = append(changed, s.Name)
			f.notifyTransparent(s.Name, nil, mcp.MethodToolsChanged, nil)
		}
	}
	for _, s := range last.Servers() {
		if next.Server(s.Name) == nil {
			changed = append(changed, s.Name)
		}
	}
	if len(changed) > 0 {
		f.direct.NotifyCallers(func(c *tool.Caller) bool { return slices.ContainsFunc(changed, c.MaySee) }, mcp.MethodToolsChanged, nil)
	}
	f.prune()
}

// sameTools reports whether a client would see the same tools.
func sameTools(a, b *catalog.Server) bool {
	return a != nil && slices.EqualFunc(a.Tools, b.Tools, func(e, o *catalog.Entry) bool {
		return e.Enabled == o.Enabled && string(e.Raw) == string(o.Raw)
	})
}

// Notified handles a notification of an upstream that does not belong to a
// call. It is for one caller, or for all subscribers if caller is "", and is
// only sent to callers whose rights cover it: a caller may subscribe to the
// URI of any server.
func (f *Face) Notified(server, caller, method string, params json.RawMessage) {
	to := func(c *tool.Caller) bool {
		return (caller == "" || c.ID == caller) && c.MaySee(server) &&
			(method != mcp.MethodResourceUpdated || c.MayUse(tool.Name{Server: server, Tool: mcp.MethodSubscribe}))
	}
	f.notifyTransparent(server, to, method, params)
	switch method {
	case mcp.MethodPromptsChanged, mcp.MethodResourcesChanged:
		f.view.forget()
		f.direct.NotifyCallers(to, method, nil)
	case mcp.MethodResourceUpdated:
		uri := rawjson.FieldString(params, "uri")
		f.direct.NotifyCallers(to, method, rawjson.SetField(params, marshal(alias(server, uri)), "uri"))
		f.direct.NotifyCallers(func(c *tool.Caller) bool { return to(c) && f.view.mayOwn(c, server, uri) }, method, params)
	}
}

// marshal returns the JSON of a value that cannot fail to marshal, without
// HTML escapes, which cost tokens.
func marshal(v any) json.RawMessage { return rawjson.MarshalOrNull(v) }

// callOf returns the tool call of a request.
func callOf(r *mcpserver.Request, server, name string) tool.Call {
	c := tool.Call{
		Face: "discovery", Caller: r.Caller, Session: sessionID(r), Server: server, Tool: name,
		Meta: r.Meta(), Exchange: r.Exchange,
	}
	if r.Session != nil {
		if level := r.Session.LogLevel(); level != "" {
			c.Meta = rawjson.SetField(c.Meta, marshal(level), mcp.MetaLogLevel)
		}
	}
	return c
}

// sessionID returns the id of the request's session, or "" if it has none.
func sessionID(r *mcpserver.Request) string {
	if r.Session == nil {
		return ""
	}
	return r.Session.ID()
}

// forward forwards a request to an upstream unchanged.
func (f *Face) forward(ctx context.Context, r *mcpserver.Request, server, method string, params json.RawMessage) (json.RawMessage, error) {
	return f.opts.Calls.Forward(ctx, tool.Forward{
		Face: "discovery", Caller: r.Caller, Session: sessionID(r), Server: server, Method: method, Params: params, Exchange: r.Exchange,
	})
}
