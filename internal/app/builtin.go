package app

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"

	"junctor/internal/builtin"
	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// builtinCallers passes the caller of each call to the built-in server. All
// callers share one connection, so each call carries an id that is valid while
// it runs.
type builtinCallers struct {
	*upstream.Supervisor
	enabled func() bool // reports whether the server of that name is the built-in one
	calls   sync.Map    // map from id to tool.Caller
}

// Do implements executor.Upstreams.
func (b *builtinCallers) Do(ctx context.Context, server string, r tool.Request) (json.RawMessage, error) {
	if server == builtin.Name && r.Method == mcp.MethodToolsCall && b.enabled() {
		id := rand.Text()
		b.calls.Store(id, tool.CallerFrom(ctx))
		defer b.calls.Delete(id)
		r.Params = rawjson.SetField(r.Params, rawjson.AppendQuoted(nil, id), "_meta", builtin.MetaCaller)
	}
	return b.Supervisor.Do(ctx, server, r)
}

// caller returns the caller of a running call.
func (b *builtinCallers) caller(id string) (tool.Caller, bool) {
	c, ok := b.calls.Load(id)
	if !ok {
		return tool.Caller{}, false
	}
	return c.(tool.Caller), true
}
