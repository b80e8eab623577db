package executor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"junctor/internal/catalog"
	"junctor/internal/mcp"
	"junctor/internal/tool"
)

// resolve looks up the tool of the call. If it is unknown and an upstream that
// may have it is still starting, resolve waits for that upstream and retries.
func (x *Executor) resolve(ctx context.Context, f *callRun) (*catalog.Entry, error) {
	c := &f.call
	entry, err := x.Catalog.Snapshot().Resolve(&c.Caller, c.Server, c.Tool)
	if err == nil {
		return entry, nil
	}
	if kind := tool.KindOf(err); kind != tool.ToolNotFound && kind != tool.ServerNotFound {
		return nil, err
	}
	var wait []string
	if c.Server != "" {
		if !c.Caller.MaySee(c.Server) {
			return nil, err
		}
		wait = []string{c.Server}
	} else {
		wait = x.Upstreams.Connecting()
		if n, err := tool.ParseName(c.Tool); err == nil {
			wait = append(wait, n.Server)
		}
		wait = slices.DeleteFunc(wait, func(name string) bool { return !c.Caller.MaySee(name) })
	}
	var pending []string
	if len(wait) > 0 { // without names Await would wait for all, including hidden ones
		pending = x.Upstreams.Await(ctx, wait...)
	}
	f.stage("await")
	entry, err = x.Catalog.Snapshot().Resolve(&c.Caller, c.Server, c.Tool)
	if err == nil {
		return entry, nil
	}
	if why := x.down(ctx, f); why != nil {
		return nil, why
	}
	if len(pending) == 0 {
		return nil, err
	}
	e := *tool.AsError(err)
	e.Msg += fmt.Sprintf(" (still starting, and may have it: %s; try again shortly)", join(pending, 5))
	return nil, &e
}

// down pings the server of a call whose tool is unknown and returns why the
// server has no tools, or nil if it is not down. A server that was never
// connected is not in the catalog although it is configured, for example
// because a sign-in is missing.
func (x *Executor) down(ctx context.Context, f *callRun) error {
	server, _ := f.requested()
	if server == "" || !f.call.Caller.MaySee(server) {
		return nil
	}
	if s := x.Catalog.Snapshot().Server(server); s != nil && s.Callers == nil {
		return nil // connected; with Callers, the caller may have to sign in
	}
	unknown := f.name
	f.name.Server = server // dispatch uses its timeouts
	_, err := x.dispatch(ctx, f, tool.Request{Method: mcp.MethodPing, Caller: f.call.Caller.ID})
	if !errors.Is(err, tool.ErrDown) {
		if tool.KindOf(err) == tool.Timeout {
			return err // the server may have the tool
		}
		f.name = unknown
		return nil
	}
	e := *tool.AsError(err)
	if reason, ok := detail(e.Details, "reason"); ok {
		e.Msg, e.Details, e.RetryAfter = fmt.Sprintf("server %q is down and its tools are not known: %s", server, reason), map[string]any{"server": server, "reason": reason}, 0
	}
	return &e
}

// detail returns the string under key in an error's details.
func detail(details any, key string) (string, bool) {
	m, _ := details.(map[string]any)
	text, ok := m[key].(string)
	return text, ok
}
