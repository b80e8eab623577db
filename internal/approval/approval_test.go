package approval

import (
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
	"junctor/internal/executor"
	"junctor/internal/sqlite"
	"junctor/internal/sqlite/sqlitetest"
	"junctor/internal/store"
	"junctor/internal/tool"
	"junctor/internal/waiting"
)

var quiet = slog.New(slog.DiscardHandler)

var admin = tool.Caller{ID: "key:root", Name: "root", Admin: true}

// node is one node of a cluster: an executor and an inbox on the shared store.
type node struct {
	*executor.Executor
	inbox   *Inbox
	catalog *catalog.Catalog
	server  *httptest.Server
	calls   chan string // arguments that reached the upstream
}

func (n *node) Do(_ context.Context, _ string, req tool.Request) (json.RawMessage, error) {
	n.calls <- string(req.Params)
	return json.RawMessage(`{"content":[]}`), nil
}
func (n *node) Await(context.Context, ...string) []string     { return nil }
func (n *node) Connecting() []string                          { return nil }
func (n *node) Timeouts(string) (silent, total time.Duration) { return time.Minute, time.Minute }
func (n *node) Append(context.Context, store.Call) error      { return nil }
func (n *node) as(c tool.Caller) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(tool.WithCaller(r.Context(), c)))
		})
	}
}

// cluster starts nodes that share a store.
func cluster(t *testing.T, count int, cfg Config) []*node {
	t.Helper()
	sc := store.DefaultConfig()
	sc.Path = sqlitetest.Create(t, filepath.Join(t.TempDir(), "junctor.db"))
	s, err := sqlite.Open(t.Context(), sc, quiet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	var nodes []*node
	for range count {
		n := &node{catalog: catalog.New([]catalog.ToolRule{{Pattern: []string{"fs:*"}, Approval: catalog.AskApproval}}, nil), calls: make(chan string, 10)}
		n.define(t, "Writes a file.")
		calls := waiting.NewService(s, quiet)
		n.inbox = New(Options{Config: cfg, Calls: calls, Standing: &Standing{Store: s, Tools: n.catalog}, Store: s, Shared: true, Client: http.DefaultClient, Log: quiet})
		n.inbox.progress = time.Millisecond
		n.Executor = executor.New(executor.Options{Catalog: n.catalog, Upstreams: n, Calls: n, Approvals: n.inbox, Log: quiet, Config: executor.DefaultConfig()})
		mux := http.NewServeMux()
		n.inbox.Routes(mux)
		n.server = httptest.NewServer(n.as(admin)(mux))
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 2)
		go func() { done <- calls.Run(ctx) }()
		go func() { done <- n.inbox.Run(ctx) }()
		t.Cleanup(func() {
			cancel()
			n.server.CloseClientConnections()
			n.server.Close()
			<-done
			<-done
		})
		nodes = append(nodes, n)
	}
	return nodes
}

func (n *node) define(t *testing.T, description string) {
	t.Helper()
	d, err := tool.ParseDefinition("fs", json.RawMessage(`{"name":"write","description":"`+description+`","inputSchema":{"type":"object"}}`))
	if err != nil {
		t.Fatal(err)
	}
	n.catalog.Put(catalog.Server{Name: "fs"}, []tool.Definition{d})
}

// openPage opens an administrator's page on the node and waits until it counts
// as open.
func (n *node) openPage(t *testing.T) {
	t.Helper()
	res, err := http.Get(n.server.URL + "/api/approvals/events")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	if _, err := res.Body.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}

// seen waits until the node knows that some page is open.
func (n *node) seen(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !n.inbox.attended(t.Context()); {
		if time.Now().After(deadline) {
			t.Fatal("the open page of another node is not known")
		}
		time.Sleep(time.Millisecond)
	}
}

// waits returns the first call that waits for approval.
func (n *node) waits(t *testing.T) waiting.Record {
	t.Helper()
	changed := n.inbox.Calls.Watch(t.Context())
	for {
		list, err := n.inbox.Waiting(t.Context(), admin)
		if err != nil {
			t.Fatal(err)
		}
		if len(list) > 0 {
			return list[0]
		}
		select {
		case <-changed:
		case <-time.After(time.Minute):
			t.Fatal("no call waits")
		}
	}
}

type outcome struct {
	result tool.Result
	err    error
}

func write(caller, session, text string) tool.Call {
	return tool.Call{Face: "tools", Caller: tool.Caller{ID: caller, Name: caller}, Session: session, Tool: "fs:write", Arguments: json.RawMessage(`{"text":"` + text + `"}`)}
}

func (n *node) begin(ctx context.Context, c tool.Call) <-chan outcome {
	out := make(chan outcome, 1)
	go func() {
		r, err := n.Call(ctx, c)
		out <- outcome{r, err}
	}()
	return out
}

func (n *node) decide(t *testing.T, id, body string) int {
	t.Helper()
	res, err := http.Post(n.server.URL+"/api/approvals/"+id, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	return res.StatusCode
}

func TestAnyNodeApproves(t *testing.T) {
	n := cluster(t, 3, DefaultConfig())
	if _, err := n[0].Call(t.Context(), write("key:a", "", "1")); tool.KindOf(err) != tool.Denied || !strings.Contains(err.Error(), "cannot be asked") {
		t.Errorf("without a page: %v", err)
	}
	n[1].openPage(t)
	n[0].seen(t)
	progress := make(chan string, 1000)
	c := write("key:a", "", "1")
	c.Meta = json.RawMessage(`{"progressToken":"p"}`)
	c.Exchange.Notify = func(method string, params json.RawMessage) {
		select {
		case progress <- method + " " + string(params):
		default:
		}
	}
	out := n[0].begin(t.Context(), c)
	r := n[2].waits(t)
	if p := <-progress; !strings.Contains(p, `notifications/progress`) || !strings.Contains(p, `"progressToken":"p"`) {
		t.Errorf("progress %s", p)
	}
	if r.CallerName != "key:a" || r.Tool != "fs:write" || string(r.Arguments) != `{"text":"1"}` || !strings.Contains(string(r.Inputs[0].Params), "toolRules") {
		t.Errorf("the inbox shows %+v", r)
	}
	if code := n[2].decide(t, r.ID, `{"action":"allow"}`); code != 200 {
		t.Fatalf("allow: %d", code)
	}
	if o := <-out; o.err != nil {
		t.Fatal(o.err)
	}
	if got := <-n[0].calls; !strings.Contains(got, `"text":"1"`) {
		t.Errorf("called with %s", got)
	}
	if code := n[2].decide(t, r.ID, `{"action":"allow"}`); code != 404 {
		t.Errorf("a second answer: %d", code)
	}
	// An approval with the scope once does not apply again.
	out = n[0].begin(t.Context(), write("key:a", "", "1"))
	if code := n[1].decide(t, n[1].waits(t).ID, `{"action":"deny","reason":"not on Fridays"}`); code != 200 {
		t.Fatalf("deny: %d", code)
	}
	if o := <-out; tool.KindOf(o.err) != tool.Denied || !strings.Contains(o.err.Error(), "not on Fridays") {
		t.Errorf("denied: %v", o.err)
	}
	if len(n[0].calls) != 0 {
		t.Error("a denied call was made")
	}
}

func TestScopesAreBound(t *testing.T) {
	for _, scope := range []Scope{ForSession, Always} {
		t.Run(string(scope), func(t *testing.T) {
			n := cluster(t, 2, DefaultConfig())
			n[0].openPage(t)
			n[1].seen(t)
			asked := func(at *node, c tool.Call, answer string) {
				t.Helper()
				out := at.begin(t.Context(), c)
				if code := n[1].decide(t, n[1].waits(t).ID, answer); code != 200 {
					t.Fatalf("decide: %d", code)
				}
				<-out
			}
			asked(n[0], write("key:a", "s1", "1"), `{"action":"allow","scope":"`+string(scope)+`"}`)
			for _, at := range n { // also with other arguments, and on the other node
				if o := <-at.begin(t.Context(), write("key:a", "s1", "2")); o.err != nil {
					t.Errorf("allowed for %s: %v", scope, o.err)
				}
			}
			deny := `{"action":"deny"}`
			asked(n[0], write("key:b", "s1", "1"), deny) // another caller
			if scope == ForSession {
				asked(n[0], write("key:a", "s2", "1"), deny)
				asked(n[0], write("key:a", "", "1"), deny)
			}
			for _, at := range n {
				at.define(t, "Deletes everything.")
			}
			asked(n[0], write("key:a", "s1", "1"), deny) // another definition
		})
	}
}

func TestLeftCallIsNeverMade(t *testing.T) {
	n := cluster(t, 2, DefaultConfig())
	n[0].openPage(t)
	n[1].seen(t)
	ctx, leave := context.WithCancel(t.Context())
	out := n[1].begin(ctx, write("key:a", "", "1"))
	r := n[0].waits(t)
	leave()
	if o := <-out; o.err == nil {
		t.Error("a call that was left succeeded")
	}
	if code := n[0].decide(t, r.ID, `{"action":"allow"}`); code != 404 && code != 400 {
		t.Errorf("answer to a call that was left: %d", code)
	}
	if list, err := n[0].inbox.Waiting(t.Context(), admin); err != nil || len(list) != 0 {
		t.Errorf("still in the inbox: %v, %v", list, err)
	}
	if len(n[0].calls)+len(n[1].calls) != 0 {
		t.Error("the call was made")
	}
}

func TestChangedToolIsNotCalledAfterApproval(t *testing.T) {
	n := cluster(t, 1, DefaultConfig())[0]
	n.openPage(t)
	out := n.begin(t.Context(), write("key:a", "", "1"))
	r := n.waits(t)
	n.define(t, "Deletes everything.")
	n.decide(t, r.ID, `{"action":"allow"}`)
	if o := <-out; tool.KindOf(o.err) != tool.Denied || !strings.Contains(o.err.Error(), "changed") {
		t.Errorf("approved as another tool: %v", o.err)
	}
	if len(n.calls) != 0 {
		t.Error("the call was made")
	}
}

func TestApprovalExpires(t *testing.T) {
	n := cluster(t, 1, Config{TimeoutMs: 1})[0]
	n.openPage(t)
	if _, err := n.Call(t.Context(), write("key:a", "", "1")); tool.KindOf(err) != tool.Denied || !strings.Contains(err.Error(), "nobody answered within 1ms") {
		t.Errorf("%v", err)
	}
}

func TestWebhookIsSigned(t *testing.T) {
	type received struct {
		header http.Header
		body   []byte
	}
	got := make(chan received, 1)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got <- received{r.Header, body}
	}))
	defer hook.Close()
	n := cluster(t, 1, Config{TimeoutMs: defaultTimeout, Webhook: &Webhook{URL: hook.URL, Secret: "a-secret-of-the-webhook"}})[0]
	out := n.begin(t.Context(), write("key:a", "", "1"))
	r := <-got
	if want := Sign("a-secret-of-the-webhook", r.header.Get(timestampHeader), r.body); r.header.Get(signatureHeader) != want {
		t.Errorf("signature %s, want %s", r.header.Get(signatureHeader), want)
	}
	var body struct {
		Type, ID string
		Call     waiting.Record
	}
	if err := json.Unmarshal(r.body, &body); err != nil || body.Type != "approval.requested" || body.Call.Tool != "fs:write" {
		t.Fatalf("%s, %v", r.body, err)
	}
	if code := n.decide(t, body.ID, `{"action":"allow","scope":"session"}`); code != 400 {
		t.Errorf("a scope that cannot be chosen: %d", code)
	}
	if code := n.decide(t, body.ID, `{"action":"allow","scope":"once"}`); code != 200 {
		t.Errorf("allow: %d", code)
	}
	if o := <-out; o.err != nil {
		t.Error(o.err)
	}
}

func TestOnlyAdministratorsDecide(t *testing.T) {
	n := cluster(t, 1, DefaultConfig())[0]
	n.openPage(t)
	out := n.begin(t.Context(), write("key:a", "", "1"))
	id := n.waits(t).ID
	mux := http.NewServeMux()
	n.inbox.Routes(mux)
	for path, method := range map[string]string{"/api/approvals/" + id: "POST", "/api/approvals/events": "GET"} {
		w := httptest.NewRecorder()
		req := httptest.NewRequest(method, path, strings.NewReader(`{"action":"allow"}`))
		n.as(tool.Caller{ID: "key:a"})(mux).ServeHTTP(w, req)
		if w.Code != http.StatusForbidden {
			t.Errorf("%s %s as the caller: %d", method, path, w.Code)
		}
	}
	if list, err := n.inbox.Waiting(t.Context(), tool.Caller{ID: "key:b"}); err != nil || len(list) != 0 {
		t.Errorf("another caller sees %v, %v", list, err)
	}
	n.decide(t, id, `{"action":"deny"}`)
	<-out
}

func TestConfigProblems(t *testing.T) {
	if err := DefaultConfig().Validate(); err != nil {
		t.Error(err)
	}
	bad := Config{TimeoutMs: 0, Webhook: &Webhook{URL: "ftp://x", Secret: "short"}}
	if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), "webhook.secret") || !strings.Contains(err.Error(), "webhook.url") {
		t.Errorf("%v", err)
	}
}

func TestWebhookThatFailsRefusesTheCall(t *testing.T) {
	hook := httptest.NewServer(http.NotFoundHandler())
	defer hook.Close()
	i := New(Options{Client: http.DefaultClient, Log: quiet})
	if err := i.post(t.Context(), Webhook{URL: hook.URL, Secret: "a-secret-of-the-webhook"}, nil); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// TestWebhookErrorsNameTheHostOnly checks that errors contain only the host of
// a webhook, because the rest of its address may contain a token.
func TestWebhookErrorsNameTheHostOnly(t *testing.T) {
	t.Parallel()
	i := &Inbox{Options: Options{Client: NewClient(failingTransport{})}}
	err := i.post(t.Context(), Webhook{URL: "https://hooks.example.com/services/token-in-path?key=token", Secret: "a-secret-of-the-webhook"}, nil)
	if err == nil || strings.Contains(err.Error(), "token") || !strings.Contains(err.Error(), "hooks.example.com") || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("error = %v", err)
	}
}

type failingTransport struct{}

func (failingTransport) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, io.ErrUnexpectedEOF
}
