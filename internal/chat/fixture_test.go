package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"junctor/internal/approval"
	"junctor/internal/catalog"
	"junctor/internal/chat/wire"
	"junctor/internal/executor"
	"junctor/internal/listing"
	"junctor/internal/llm"
	"junctor/internal/llm/llmtest"
	"junctor/internal/llm/models"
	"junctor/internal/mcp"
	"junctor/internal/search"
	"junctor/internal/sqlite"
	"junctor/internal/sqlite/sqlitetest"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
	"junctor/internal/upstream"
	"junctor/internal/waiting"
)

// testTimeout bounds the wait for expected events. It is long, because the
// machine may be busy; a passing test never waits for it.
const testTimeout = 60 * time.Second

// fixture is a chat host with its real dependencies (store, executor,
// catalogue, search, SDKs) and a scripted model.
type fixture struct {
	t       testing.TB
	model   *llmtest.Server
	store   *sqlite.Store
	catalog *catalog.Catalog
	ups     *upstreams
	host    *Host
	inbox   *approval.Inbox
	server  *httptest.Server
	logs    *syncBuffer
	set     *llm.Set
	end     func()
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// upstreams implements the test tools.
type upstreams struct {
	mu      sync.Mutex
	calls   map[string]int
	running int
	most    int
	begun   chan string
	release chan struct{}
}

func (u *upstreams) Do(ctx context.Context, server string, req tool.Request) (json.RawMessage, error) {
	var p struct {
		Name      string          `json:"name"`
		Arguments json.RawMessage `json:"arguments"`
	}
	json.Unmarshal(req.Params, &p)
	u.mu.Lock()
	u.calls[server+":"+p.Name]++
	u.running++
	u.most = max(u.most, u.running)
	u.mu.Unlock()
	defer func() {
		u.mu.Lock()
		u.running--
		u.mu.Unlock()
	}()
	text := func(s string) (json.RawMessage, error) {
		b, _ := json.Marshal(map[string]any{"content": []any{map[string]any{"type": "text", "text": s}}})
		return b, nil
	}
	switch p.Name {
	case "add":
		var in struct{ A, B json.Number }
		json.Unmarshal(p.Arguments, &in)
		a, _ := in.A.Float64()
		b, _ := in.B.Float64()
		return text(fmt.Sprint(a + b))
	case "boom":
		return json.RawMessage(`{"content":[{"type":"text","text":"it broke"}],"isError":true}`), nil
	case "down":
		return nil, &tool.Error{Kind: tool.UpstreamFailed, Msg: "the server is gone"}
	case "slow":
		u.begun <- p.Name
		select {
		case <-u.release:
			return text("slept")
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	case "dump":
		return text(strings.Repeat("x", 300_000))
	case "asks": // asks the user a question given by the model
		var in struct {
			Method   string
			Params   json.RawMessage
			TakeBack bool
		}
		json.Unmarshal(p.Arguments, &in)
		if in.TakeBack {
			var cancel context.CancelFunc
			ctx, cancel = context.WithCancel(ctx)
			defer cancel()
			go func() {
				select {
				case <-u.release:
					cancel()
				case <-ctx.Done():
				}
			}()
		}
		answer, err := req.Exchange.Ask(ctx, in.Method, in.Params)
		if err != nil {
			return text("no answer: " + err.Error())
		}
		return text("answer: " + string(answer))
	case "visit": // requires the user to open a URL first
		if u.count(server+":"+p.Name) == 1 {
			return nil, &mcp.Error{Code: mcp.CodeURLElicitation, Message: "sign in first", Data: p.Arguments}
		}
		return text("visited")
	case "progress":
		req.Exchange.Notify("notifications/progress", json.RawMessage(`{"progressToken":"the call's","progress":1,"total":2,"message":"half way"}`))
		return text("progressed")
	}
	return text("done " + p.Name)
}

func (u *upstreams) Await(context.Context, ...string) []string { return nil }

func (u *upstreams) Connecting() []string { return nil }

func (u *upstreams) Timeouts(string) (time.Duration, time.Duration) { return testTimeout, testTimeout }

func (u *upstreams) count(name string) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.calls[name]
}

func (u *upstreams) forget(name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.calls, name)
}

func definition(t testing.TB, server, name, schema string) tool.Definition {
	t.Helper()
	d, err := tool.ParseDefinition(server, json.RawMessage(fmt.Sprintf(`{"name":%q,"description":"Does %s.","inputSchema":%s}`, name, name, schema)))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

type option func(*Options, *[]llm.Config)

func withConfig(change func(*Config)) option {
	return func(o *Options, _ *[]llm.Config) { change(&o.Config) }
}

func withApprovalTimeout(d time.Duration) option {
	return func(o *Options, _ *[]llm.Config) { o.ApprovalTimeout = func() time.Duration { return d } }
}

// withSharedStore is for tests with several hosts on one store. The lease time
// is so long that leases of live hosts do not expire even on a busy machine.
func withSharedStore(o *Options, _ *[]llm.Config) { o.Shared, o.leaseTime = true, time.Minute }

func withModels(cfgs ...llm.Config) option {
	return func(_ *Options, out *[]llm.Config) { *out = cfgs }
}

func newFixture(t testing.TB, script llmtest.Script, opts ...option) *fixture {
	t.Helper()
	r := &fixture{t: t, model: llmtest.Start(t, script), logs: &syncBuffer{}}
	var err error
	cfg := store.DefaultConfig()
	cfg.Path = sqlitetest.Create(t, filepath.Join(t.TempDir(), "junctor.db"))
	if r.store, err = sqlite.Open(t.Context(), cfg, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.store.Close() })
	r.start(opts...)
	return r
}

// start creates a host on the fixture's store, like a new process.
func (r *fixture) start(opts ...option) {
	t := r.t
	t.Helper()
	r.catalog = catalog.New([]catalog.ToolRule{{Pattern: []string{"ask:*"}, Approval: catalog.AskApproval}}, nil)
	numbers := `{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}`
	any := `{"type":"object"}`
	r.catalog.Put(catalog.Server{Name: "calc", Guidance: tool.Guidance{Text: "Use calc for arithmetic."}}, []tool.Definition{definition(t, "calc", "add", numbers)})
	r.catalog.Put(catalog.Server{Name: "odd"}, []tool.Definition{definition(t, "odd", "boom", any), definition(t, "odd", "down", any),
		definition(t, "odd", "slow", any), definition(t, "odd", "dump", any), definition(t, "odd", "progress", any),
		definition(t, "odd", "asks", any), definition(t, "odd", "visit", any)})
	r.catalog.Put(catalog.Server{Name: "ask"}, []tool.Definition{definition(t, "ask", "delete", any), definition(t, "ask", "visit", any)})
	index := search.New()
	for _, s := range r.catalog.Snapshot().Servers() {
		var docs []search.Doc
		for _, e := range s.Tools {
			docs = append(docs, search.Doc{Name: e.Name, Description: e.Description, InputSchema: e.InputSchema})
		}
		index.Put(s.Name, docs)
	}
	r.ups = &upstreams{calls: map[string]int{}, begun: make(chan string, 100), release: make(chan struct{})}
	redactor, err := telemetry.NewRedactor(telemetry.RedactConfig{})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(redactor.Handler(slog.NewJSONHandler(r.logs, &slog.HandlerOptions{Level: slog.LevelDebug})))
	o := Options{Config: DefaultConfig(), Tools: listing.New(listing.Options{Catalog: r.catalog, Search: index, Upstreams: states{}}), Store: r.store, Log: log, Node: "node-" + rand16()}
	o.Approvals, o.ApprovalTimeout = &approval.Standing{Store: r.store, Tools: r.catalog}, approval.DefaultConfig().Timeout
	cfgs := []llm.Config{{Name: "m", Provider: llm.OpenAI, Model: "gpt-test", BaseURL: r.model.URL + "/v1"}}
	for _, f := range opts {
		f(&o, &cfgs)
	}
	for i := range cfgs {
		cfgs[i].APIKey, cfgs[i].TimeoutMs = "sk-secret-key", 600_000
		if cfgs[i].BaseURL == "" {
			cfgs[i].BaseURL = r.model.URL
		}
	}
	set, err := models.NewSet(llm.Choose(cfgs, func(string) string { return "" }, nil), nil, log)
	if len(cfgs) == 0 {
		set, err = llm.NewSet(), nil
	}
	if err != nil {
		t.Fatal(err)
	}
	r.set = set
	o.Models = func() *llm.Set { return r.set }
	calls := waiting.NewService(r.store, log)
	r.inbox = approval.New(approval.Options{Config: approval.DefaultConfig(), Calls: calls, Standing: o.Approvals, Store: r.store, Log: log})
	if o.Executor == nil {
		o.Executor = executor.New(executor.Options{Catalog: r.catalog, Upstreams: r.ups, Calls: r.store, Approvals: r.inbox, Log: log, Node: o.Node, Config: executor.DefaultConfig()})
	}
	r.host = New(o)
	mux := http.NewServeMux()
	r.host.Routes(mux)
	r.inbox.Routes(mux)
	r.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		caller := tool.Local
		if who := req.URL.Query().Get("as"); who != "" {
			caller = tool.Caller{ID: who, Name: who, Chat: true}
		}
		mux.ServeHTTP(w, req.WithContext(tool.WithCaller(req.Context(), caller)))
	}))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 2)
	go func() { done <- r.host.Run(ctx) }()
	go func() { done <- calls.Run(ctx) }()
	var once sync.Once
	host, server := r.host, r.server
	r.end = func() {
		once.Do(func() {
			cancel()
			for range cap(done) {
				if err := <-done; err != nil {
					t.Errorf("Run: %v", err)
				}
			}
			_ = host
			server.CloseClientConnections()
			server.Close()
		})
	}
	t.Cleanup(r.end)
}

func rand16() string { return newID("n") }

func (r *fixture) dial(query string) *client {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	conn, _, err := websocket.Dial(ctx, strings.Replace(r.server.URL, "http", "ws", 1)+"/ws?"+query, nil)
	if err != nil {
		r.t.Fatal(err)
	}
	conn.SetReadLimit(64 << 20)
	r.t.Cleanup(func() { conn.CloseNow() })
	return &client{t: r.t, conn: conn}
}

// connect dials and reads the greeting.
func (r *fixture) connect(query string) *client {
	r.t.Helper()
	c := r.dial(query)
	m := c.next()
	if m.Type != wire.TypeConnection {
		r.t.Fatalf("first message %s", m.Raw)
	}
	c.id = m.Payload.SessionID
	return c
}

// again reconnects to the client's session, after the last message that the
// client has seen.
func (r *fixture) again(c *client) *client {
	r.t.Helper()
	n := r.connect(url.Values{"sessionId": {c.id}, "after": {fmt.Sprint(c.seq)}}.Encode())
	return n
}

func (r *fixture) open(id string) *Session {
	r.t.Helper()
	s, err := r.host.Open(context.Background(), tool.Local, id)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// awaitIdle waits until no turn of the session runs in the host.
func (r *fixture) awaitIdle(id string) *Session {
	r.t.Helper()
	s := r.open(id)
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	if err := s.wait(ctx); err != nil {
		r.t.Fatal(err)
	}
	return s
}

// states are upstreams in fixed states.
type states []upstream.Status

func (s states) Status() []upstream.Status                        { return s }
func (s states) StatusOf(string) (upstream.Status, bool)          { return upstream.Status{}, false }
func (s states) Connecting() []string                             { return nil }
func (s states) Await(context.Context, ...string) (none []string) { return nil }
