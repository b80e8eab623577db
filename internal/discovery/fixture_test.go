package discovery

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/catalog"
	"junctor/internal/codemode"
	"junctor/internal/executor"
	"junctor/internal/listing"
	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/reserved"
	"junctor/internal/results"
	"junctor/internal/search"
	"junctor/internal/store"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// testServer is an in-process upstream that supports all of MCP: a real server
// with real messages.
type testServer struct {
	server *mcpserver.Server
	old    bool // supports only the handshake era
	caps   string
	tools  []string
	words  string                  // instructions
	lists  map[string]string       // results that replace the default ones, by method
	before func(what string) error // called with each method and its target; may be nil

	mu        sync.Mutex
	resources []string
	seen      []string // methods and their targets
}

const testCapabilities = `{"completions":{},"logging":{},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"tools":{"listChanged":true}}`

func newTestServer(tools ...string) *testServer {
	d := &testServer{caps: testCapabilities, tools: tools, resources: []string{"note:one", "note:two"}}
	// 100 scripts with 10 calls each exceed the default limit of calls per
	// client.
	d.server = mcpserver.New(mcpserver.Options{DrainTimeout: time.Millisecond, MaxCalls: 2000}, d)
	return d
}

func (d *testServer) Describe(context.Context, *mcpserver.Request) (mcpserver.Description, error) {
	return mcpserver.Description{
		Info:         json.RawMessage(`{"name":"desk","version":"1.2.3","icons":[{"src":"data:x"}]}`),
		Capabilities: json.RawMessage(d.caps), Instructions: d.words,
	}, nil
}

func (d *testServer) Notified(_ context.Context, _ *mcpserver.Session, method string, params json.RawMessage) {
	d.saw(method + " " + string(params))
}

func (d *testServer) saw(what string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen = append(d.seen, what)
}

// forget clears the recorded requests.
func (d *testServer) forget() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.seen = nil
}

func (d *testServer) has(what string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.seen {
		if strings.HasPrefix(s, what) {
			return true
		}
	}
	return false
}

func (d *testServer) Serve(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	name := rawjson.FieldString(r.Params, "name") + rawjson.FieldString(r.Params, "uri")
	d.saw(r.Method + " " + name)
	if d.before != nil {
		if err := d.before(r.Method + " " + name); err != nil {
			return nil, err
		}
	}
	d.mu.Lock()
	own, ok := d.lists[r.Method]
	d.mu.Unlock()
	if ok {
		return json.RawMessage(own), nil
	}
	switch r.Method {
	case "tools/list":
		return json.RawMessage(`{"tools":[` + strings.Join(d.tools, ",") + `],"custom":true}`), nil
	case "tools/call":
		return d.call(ctx, r, name)
	case "prompts/list":
		return json.RawMessage(`{"prompts":[{"name":"greet","title":"Greet","arguments":[{"name":"who"}]}]}`), nil
	case "prompts/get":
		if name == "tool-descriptions" {
			return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "no such prompt"}
		}
		return json.RawMessage(`{"messages":[{"role":"user","content":{"type":"text","text":"` + name + `"}}],"odd":1}`), nil
	case "resources/list":
		d.mu.Lock()
		defer d.mu.Unlock()
		n, _ := strconv.Atoi(rawjson.FieldString(r.Params, "cursor"))
		out := `{"resources":[{"uri":"` + d.resources[n] + `","name":"r"}]`
		if n+1 < len(d.resources) {
			out += `,"nextCursor":"` + strconv.Itoa(n+1) + `"`
		}
		return json.RawMessage(out + `}`), nil
	case "resources/templates/list":
		return json.RawMessage(`{"resourceTemplates":[{"uriTemplate":"made:{id}/x","name":"t"}]}`), nil
	case "resources/read":
		if !strings.HasPrefix(name, "note:") && !strings.HasPrefix(name, "made:") && name != "ui://x" {
			return nil, &mcp.Error{Code: mcp.CodeResourceNotFound, Message: "no " + name}
		}
		if name == "ui://x" {
			return json.RawMessage(`{"contents":[{"uri":"ui://x","text":"page"},{"uri":"ui://y","text":"part"}],"odd":1}`), nil
		}
		return json.RawMessage(`{"contents":[{"uri":"` + name + `","text":"of the desk"}]}`), nil
	case "completion/complete":
		return json.RawMessage(`{"completion":{"values":[` + string(marshal(rawjson.FieldString(r.Params, "ref", "name")+rawjson.FieldString(r.Params, "ref", "uri"))) + `]}}`), nil
	case "resources/subscribe", "resources/unsubscribe", "logging/setLevel":
		return json.RawMessage(`{}`), nil
	case "tasks/list":
		return json.RawMessage(`{"tasks":[]}`), nil
	case "vendor/method":
		return json.RawMessage(`{"echo":` + string(r.Params) + `}`), nil
	}
	return nil, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "no method " + r.Method}
}

func (d *testServer) call(ctx context.Context, r *mcpserver.Request, name string) (json.RawMessage, error) {
	arguments := rawjson.Field(r.Params, "arguments")
	switch name {
	case "picture":
		return json.RawMessage(`{"content":[{"type":"image","data":"AAAA","mimeType":"image/png"},{"type":"hologram","n":12345678901234567890}],"structuredContent":{"a": 1.50},"extra":[ 1 ]}`), nil
	case "ask":
		got, err := r.Exchange.Ask(ctx, "elicitation/create", json.RawMessage(`{"message":"sure?","requestedSchema":{"type":"object","properties":{}}}`))
		if err != nil {
			return nil, err
		}
		return json.RawMessage(`{"content":[{"type":"text","text":` + string(marshal(string(got))) + `}]}`), nil
	case "issue_page":
		page, _ := strconv.Atoi(string(rawjson.Field(arguments, "page")))
		list := make([]map[string]any, 50)
		for i := range list {
			n := page*50 + i
			list[i] = map[string]any{"number": n, "title": fmt.Sprintf("Issue %d of the project", n), "state": []string{"open", "closed"}[n%2], "author": fmt.Sprintf("user%d", n%7), "comments": n % 13}
		}
		return json.RawMessage(`{"content":[{"type":"text","text":` + string(marshal(string(marshal(list)))) + `}]}`), nil
	case "refuse":
		return nil, &mcp.Error{Code: -32099, Message: "refused", Data: json.RawMessage(`{"x":1}`)}
	case "progress":
		token := rawjson.Field(r.Params, "_meta", "progressToken")
		r.Exchange.Notify("notifications/message", json.RawMessage(`{"level":"info","data":"on it"}`))
		for i := range 3 {
			r.Exchange.Notify("notifications/progress", fmt.Appendf(nil, `{"progressToken":%s,"progress":%d}`, token, i))
		}
	case "notes":
		token := rawjson.Field(r.Params, "_meta", "progressToken")
		r.Exchange.Notify("notifications/progress", fmt.Appendf(nil, `{"progressToken":%s,"progress":1}`, token))
		for _, method := range []string{"notifications/message", "notifications/elicitation/complete"} {
			r.Exchange.Notify(method, json.RawMessage(`{"level":"error","elicitationId":"e","data":1}`))
		}
	case "wait":
		<-ctx.Done()
		d.saw("cancelled")
		return nil, ctx.Err()
	}
	return json.RawMessage(`{"content":[{"type":"text","text":` + string(marshal(name+" "+string(arguments))) + `}]}`), nil
}

// dial connects to the server. For a server of the handshake era it goes
// through a link that supports only that era.
func (d *testServer) dial(context.Context) (mcpclient.Transport, error) {
	near, far := mcp.Pipe()
	var link mcp.Link = far
	if d.old {
		link = oldEra{far}
	}
	go func() { _ = d.server.ServeLink(context.Background(), link) }()
	return mcpclient.OverLink(near), nil
}

type oldEra struct{ mcp.Link }

func (l oldEra) Receive() (mcp.Message, error) {
	for {
		m, err := l.Link.Receive()
		if err != nil || m.Method != "server/discover" {
			return m, err
		}
		if err := l.Send(&mcp.Message{ID: m.ID, Error: &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "what?"}}); err != nil {
			return m, err
		}
	}
}

// fixture is a Face over a real core.
type fixture struct {
	*Face
	t       testing.TB
	catalog *catalog.Catalog
	index   *search.Index
	sup     *upstream.Supervisor
	dialers map[string]upstream.Dialer
	url     string

	mu    sync.Mutex
	calls []store.Call
}

func (r *fixture) ToolsChanged(o upstream.ToolSet) {
	r.catalog.Put(catalog.Server{
		Name: o.Config.Name, Title: o.Info.Title, Description: o.Config.Description, Guidance: o.Guidance,
		Tags: o.Config.Tags, Allows: o.Config.ToolConfiguration.Allows,
	}, o.Tools)
	var docs []search.Doc
	for _, d := range o.Tools {
		docs = append(docs, search.Doc{Name: d.Name, Description: d.Description, InputSchema: d.InputSchema})
	}
	r.index.Put(o.Config.Name, docs)
}
func (r *fixture) Removed(server string) {
	r.catalog.Remove(server)
	r.index.Remove(server)
}
func (r *fixture) StatusChanged(upstream.Status) {}
func (r *fixture) Notified(server, caller, method string, params json.RawMessage) {
	if r.Face != nil {
		r.Face.Notified(server, caller, method, params)
	}
}

func (r *fixture) Append(_ context.Context, c store.Call) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
	return nil
}

// inProcess returns the configuration of an in-process upstream.
func inProcess(name string) upstream.Config {
	c := upstream.DefaultConfig()
	c.Name, c.Transport = name, upstream.InProcess
	return c
}

// newFixture runs a Face over the servers. A nil server is an unreachable
// upstream.
func newFixture(t testing.TB, servers map[string]*testServer, edit ...func(*fixture, *[]upstream.Config)) *fixture {
	t.Helper()
	dialers := map[string]upstream.Dialer{}
	r := &fixture{t: t, catalog: catalog.New(nil, nil), index: search.New(), dialers: dialers}
	var configs []upstream.Config
	for name, d := range servers {
		configs = append(configs, inProcess(name))
		if d != nil {
			dialers[name] = d.dial
		} else {
			dialers[name] = func(context.Context) (mcpclient.Transport, error) { return nil, fmt.Errorf("out of order") }
		}
	}
	for _, e := range edit {
		e(r, &configs)
	}
	log := slog.New(slog.DiscardHandler)
	r.sup = upstream.NewSupervisor(configs, upstream.Options{
		Sink: r, Log: log, Name: "junctor", InProcess: dialers,
		Capabilities: mcpclient.Capabilities{Sampling: true, ElicitationForm: true, ElicitationURL: true, Roots: true, Extensions: upstream.ForwardedExtensions},
	})
	cache := results.NewCache()
	exec := executor.New(executor.Options{Catalog: r.catalog, Upstreams: r.sup, Calls: r, Log: log, Results: cache, Config: executor.DefaultConfig()})
	calls := &reserved.Calls{Executor: exec, Results: cache, PageSize: func() int { return r.CurrentConfig().MaxResultBytes }}
	tools := listing.New(listing.Options{Catalog: r.catalog, Search: r.index, Upstreams: r.sup})
	r.Face = New(Options{
		Tools: tools, Calls: calls, Upstreams: r.sup, Results: cache, NewItemIndex: r.index.Supplement, Config: DefaultConfig(), Version: "0.0.0", Log: log,
		Scripts: codemode.New(codemode.Options{Engine: engine, Calls: calls, Tools: tools, Results: cache, Config: codemode.DefaultConfig(), Log: log}),
	})
	calls.Items = r.Face
	hs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		r.Face.ServeHTTP(w, q.WithContext(tool.WithCaller(q.Context(), tool.Local)))
	}))
	r.url = hs.URL
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = r.sup.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		hs.CloseClientConnections()
		hs.Close()
		wg.Wait()
	})
	r.sup.Await(ctxFor(t))
	r.Face.initial = tools.Snapshot() // later notifications are caused by the test
	wg.Go(func() { _ = r.Face.Run(ctx) })
	return r
}

func ctxFor(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits until ok returns true.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	ctx := ctxFor(t)
	for !ok() {
		select {
		case <-ctx.Done():
			t.Fatalf("never: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// client connects to a view over a byte stream, in the era of version.
func (r *fixture) client(version string, v View, edit ...func(*mcpclient.Options)) *mcpclient.Client {
	r.t.Helper()
	return r.clientAs(tool.Local, version, v, edit...)
}

// clientAs is like client, for the given caller.
func (r *fixture) clientAs(caller tool.Caller, version string, v View, edit ...func(*mcpclient.Options)) *mcpclient.Client {
	r.t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	ctx, cancel := context.WithCancel(tool.WithCaller(context.Background(), caller))
	served := make(chan struct{})
	r.t.Cleanup(func() { cancel(); <-served })
	go func() {
		defer close(served)
		if err := r.ServeStream(ctx, v, inR, outW); err != nil && ctx.Err() == nil {
			r.t.Logf("ServeStream: %v", err)
		}
		outW.Close()
		inR.Close()
	}()
	o := mcpclient.Options{Name: "test", Protocol: version, Pin: true, DiscoverTimeout: time.Hour}
	for _, e := range edit {
		e(&o)
	}
	c, err := mcpclient.Connect(ctxFor(r.t), mcpclient.OverLink(mcp.NewStream(outR, inW, mcp.StreamOptions{})), o)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { c.Close() })
	return c
}

// do sends a request and fails the test if it fails.
func do(t testing.TB, c *mcpclient.Client, method, params string) json.RawMessage {
	t.Helper()
	result, err := c.Do(ctxFor(t), tool.Request{Method: method, Params: json.RawMessage(params)})
	if err != nil {
		t.Fatalf("%s %s: %v", method, params, err)
	}
	return result
}

// callText calls a meta-tool and returns the text of its result.
func callText(t testing.TB, c *mcpclient.Client, name, arguments string) (string, bool) {
	t.Helper()
	result := do(t, c, "tools/call", `{"name":"`+name+`","arguments":`+arguments+`}`)
	var text strings.Builder
	for block := range rawjson.Elements(rawjson.Field(result, "content")) {
		text.WriteString(rawjson.FieldString(block, "text"))
	}
	return text.String(), string(rawjson.Field(result, "isError")) == "true"
}

const (
	issueTool   = `{"name":"create_issue","title":"Create issue","description":"Create an issue in a repository. Needs write access.","inputSchema":{"type":"object","properties":{"labels":{"type":"array","items":{"type":"string"}},"repo":{"type":"string","description":"owner/name"},"title":{"type":"string"}},"required":["repo","title"],"additionalProperties":false},"annotations":{"destructiveHint":false},"vendor":{"kept":true}}`
	listTool    = `{"name":"list_issues","description":"List the issues of a repository","inputSchema":{"type":"object","properties":{"repo":{"type":"string"}},"required":["repo"]}}`
	pictureTool = `{"name":"picture","description":"Paint a picture","inputSchema":{"type":"object"}}`
)

func anyTool(name string) string {
	return `{"name":"` + name + `","description":"the tool ` + name + `","inputSchema":{"type":"object"}}`
}

func mustURL(path string) *url.URL {
	u, err := url.Parse(path)
	if err != nil {
		panic(err)
	}
	return u
}

var nolog = slog.New(slog.DiscardHandler)
