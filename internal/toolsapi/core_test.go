package toolsapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"junctor/internal/catalog"
	"junctor/internal/codemode"
	"junctor/internal/executor"
	"junctor/internal/httperr"
	"junctor/internal/httpserver"
	"junctor/internal/listing"
	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/results"
	"junctor/internal/search"
	"junctor/internal/sqlite"
	"junctor/internal/sqlite/sqlitetest"
	"junctor/internal/store"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// server is an in-process MCP server. Every tool returns its arguments, unless
// its name says otherwise.
type server struct {
	tools []string // definitions
	start chan struct{}
}

func (s server) Describe(context.Context, *mcpserver.Request) (mcpserver.Description, error) {
	return mcpserver.Description{Info: json.RawMessage(`{"name":"t","version":"1"}`), Capabilities: json.RawMessage(`{"tools":{}}`), Instructions: "Be kind."}, nil
}

func (s server) Notified(context.Context, *mcpserver.Session, string, json.RawMessage) {}

func (s server) Serve(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	switch r.Method {
	case "tools/list":
		return json.RawMessage(`{"tools":[` + strings.Join(s.tools, ",") + `]}`), nil
	case "tools/call":
		switch rawjson.FieldString(r.Params, "name") {
		case "fail":
			return json.RawMessage(`{"content":[{"type":"text","text":"it failed"}],"isError":true}`), nil
		case "refuse":
			return nil, &mcp.Error{Code: -32000, Message: "refused"}
		case "picture":
			return json.RawMessage(`{"content":[{"type":"image","data":"iVBORw0KGgo=","mimeType":"image/png"}],"big":12345678901234567890}`), nil
		}
		text, _ := json.Marshal(string(rawjson.Field(r.Params, "arguments")))
		return json.RawMessage(`{"content":[{"type":"text","text":` + string(text) + `}]}`), nil
	}
	return nil, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "method not found"}
}

func (s server) dial(ctx context.Context) (mcpclient.Transport, error) {
	if s.start != nil {
		select {
		case <-s.start:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	near, far := mcp.Pipe()
	host := mcpserver.New(mcpserver.Options{}, s)
	go func() { _ = host.ServeLink(context.Background(), far) }()
	return mcpclient.OverLink(near), nil
}

// core is the core below the API, wired as in app.
type core struct {
	catalog *catalog.Catalog
	search  *search.Index
}

func (c *core) ToolsChanged(o upstream.ToolSet) {
	c.catalog.Put(catalog.Server{Name: o.Config.Name, Guidance: o.Guidance, Tags: o.Config.Tags}, o.Tools)
	var docs []search.Doc
	for _, e := range c.catalog.Snapshot().Server(o.Config.Name).Tools {
		docs = append(docs, search.Doc{Name: e.Name, Description: e.Description, InputSchema: e.InputSchema, Tags: e.Tags})
	}
	c.search.Put(o.Config.Name, docs)
}
func (c *core) Removed(server string)                          { c.catalog.Remove(server); c.search.Remove(server) }
func (*core) StatusChanged(upstream.Status)                    {}
func (*core) Notified(string, string, string, json.RawMessage) {}

func definition(name, description, schema string) string {
	d, _ := json.Marshal(map[string]any{"name": name, "description": description, "inputSchema": json.RawMessage(schema)})
	return string(d)
}

// handlerOf returns a handler with only this API.
func handlerOf(a *API) http.Handler {
	mux := http.NewServeMux()
	a.Routes(mux)
	return httperr.WithRequestID(mux)
}

// files and web are the servers of most tests.
var (
	files = server{tools: []string{
		definition("read.file", "Read a file from disk.", `{"type":"object","properties":{"path":{"type":"string"},"lines":{"type":"integer"},"filter[x]":{"type":"integer"},"level":{"enum":[1,2]}},"required":["path"],"additionalProperties":false}`),
		definition("list", "List the files of a folder.", `{"type":"object"}`),
		`{"name":"fail","description":"Fails.","inputSchema":{"type":"object"},"x-unknown":[12345678901234567890]}`,
		definition("hidden", "Is disabled.", `{"type":"object"}`),
		definition("broken", "Takes text.", `{"type":"string"}`),
	}}
	web = server{tools: []string{
		definition("fetch", "Fetch a page of the web.", `{"type":"object","properties":{"url":{"type":"string","format":"uri","pattern":"^https"}}}`),
		definition("list", "List bookmarks.", `{"type":"object"}`),
		definition("picture", "Take a picture.", `{"type":"object"}`),
		definition("refuse", "Refuses.", `{"type":"object"}`),
	}}
)

// gateway runs a core with these servers and the API on top of it.
func gateway(t *testing.T, servers map[string]server, change func(*Options, *listing.Options)) (*API, *httptest.Server) {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	cfg := store.DefaultConfig()
	cfg.Path = sqlitetest.Create(t, filepath.Join(t.TempDir(), "junctor.db"))
	db, err := sqlite.Open(t.Context(), cfg, log)
	if err != nil {
		t.Fatal(err)
	}
	no := false
	c := &core{search: search.New(), catalog: catalog.New([]catalog.ToolRule{
		{Pattern: []string{"files:*"}, Tags: []string{"disk"}},
		{Pattern: []string{"*:hidden"}, Enabled: &no},
	}, nil)}
	var configs []upstream.Config
	dialers := map[string]upstream.Dialer{}
	for name, s := range servers {
		u := upstream.DefaultConfig()
		u.Name, u.Transport, u.StartTimeoutMs = name, upstream.InProcess, 60_000
		configs = append(configs, u)
		dialers[name] = s.dial
	}
	ups := upstream.NewSupervisor(configs, upstream.Options{Sink: c, InProcess: dialers, Log: log})
	x := executor.New(executor.Options{Catalog: c.catalog, Upstreams: ups, Calls: db, Log: log, Config: executor.DefaultConfig()})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{}, 2)
	go func() { _ = ups.Run(ctx); done <- struct{}{} }()
	go func() { _ = db.Run(ctx); done <- struct{}{} }()
	o, l := Options{Executor: x, Log: db, Version: "1.2.3"}, listing.Options{Catalog: c.catalog, Search: c.search, Upstreams: ups}
	if change != nil {
		change(&o, &l)
	}
	o.Tools = listing.New(l)
	o.Scripts = codemode.New(codemode.Options{Calls: x, Tools: o.Tools, Results: results.NewCache(), Config: codemode.DefaultConfig(), Log: log})
	api := New(o)
	handler := handlerOf(api)
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		caller := tool.Local
		switch r.Header.Get("X-Caller") {
		case "limited":
			caller = tool.Caller{ID: "key:limited", Name: "limited", Servers: []string{"web"}}
		case "nobody":
			caller = tool.Caller{ID: "nobody", Servers: []string{}, Tools: []string{}}
		}
		httpserver.LimitBody(func() int64 { return maxBody }, handler).ServeHTTP(w, r.WithContext(tool.WithCaller(r.Context(), caller)))
	}))
	t.Cleanup(func() {
		ts.CloseClientConnections()
		ts.Close()
		stop()
		<-done
		<-done
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return api, ts
}

// standard returns a gateway with both servers connected.
func standard(t *testing.T) *httptest.Server {
	t.Helper()
	var ups listing.Upstreams
	_, ts := gateway(t, map[string]server{"files": files, "web": web}, func(_ *Options, l *listing.Options) { ups = l.Upstreams })
	// The catalogue may have their tools before they are connected.
	if pending := ups.Await(t.Context()); len(pending) > 0 {
		t.Fatalf("still starting: %v", pending)
	}
	return ts
}

type response struct {
	status int
	header http.Header
	body   []byte
}

func (r response) code(t *testing.T) string {
	t.Helper()
	var e struct{ Code, Message, RequestID string }
	if err := json.Unmarshal(r.body, &e); err != nil || e.Message == "" || e.RequestID == "" {
		t.Errorf("not an error body: %s (%v)", r.body, err)
	}
	return e.Code
}

func (r response) has(t *testing.T, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !bytes.Contains(r.body, []byte(p)) {
			t.Errorf("body lacks %s:\n%s", p, r.body)
		}
	}
}

func request(t *testing.T, method, url, body string, headers ...string) response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response{res.StatusCode, res.Header, data}
}

func get(t *testing.T, url string, headers ...string) response {
	t.Helper()
	return request(t, "GET", url, "", headers...)
}

func post(t *testing.T, url, body string, headers ...string) response {
	t.Helper()
	return request(t, "POST", url, body, headers...)
}

// brokenLog is a store that is unavailable.
type brokenLog struct{ store.Log }

func (brokenLog) Available(context.Context) error { return errors.New("disk /secret/path is gone") }
func (brokenLog) Calls(context.Context, store.CallQuery) ([]store.Call, error) {
	return nil, errors.New("disk /secret/path is gone")
}

// within is the timeout for expected events in tests.
const within = 30 * time.Second

// maxBody is the size limit of request bodies in these tests.
const maxBody = 1 << 20
