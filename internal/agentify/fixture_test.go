package agentify

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/catalog"
	"junctor/internal/executor"
	"junctor/internal/listing"
	"junctor/internal/llm"
	"junctor/internal/llm/llmtest"
	"junctor/internal/llm/models"
	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/mcpserver"
	"junctor/internal/mcptrace"
	"junctor/internal/rawjson"
	"junctor/internal/search"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// testTimeout bounds the wait for expected events.
const testTimeout = time.Minute

// backend is an MCP server in this process that is accessed through the real
// protocol. Its tools return their name and arguments.
type backend struct {
	server *mcpserver.Server
	words  string // instructions
	tools  []string
	extras bool // also has resources and prompts
	notes  int  // number of additional resources

	mu   sync.Mutex
	seen []string
}

func newBackend(words string, tools ...string) *backend {
	b := &backend{words: words, tools: tools}
	b.server = mcpserver.New(mcpserver.Options{DrainTimeout: time.Millisecond}, b)
	return b
}

func (b *backend) Describe(context.Context, *mcpserver.Request) (mcpserver.Description, error) {
	caps := `{"tools":{}}`
	if b.extras {
		caps = `{"tools":{},"resources":{"listChanged":true},"prompts":{"listChanged":true}}`
	}
	return mcpserver.Description{Info: json.RawMessage(`{"name":"test","version":"1"}`), Capabilities: json.RawMessage(caps), Instructions: b.words}, nil
}

func (b *backend) Notified(context.Context, *mcpserver.Session, string, json.RawMessage) {}

func (b *backend) calls() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.seen...)
}

func (b *backend) Serve(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	switch r.Method {
	case "tools/list":
		return json.RawMessage(`{"tools":[` + strings.Join(b.tools, ",") + `]}`), nil
	case "resources/list":
		if rawjson.FieldString(r.Params, "cursor") == "" {
			return json.RawMessage(`{"resources":[{"uri":"note:shopping","name":"shopping","description":"The shopping list"}],"nextCursor":"2"}`), nil
		}
		list := []any{map[string]string{"uri": "note:diary", "name": "diary", "title": "Diary"}, map[string]string{"uri": ""}}
		for i := range b.notes {
			list = append(list, map[string]string{"uri": fmt.Sprintf("note:%d", i), "name": fmt.Sprintf("protocol %d", i), "description": "Minutes of a meeting"})
		}
		return rawjson.MarshalOrNull(map[string]any{"resources": list}), nil
	case "resources/templates/list":
		return json.RawMessage(`{"resourceTemplates":[{"uriTemplate":"day:{date}/notes","name":"day","description":"The notes of one day"}]}`), nil
	case "prompts/list":
		return json.RawMessage(`{"prompts":[{"name":"review","description":"Review code","arguments":[{"name":"code","description":"what to review","required":true},{"name":"style"}]},{"name":"tool-descriptions"}]}`), nil
	}
	b.mu.Lock()
	b.seen = append(b.seen, r.Method+" "+string(r.Params))
	b.mu.Unlock()
	switch r.Method {
	case "resources/read":
		return json.RawMessage(`{"contents":[{"uri":` + string(rawjson.Field(r.Params, "uri")) + `,"text":"milk"}]}`), nil
	case "prompts/get":
		return json.RawMessage(`{"messages":[{"role":"user","content":{"type":"text","text":"please review"}},{"role":"user","content":{"type":"image","data":"AA==","mimeType":"image/png"}}]}`), nil
	case "tools/call":
		return b.call(ctx, r)
	}
	return nil, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "what?"}
}

func (b *backend) call(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	name := rawjson.FieldString(r.Params, "name")
	switch name {
	case "wait":
		<-ctx.Done()
		return nil, ctx.Err()
	case "refuse":
		return nil, &mcp.Error{Code: -32099, Message: "the disk is full"}
	case "fail":
		return json.RawMessage(`{"content":[{"type":"text","text":"it failed"}],"isError":true}`), nil
	case "confirm":
		r.Exchange.Notify("notifications/message", json.RawMessage(`{"level":"info","data":"asking"}`))
		answer, err := r.Exchange.Ask(ctx, "elicitation/create", json.RawMessage(`{"message":"sure?","requestedSchema":{"type":"object","properties":{}}}`))
		if err != nil {
			return nil, err
		}
		return textResult(answer), nil
	}
	return rawjson.MarshalOrNull(map[string]any{"content": []any{textBlock(name + " " + string(rawjson.Field(r.Params, "arguments")))}, "odd": 12345678901234567}), nil
}

func (b *backend) dial(context.Context) (mcpclient.Transport, error) {
	near, far := mcp.Pipe()
	go func() { _ = b.server.ServeLink(context.Background(), far) }()
	return mcpclient.OverLink(near), nil
}

func def(name, description, properties string, required ...string) string {
	if required == nil {
		required = []string{}
	}
	return string(rawjson.MarshalOrNull(map[string]any{"name": name, "description": description,
		"inputSchema": map[string]any{"type": "object", "properties": json.RawMessage(properties), "required": required}}))
}

// files is like the reference file system server.
func files() *backend {
	return newBackend("Only works within the allowed directories.",
		def("read_file", "Read the complete contents of a file as text.", `{"path":{"type":"string"},"head":{"type":"integer","minimum":1}}`, "path"),
		def("write_file", "Create a new file or overwrite an existing file with new content.", `{"path":{"type":"string"},"content":{"type":"string"}}`, "path", "content"),
		def("move_file", "Move or rename files and directories.", `{"source":{"type":"string"},"destination":{"type":"string"}}`, "source", "destination"),
		def("list_directory", "Get a listing of all files and directories in a path.", `{"path":{"type":"string"}}`, "path"),
		def("read_multiple_files", "Read several files at once.", `{"paths":{"type":"array","items":{"type":"string"}}}`, "paths"))
}

func odd() *backend {
	return newBackend("",
		def("wait", "Wait for ever.", `{}`), def("refuse", "Refuse to work.", `{}`),
		def("fail", "Fail at the task.", `{}`), def("confirm", "Ask the user for confirmation.", `{}`),
		def("get_contents", "Get a file of a repository.", `{"owner":{"type":"string"},"repo":{"type":"string"},"path":{"type":"string"}}`, "repo", "path"))
}

// fixture is the face with its real dependencies and a scripted model.
type fixture struct {
	*Face
	t       testing.TB
	catalog *catalog.Catalog
	index   *search.Index
	sup     *upstream.Supervisor
	llm     *llmtest.Server
	model   llm.Model
	redact  *telemetry.Redactor
	trace   *mcptrace.Trace
	log     *telemetry.Ring[telemetry.LogEntry]
	options []json.RawMessage // that clients sent
	refuse  error             // returned by Configure
	tokens  map[string]int    // by model

	mu    sync.Mutex
	calls []store.Call
}

func (r *fixture) ToolsChanged(o upstream.ToolSet) {
	var docs []search.Doc
	for _, d := range o.Tools {
		docs = append(docs, search.Doc{Name: d.Name, Description: d.Description, InputSchema: d.InputSchema})
	}
	r.index.Put(o.Config.Name, docs) // before the tools are visible, as the gateway does
	r.catalog.Put(catalog.Server{Name: o.Config.Name, Guidance: o.Guidance, Description: o.Config.Description}, o.Tools)
}
func (r *fixture) Tokens(model string, in, out int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tokens[model] += in + out
}
func (r *fixture) Removed(server string)         { r.catalog.Remove(server); r.index.Remove(server) }
func (r *fixture) StatusChanged(upstream.Status) {}
func (r *fixture) Notified(server, caller, method string, params json.RawMessage) {
	r.Face.Notified(server, caller, method, params)
}
func (r *fixture) Append(_ context.Context, c store.Call) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
	return nil
}

// newFixture starts the face with the backends. A nil backend is unreachable.
func newFixture(t testing.TB, backends map[string]*backend, script llmtest.Script, rules ...catalog.ToolRule) *fixture {
	t.Helper()
	r := &fixture{t: t, catalog: catalog.New(rules, nil), index: search.New(), llm: llmtest.Start(t, script), tokens: map[string]int{}, log: telemetry.NewRing[telemetry.LogEntry](100)}
	r.model = r.modelOf(llm.Config{Provider: llm.OpenAI, Model: "gpt-test"}, "/v1")
	var err error
	if r.redact, err = telemetry.NewRedactor(telemetry.RedactConfig{}); err != nil {
		t.Fatal(err)
	}
	dialers := map[string]upstream.Dialer{}
	var configs []upstream.Config
	for name, b := range backends {
		c := upstream.DefaultConfig()
		c.Name, c.Transport = name, upstream.InProcess
		configs = append(configs, c)
		dialers[name] = func(context.Context) (mcpclient.Transport, error) { return nil, fmt.Errorf("out of order") }
		if b != nil {
			dialers[name] = b.dial
		}
	}
	var level slog.LevelVar
	level.Set(slog.LevelDebug)
	log := telemetry.NewLogger(telemetry.LogOptions{Output: io.Discard, Level: &level, Redactor: r.redact, Recent: r.log})
	r.trace = mcptrace.New(r.redact.JSON)
	r.sup = upstream.NewSupervisor(configs, upstream.Options{Sink: r, Log: log, Name: "junctor", InProcess: dialers, Trace: r.trace,
		Capabilities: mcpclient.Capabilities{ElicitationForm: true}})
	exec := executor.New(executor.Options{Catalog: r.catalog, Upstreams: r.sup, Calls: r, Log: log, Config: executor.DefaultConfig()})
	r.Face = New(Options{
		Tools: listing.New(listing.Options{Catalog: r.catalog, Search: r.index, Upstreams: r.sup}), Calls: exec, Upstreams: r.sup, Trace: r.trace, Meter: r, Version: "0.0.0", Log: log,
		Model: func() llm.Model { return r.model },
		Configure: func(_ context.Context, options json.RawMessage) error {
			r.options = append(r.options, options)
			return r.refuse
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = r.sup.Run(ctx) })
	t.Cleanup(func() {
		r.Face.Close()
		cancel()
		wg.Wait()
	})
	return r
}

// modelOf returns a model that is served by the scripted server.
func (r *fixture) modelOf(cfg llm.Config, path string) llm.Model {
	r.t.Helper()
	cfg.BaseURL, cfg.APIKey = r.llm.URL+path, "sk-secret-of-the-test"
	if cfg.TimeoutMs == 0 {
		cfg.TimeoutMs = 60_000
	}
	cfg = llm.Choose([]llm.Config{cfg}, func(string) string { return "" }, nil)[0]
	m, err := models.New(cfg, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		r.t.Fatal(err)
	}
	return m
}

func ctxFor(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// do executes a task as the local user.
func (r *fixture) do(t Task) (Outcome, error) {
	r.t.Helper()
	return r.Do(ctxFor(r.t), t, Request{Caller: tool.Local})
}

// refused executes a task that must lead to no call, and returns the refusal.
func (r *fixture) refused(t Task) Refusal {
	r.t.Helper()
	out, err := r.do(t)
	if tool.KindOf(err) != tool.NoAction {
		r.t.Fatalf("%+v, %v; want no action", out.Plan, err)
	}
	return tool.AsError(err).Details.(Refusal)
}

// client is the client side of a stream served by the face.
type client struct {
	t    testing.TB
	in   *io.PipeWriter
	out  *mcp.Reader
	raw  *bytes.Buffer
	done chan error
	head bool
}

// connect starts to serve a client. With head, the client uses Content-Length
// framing.
func (r *fixture) connect(head bool) *client {
	r.t.Helper()
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	c := &client{t: r.t, in: inW, raw: &bytes.Buffer{}, done: make(chan error, 1), head: head}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		err := r.ServeStream(tool.WithCaller(ctx, tool.Local), inR, outW)
		outW.Close()
		inR.Close()
		c.done <- err
	}()
	framing := mcp.FramingLines
	if head {
		framing = mcp.FramingHeaders
	}
	c.out = mcp.NewReader(io.TeeReader(outR, c.raw), framing, mcp.Limits{}, nil)
	r.t.Cleanup(func() { cancel(); inW.Close(); outR.Close() })
	return c
}

func (c *client) send(messages ...string) {
	c.t.Helper()
	for _, m := range messages {
		if c.head {
			m = fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(m), m)
		} else {
			m += "\n"
		}
		c.write(m)
	}
}

func (c *client) write(s string) {
	c.t.Helper()
	if _, err := io.WriteString(c.in, s); err != nil {
		c.t.Fatal(err)
	}
}

// next returns the next message.
func (c *client) next() string {
	c.t.Helper()
	got := make(chan string, 1)
	go func() {
		b, err := c.out.Next()
		if err != nil {
			b = []byte("error: " + err.Error())
		}
		got <- string(b)
	}()
	select {
	case m := <-got:
		return m
	case <-time.After(testTimeout):
		c.t.Fatal("no answer")
		return ""
	}
}

func (c *client) expect(wants ...string) string {
	c.t.Helper()
	m := c.next()
	for _, want := range wants {
		if !strings.Contains(m, want) {
			c.t.Fatalf("got %s\nwithout %s", m, want)
		}
	}
	return m
}

// over waits for the connection to end and returns the error of the server.
func (c *client) over() error {
	c.t.Helper()
	select {
	case err := <-c.done:
		return err
	case <-time.After(testTimeout):
		c.t.Fatal("it never ends")
		return nil
	}
}

// site serves the face and the debug interface over HTTP, for a caller.
func (r *fixture) site(caller tool.Caller) *httptest.Server {
	r.t.Helper()
	mux := muxOf(r)
	s := httptest.NewServer(withCaller(caller, mux))
	r.t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}
