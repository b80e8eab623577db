package control

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/catalog"
	"junctor/internal/executor"
	"junctor/internal/httperr"
	"junctor/internal/httpserver"
	"junctor/internal/listing"
	"junctor/internal/mcpclient"
	"junctor/internal/search"
	"junctor/internal/store"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// core is a scripted gateway.
type core struct {
	catalog   *catalog.Catalog
	index     *search.Index
	keys      []store.Key
	keyErr    error
	last      tool.Call
	forwarded tool.Forward
	info      mcpclient.ServerInfo
	call      func(context.Context, tool.Call) (tool.Result, error)
	awaited   []string
	edits     []string
	editErr   error
	mu        sync.Mutex // of status
	status    []upstream.Status
	changed   chan struct{} // nil for no changes
}

func (c *core) Connecting() (names []string) {
	for _, s := range c.status {
		if s.State == upstream.Connecting {
			names = append(names, s.Name)
		}
	}
	return names
}

func (c *core) Stats(tool.Name) executor.Stats {
	return executor.Stats{Calls: 3, Circuit: executor.Closed}
}

func (c *core) Status() []upstream.Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

func (c *core) setStatus(list ...upstream.Status) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = list
}

func (c *core) Watch(context.Context) <-chan struct{} { return c.changed }
func (c *core) AddKey(_ context.Context, k store.Key) error {
	c.keys = append(c.keys, k)
	return c.keyErr
}

func (c *core) Keys(context.Context) ([]store.Key, error) { return c.keys, c.keyErr }
func (c *core) Restart(name string) error                 { return c.edit("restart " + name) }
func (c *core) Show() (Configuration, error)              { return Configuration{Text: "shown"}, nil }
func (c *core) Schema() json.RawMessage                   { return json.RawMessage(`{"title":"schema"}`) }
func (c *core) SetValues(values map[string]json.RawMessage) error {
	return c.edit(fmt.Sprintf("set %s", values))
}

func (c *core) SetEnabled(name string, on bool) error { return c.edit(fmt.Sprint("enable ", name, on)) }
func (c *core) RemoveServer(name string) error        { return c.edit("remove " + name) }
func (c *core) edit(what string) error                { c.edits = append(c.edits, what); return c.editErr }
func (c *core) Server(name string) (json.RawMessage, error) {
	return json.RawMessage(`{"command":"` + name + `"}`), c.editErr
}

func (c *core) SetTool(name tool.Name, enabled *bool, approval *catalog.Approval) error {
	return c.edit(fmt.Sprint("tool ", name, enabled != nil && *enabled, approval != nil))
}

func (c *core) SetServer(name string, entry json.RawMessage) error {
	return c.edit("set " + name + " " + string(entry))
}

func (c *core) AddServers(_ json.RawMessage, _ bool) ([]string, error) {
	return []string{"n"}, c.edit("add")
}

func (c *core) Call(ctx context.Context, call tool.Call) (tool.Result, error) {
	c.last = call
	return c.call(ctx, call)
}

func (c *core) Forward(_ context.Context, r tool.Forward) (json.RawMessage, error) {
	c.forwarded = r
	return json.RawMessage(`{"prompts":[]}`), c.editErr
}

func (c *core) Await(_ context.Context, servers ...string) []string {
	c.awaited = append(c.awaited, strings.Join(servers, ","))
	return nil
}

func (c *core) Info(string, string) (mcpclient.ServerInfo, bool) { return c.info, c.info.Name != "" }

func (c *core) Diagnose(name string) (upstream.Status, bool) { return c.StatusOf(name) }
func (c *core) StatusOf(name string) (upstream.Status, bool) {
	for _, s := range c.status {
		if s.Name == name {
			return s, true
		}
	}
	return upstream.Status{}, false
}

func (c *core) RevokeKey(_ context.Context, name string, _ time.Time) (store.Key, error) {
	for _, k := range c.keys {
		if k.Name == name {
			return k, nil
		}
	}
	return store.Key{}, store.ErrNotFound
}

func newCore(t *testing.T) *core {
	t.Helper()
	off := false
	c := &core{
		catalog: catalog.New([]catalog.ToolRule{
			{Pattern: []string{"fs:write"}, Enabled: &off},
			{Pattern: []string{"fs:read"}, Tags: []string{"files"}},
		}, func(d tool.Definition) catalog.Review {
			if d.Name.Tool == "odd" {
				return catalog.Review{Changed: true, Flags: []string{"hidden text"}}
			}
			return catalog.Review{}
		}),
		index:  search.New(),
		status: []upstream.Status{{Name: "fs", State: upstream.Connected}, {Name: "git", State: upstream.Connecting}},
		call: func(_ context.Context, call tool.Call) (tool.Result, error) {
			if call.Exchange.Notify != nil {
				call.Exchange.Notify("notifications/progress", json.RawMessage(`{"progress":1}`))
			}
			return tool.Result{Raw: json.RawMessage(`{"content":[]}`)}, nil
		},
	}
	for server, tools := range map[string][]string{"fs": {"read", "write"}, "git": {"commit", "odd"}} {
		var defs []tool.Definition
		var docs []search.Doc
		for _, name := range tools {
			d, err := tool.ParseDefinition(server, json.RawMessage(fmt.Sprintf(`{"name":%q,"description":"To %s things","inputSchema":{"type":"object"}}`, name, name)))
			if err != nil {
				t.Fatal(err)
			}
			defs = append(defs, d)
			docs = append(docs, search.Doc{Name: d.Name, Description: d.Description})
		}
		c.catalog.Put(catalog.Server{Name: server, Guidance: tool.Guidance{Text: "use with care"}, Description: "about " + server}, defs)
		c.index.Put(server, docs)
	}
	return c
}

func (c *core) handler() http.Handler {
	mux := http.NewServeMux()
	New(Options{
		Tools: listing.New(listing.Options{Catalog: c.catalog, Search: c.index, Upstreams: c}), Calls: c, Servers: c, Settings: c, Keys: c,
		Status: func(context.Context) any { return map[string]bool{"ok": true} },
	}).Routes(mux)
	return httperr.WithRequestID(httpserver.LimitBody(func() int64 { return 2000 }, mux))
}

func (c *core) ask(caller tool.Caller, method, path, accept, body string) (int, string) {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	c.handler().ServeHTTP(w, r.WithContext(tool.WithCaller(r.Context(), caller)))
	return w.Code, w.Body.String()
}
