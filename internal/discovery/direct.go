package discovery

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"junctor/internal/catalog"
	"junctor/internal/mcp"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// Limits of a page of a list, in items and bytes. They are large because few
// clients request a second page.
const (
	directPage  = 1000
	directBytes = 4 << 20
)

// directView lists every enabled tool as server__tool, and the resources,
// templates, prompts and completions of all upstreams.
type directView struct {
	face  *Face
	tools atomic.Pointer[toolsOfSnapshot]

	mu    sync.Mutex
	lists map[string]*callerLists // the lists last fetched for each caller
	found map[string]*itemIndex   // the items that each caller can search
}

// toolsOfSnapshot is the table of one snapshot.
type toolsOfSnapshot struct {
	snapshot *catalog.Snapshot
	*table[*catalog.Entry]
}

func newDirectView(f *Face) *directView {
	return &directView{face: f, lists: map[string]*callerLists{}, found: map[string]*itemIndex{}}
}

// Describe implements mcpserver.Handler.
func (v *directView) Describe(_ context.Context, r *mcpserver.Request) (mcpserver.Description, error) {
	return mcpserver.Description{
		Info:         v.face.info,
		Capabilities: v.face.tasksIn(`{"completions":{},"logging":{},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"tools":{"listChanged":true}}`, r),
		Instructions: v.face.allInstructions(&r.Caller),
		TTL:          time.Minute,
	}, nil
}

// Notified implements mcpserver.Handler. Notifications of clients are ignored.
func (v *directView) Notified(context.Context, *mcpserver.Session, string, json.RawMessage) {}

// Serve implements mcpserver.Handler.
func (v *directView) Serve(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	switch r.Method {
	case mcp.MethodToolsList:
		return v.listTools(ctx, r)
	case mcp.MethodToolsCall:
		return v.callTool(ctx, r)
	case mcp.MethodPromptsList, mcp.MethodResourcesList, mcp.MethodTemplatesList:
		return v.list(ctx, r, kindOf(r.Method))
	case mcp.MethodPromptsGet:
		return v.getPrompt(ctx, r)
	case mcp.MethodResourcesRead:
		return v.readResource(ctx, r)
	case mcp.MethodSubscribe:
		return v.subscribe(ctx, r)
	case mcp.MethodUnsubscribe:
		return v.face.follows.unsubscribe(ctx, v.face, r)
	}
	return v.face.serveCommon(ctx, r)
}

// current returns the table of the current tools.
func (v *directView) current() *toolsOfSnapshot {
	snap := v.face.opts.Tools.Snapshot()
	t := v.tools.Load()
	if t == nil || t.snapshot != snap {
		t = &toolsOfSnapshot{snap, toolTable(snap)}
		v.tools.Store(t)
	}
	return t
}

func (v *directView) listTools(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	v.face.opts.Tools.Await(ctx, &r.Caller)
	t := v.current()
	out := []byte(`{"tools":[`)
	names := t.after(rawjson.FieldString(r.Params, "cursor"))
	cursor, n, origin := "", 0, originOf(r)
	for i, name := range names {
		e := t.byName[name]
		if !e.Enabled || !e.UI.Allows(origin) || !e.UsableBy(&r.Caller) {
			continue
		}
		if n == directPage || n > 0 && len(out)+len(e.Raw) > directBytes {
			cursor = names[i-1]
			break
		}
		out = rawjson.AppendComma(out)
		definition := rawjson.SetField(e.Raw, marshal(name), "name")
		if bytes.Contains(definition, []byte("resourceUri")) {
			definition = v.withInterfaceAlias(ctx, r, e.Name.Server, definition)
		}
		out = append(out, v.face.taskSupport(r, definition)...)
		n++
	}
	out = append(out, ']')
	if cursor != "" {
		out = append(append(out, `,"nextCursor":`...), marshal(cursor)...)
	}
	return append(out, `,"ttlMs":60000,"cacheScope":"private"}`...), nil
}

func (v *directView) callTool(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	name := r.Name()
	e := v.current().byName[name]
	if e == nil || !e.UsableBy(&r.Caller) {
		v.face.opts.Tools.Await(ctx, &r.Caller)
		if e = v.current().byName[name]; e == nil || !e.UsableBy(&r.Caller) {
			if err := v.signInFor(ctx, r, name); err != nil {
				return signIn(r, err, tool.Name{})
			}
			return nil, v.noTool(r, name)
		}
	}
	if err := mcpserver.CheckParamHeaders(r.Header, e.InputSchema, r.Arguments()); err != nil && r.Stateless() {
		return nil, err
	}
	call := callWithParams(r, e.Name)
	result, err := v.face.execute(ctx, r, call)
	if err != nil {
		err = v.face.explain(err, &r.Caller, call.Server)
	}
	if _, theirs := errors.AsType[*mcp.Error](err); err == nil || theirs || ctx.Err() != nil {
		return result, err
	}
	return signIn(r, err, e.Name)
}

// callWithParams returns the call of a tool with the params of the request
// unchanged, except for the name.
func callWithParams(r *mcpserver.Request, name tool.Name) tool.Call {
	call := callOf(r, name.Server, name.Tool)
	call.Arguments, call.Params, call.Origin = r.Arguments(), r.Params, originOf(r)
	return call
}

// originOf returns the origin of a request's calls. A client that renders apps
// decides which tools its model sees, and so does a client of the transparent
// view, which gets the server's own list.
func originOf(r *mcpserver.Request) tool.Origin {
	if r.Exchange.Transparent || rawjson.Field(r.Exchange.Capabilities, "extensions", mcp.ExtensionUI) != nil {
		return tool.ByClient
	}
	return tool.ByModel
}

// noTool returns the protocol error for a tool that does not exist.
func (v *directView) noTool(r *mcpserver.Request, name string) error {
	t := v.current()
	var visible []string
	for _, n := range t.names {
		if e := t.byName[n]; e.Enabled && e.UsableBy(&r.Caller) {
			visible = append(visible, n)
		}
	}
	return unknown("tool", name, visible)
}

// unknown returns the error for a name that does not exist, with similar
// names.
func unknown(what, name string, names []string) error {
	msg := fmt.Sprintf("unknown %s %q", what, tool.Shorten(name, 100)) + catalog.DidYouMean(catalog.Nearest(name, names, 5))
	return &mcp.Error{Code: mcp.CodeInvalidParams, Message: msg}
}

func (v *directView) getPrompt(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	p, err := v.prompt(ctx, r, r.Name())
	if err != nil {
		return nil, err
	}
	return v.face.forward(ctx, r, p.Server, r.Method, rawjson.SetField(r.Params, marshal(p.Tool), "name"))
}

// prompt resolves the public name of a prompt.
func (v *directView) prompt(ctx context.Context, r *mcpserver.Request, name string) (tool.Name, error) {
	for _, fresh := range []bool{false, true} {
		l, err := v.fetch(ctx, r, prompts, fresh)
		if err != nil {
			return tool.Name{}, err
		}
		if p, ok := l.names.byName[name]; ok {
			return p, nil
		}
		if fresh {
			return tool.Name{}, unknown("prompt", name, l.names.names)
		}
	}
	return tool.Name{}, nil
}

func (v *directView) complete(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	switch kind := rawjson.FieldString(r.Params, "ref", "type"); kind {
	case "ref/prompt":
		p, err := v.prompt(ctx, r, rawjson.FieldString(r.Params, "ref", "name"))
		if err != nil {
			return nil, err
		}
		return v.face.forward(ctx, r, p.Server, r.Method, rawjson.SetField(r.Params, marshal(p.Tool), "ref", "name"))
	case "ref/resource":
		uri := rawjson.FieldString(r.Params, "ref", "uri")
		owners, own, err := v.owners(ctx, r, uri)
		if err != nil {
			return nil, err
		}
		return v.firstOf(owners, uri, func(server string) (json.RawMessage, error) {
			return v.face.forward(ctx, r, server, r.Method, rawjson.SetField(r.Params, marshal(own), "ref", "uri"))
		})
	default:
		return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "ref.type must be ref/prompt or ref/resource"}
	}
}

func (v *directView) readResource(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	uri := rawjson.FieldString(r.Params, "uri")
	owners, own, err := v.owners(ctx, r, uri)
	if err != nil {
		return nil, err
	}
	result, err := v.firstOf(owners, uri, func(server string) (json.RawMessage, error) {
		return v.face.forward(ctx, r, server, r.Method, rawjson.SetField(r.Params, marshal(own), "uri"))
	})
	if err != nil || own == uri {
		return result, err
	}
	return renamed(result, own, uri), nil
}

func (v *directView) subscribe(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	uri := rawjson.FieldString(r.Params, "uri")
	owners, own, err := v.owners(ctx, r, uri)
	if err != nil {
		return nil, err
	}
	return v.firstOf(owners, uri, func(server string) (json.RawMessage, error) {
		return v.face.follows.change(ctx, v.face, r, server, own)
	})
}

// firstOf calls ask for one server after the other until one has the resource.
// The error of a server that may have it takes precedence over "not found".
func (v *directView) firstOf(servers []string, uri string, ask func(server string) (json.RawMessage, error)) (json.RawMessage, error) {
	var worst error
	for _, server := range servers {
		result, err := ask(server)
		if err == nil {
			return result, nil
		}
		if len(servers) == 1 || !isNotFound(err) {
			worst = err
		}
	}
	if worst == nil {
		worst = &mcp.Error{Code: mcp.CodeResourceNotFound, Message: fmt.Sprintf("no server has the resource %q", tool.Shorten(uri, 200))}
	}
	return nil, worst
}

// isNotFound reports whether an upstream's error means that the item does not
// exist there.
func isNotFound(err error) bool {
	theirs, ok := errors.AsType[*mcp.Error](err)
	return ok && (theirs.Code == mcp.CodeResourceNotFound || theirs.Code == mcp.CodeInvalidParams || theirs.Code == mcp.CodeMethodNotFound)
}
