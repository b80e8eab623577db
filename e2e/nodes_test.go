package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"junctor/internal/llm/llmtest"
	"junctor/internal/postgres"
	"junctor/internal/postgres/pgtest"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/upstream/upstreamtest"
)

const rootKey = "root-key-of-the-nodes-tests-0123456789"

// nodes are real junctor processes on one real PostgreSQL, behind a proxy
// that gives every request to the next of them.
type nodes struct {
	t      *testing.T
	db     *pgtest.Server
	dbURL  string
	all    []*gateway
	proxy  string
	store  *postgres.Store
	tools  *upstreamtest.HTTP
	model  *llmtest.Server
	single string // the binary of the singleton

	mu   sync.Mutex
	dead map[int]bool
	next atomic.Int64
}

// startNodes starts n of them. What is added goes into each configuration.
func startNodes(t *testing.T, n int, more, servers, kept string) *nodes {
	t.Helper()
	c := &nodes{t: t, db: pgtest.New(t), dead: map[int]bool{}}
	c.dbURL = c.db.Database(t)
	c.tools = upstreamtest.Listen(t, upstreamtest.Script{})
	c.model = llmtest.Start(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "slowly"}, Reply: llmtest.Reply{Text: "one two three four five six seven eight nine ten ", Repeat: 200, GapMS: 50}},
		{When: llmtest.When{User: "hello"}, Reply: llmtest.Reply{Text: "Hello from the model."}},
	}})
	seal := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{7}, store.KeySize))
	for range n {
		h := newHouse(t, "{}")
		if c.single == "" {
			c.single = h.own(everything(t), "lonely-server")
		}
		h.write(".env", "JUNCTOR_SECRET_KEY="+seal+"\n")
		h.write("junctor.json", fmt.Sprintf(`{
	"store": {"url": %q%s},
	"auth": {"loopback": "key", "keys": [
		{"name": "root", "key": %q, "admin": true},
		{"name": "slow", "key": "slow-key-of-the-nodes-tests-0123456789", "rate": {"calls": 20, "perMs": 3600000}}
	]},
	"llm": {"provider": "openai", "model": "scripted", "baseUrl": %q, "apiKey": "x"},
	"mcpServers": {"tools": {"url": %q}, "lonely": {"command": %q, "singleton": true}%s}%s
}`, c.dbURL, kept, rootKey, c.model.URL+"/v1", c.tools.URL, c.single, servers, more))
		c.all = append(c.all, h.serve())
	}
	front := httptest.NewServer(&httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			target, _ := url.Parse(c.pick().url)
			r.SetURL(target)
		},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelDebug),
	})
	t.Cleanup(func() { front.CloseClientConnections(); front.Close() })
	c.proxy = front.URL
	cfg := store.DefaultConfig()
	cfg.URL = telemetry.Secret(c.dbURL)
	var err error
	if c.store, err = postgres.Open(t.Context(), cfg, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.store.Close() })
	return c
}

// pick is the next of the nodes that live.
func (c *nodes) pick() *gateway {
	c.mu.Lock()
	defer c.mu.Unlock()
	for {
		i := int(c.next.Add(1)) % len(c.all)
		if !c.dead[i] {
			return c.all[i]
		}
	}
}

// kill ends a node with -9. The balancer notices at once.
func (c *nodes) kill(i int) {
	c.mu.Lock()
	c.dead[i] = true
	c.mu.Unlock()
	c.all[i].kill()
}

func (c *nodes) ready(servers ...string) *nodes {
	c.t.Helper()
	for _, g := range c.all {
		until(c.t, "ready", func() bool {
			_, body, err := try(c.t.Context(), "GET", g.url+"/health", rootKey, "")
			for _, s := range servers {
				if err != nil || !strings.Contains(body, `"name":"`+s+`","status":"connected"`) {
					return false
				}
			}
			return true
		})
	}
	return c
}

// try makes one request.
func try(ctx context.Context, method, address, key, body string, header ...string) (status int, text string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, address, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

const callEcho = `{"server":"tools","tool":"echo","arguments":{"n":1}}`

func (c *nodes) call(ctx context.Context, base, body string, header ...string) (int, string, error) {
	return try(ctx, "POST", base+"/call_tool", rootKey, body, header...)
}

// TestNodes is a day in the life of three nodes.
func TestNodes(t *testing.T) {
	c := startNodes(t, 3, "", "", "").ready("tools", "lonely")
	t.Run("sessions", c.sessions)
	t.Run("official client", c.officialClient)
	t.Run("questions", c.questions)
	t.Run("parked", c.parkedCalls)
	t.Run("keys", c.keys)
	t.Run("rate", c.rate)
	t.Run("live log", c.liveLog)
	t.Run("singleton", c.singleton)
	t.Run("connections cut", c.connectionsCut)
	t.Run("database away", c.databaseAway)
	t.Run("chat of a node that dies", c.chatOfTheDead)
	t.Run("killed under load", c.killedUnderLoad)
}

// sessions: a session made anywhere is served everywhere, and ended
// everywhere.
func (c *nodes) sessions(t *testing.T) {
	ctx := ctxFor(t)
	req, _ := http.NewRequestWithContext(ctx, "POST", c.proxy+"/mcp", strings.NewReader(initialize))
	req.Header.Set("Authorization", "Bearer "+rootKey)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	id := resp.Header.Get("Mcp-Session-Id")
	list := `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	for i := range 12 {
		if status, body, err := try(ctx, "POST", c.proxy+"/mcp", rootKey, list, "Mcp-Session-Id", id); status != 200 || !strings.Contains(body, "execute_tool") {
			t.Fatalf("request %d: %d %s %v", i, status, body, err)
		}
	}
	if status, _, _ := try(ctx, "POST", c.proxy+"/mcp", "slow-key-of-the-nodes-tests-0123456789", list, "Mcp-Session-Id", id); status != 404 {
		t.Errorf("another caller's session: %d", status)
	}
	if status, body, _ := try(ctx, "DELETE", c.proxy+"/mcp", rootKey, "", "Mcp-Session-Id", id); status != 204 {
		t.Fatalf("DELETE: %d %s", status, body)
	}
	for _, g := range c.all {
		until(t, "the session's end", func() bool {
			status, _, _ := try(ctx, "POST", g.url+"/mcp", rootKey, list, "Mcp-Session-Id", id)
			return status == 404
		})
	}
}

// keyed puts the key on every request.
type keyed struct{}

func (keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+rootKey)
	return http.DefaultTransport.RoundTrip(r)
}

// officialClient: the official SDK's client calls, is asked, and hears of
// changes, each of its requests on another node.
func (c *nodes) officialClient(t *testing.T) {
	ctx := ctxFor(t)
	changed := make(chan struct{}, 100)
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ElicitationHandler: func(context.Context, *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: "accept", Content: map[string]any{"name": "lin"}}, nil
		},
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { changed <- struct{}{} },
	})
	s, err := client.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: c.proxy + "/mcp?mode=direct", HTTPClient: &http.Client{Transport: keyed{}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for range 9 {
		r, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "tools__ask", Arguments: map[string]any{}})
		if err != nil || r.IsError || !strings.Contains(fmt.Sprint(r.Content[0].(*sdk.TextContent).Text), "lin") {
			t.Fatalf("%+v, %v", r, err)
		}
	}
	// The client begins to listen in its own time; a change before that is
	// none that it hears of.
	for heard := false; !heard; {
		if _, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "tools__change", Arguments: map[string]any{}}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
			heard = true
		case <-time.After(time.Second):
		}
	}
}

// stream posts and reads events until one is a response; others go to each.
func (c *nodes) stream(t *testing.T, address, body string, each func(m map[string]json.RawMessage), header ...string) (result string) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctxFor(t), "POST", address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+rootKey)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		b, _ := io.ReadAll(resp.Body)
		return string(b)
	}
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var m map[string]json.RawMessage
		if !ok || json.Unmarshal([]byte(data), &m) != nil {
			continue
		}
		if m["method"] == nil {
			return data
		}
		each(m)
	}
	t.Fatal("the stream ended without an answer")
	return ""
}

// questions: a question asked on one node's stream is answered through
// another.
func (c *nodes) questions(t *testing.T) {
	ctx := ctxFor(t)
	body := strings.Replace(initialize, `"capabilities":{}`, `"capabilities":{"elicitation":{}}`, 1)
	req, _ := http.NewRequestWithContext(ctx, "POST", c.all[0].url+"/mcp?mode=direct", strings.NewReader(body))
	req.Header.Set("Authorization", "Bearer "+rootKey)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	session := []string{"Mcp-Session-Id", resp.Header.Get("Mcp-Session-Id")}
	for at := range c.all {
		other := c.all[(at+1)%len(c.all)].url + "/mcp?mode=direct"
		answer := c.stream(t, c.all[at].url+"/mcp?mode=direct", `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"tools__ask","arguments":{}}}`,
			func(m map[string]json.RawMessage) {
				if string(m["method"]) != `"elicitation/create"` {
					return
				}
				status, text, err := try(ctx, "POST", other, rootKey, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"action":"accept","content":{"name":"ada%d"}}}`, m["id"], at), session...)
				if status != 202 {
					t.Errorf("answering elsewhere: %d %s %v", status, text, err)
				}
			}, session...)
		if !strings.Contains(answer, fmt.Sprintf("ada%d", at)) {
			t.Errorf("asked at %d: %s", at, answer)
		}
	}
}

// parkedCalls: the retry of a call that waits for input finds it on another
// node.
func (c *nodes) parkedCalls(t *testing.T) {
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}`
	header := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call", "Mcp-Name", "tools__ask"}
	first := c.stream(t, c.all[0].url+"/mcp?mode=direct", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"tools__ask","arguments":{},`+meta+`}}`, func(map[string]json.RawMessage) {}, header...)
	var m struct {
		Result struct {
			RequestState  string                     `json:"requestState"`
			InputRequests map[string]json.RawMessage `json:"inputRequests"`
		} `json:"result"`
	}
	if err := json.Unmarshal([]byte(first), &m); err != nil || m.Result.RequestState == "" {
		t.Fatalf("%v: %s", err, first)
	}
	for key := range m.Result.InputRequests {
		second := c.stream(t, c.all[1].url+"/mcp?mode=direct", fmt.Sprintf(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"tools__ask","arguments":{},"requestState":%q,"inputResponses":{%q:{"action":"accept","content":{"name":"grace"}}},%s}}`,
			m.Result.RequestState, key, meta), func(map[string]json.RawMessage) {}, header...)
		if !strings.Contains(second, "grace") {
			t.Errorf("the retry elsewhere: %s", second)
		}
	}
}

// keys: one that is revoked on one node is refused on all within 2 s.
func (c *nodes) keys(t *testing.T) {
	ctx := ctxFor(t)
	key := strings.TrimSpace(firstLine(c.all[0].mustRun(nil, junctor(t), "keys", "add", "guest", "--config", c.all[0].config)))
	for _, g := range c.all {
		if status, body, err := try(ctx, "GET", g.url+"/tools", key, ""); status != 200 {
			t.Errorf("a new key: %d %s %v", status, body, err)
		}
	}
	c.all[1].mustRun(nil, junctor(t), "keys", "revoke", "guest", "--config", c.all[1].config)
	<-time.After(2 * time.Second)
	for _, g := range c.all {
		if status, _, _ := try(ctx, "GET", g.url+"/tools", key, ""); status != 401 {
			t.Errorf("a revoked key after 2 s: %d", status)
		}
	}
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// rate: a limit holds over all nodes together.
func (c *nodes) rate(t *testing.T) {
	ctx := ctxFor(t)
	var served, refused atomic.Int64
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for range 10 {
				switch status, body, err := try(ctx, "POST", c.proxy+"/call_tool", "slow-key-of-the-nodes-tests-0123456789", callEcho); status {
				case 200:
					served.Add(1)
				case 429:
					refused.Add(1)
				default:
					t.Errorf("%d %s %v", status, body, err)
				}
			}
		})
	}
	wg.Wait()
	if served.Load() != 20 || refused.Load() != 40 {
		t.Errorf("%d served and %d refused of 60, with 20 allowed", served.Load(), refused.Load())
	}
}

// tail follows the log of one node and checks that no number is missing.
type tail struct {
	mu    sync.Mutex
	last  int64
	count int
	wrong string
}

func (c *nodes) tail(t *testing.T, g *gateway) *tail {
	t.Helper()
	last, err := c.store.LastSeq(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l := &tail{last: last}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			l.read(ctx, g)
			select { // the line broke: go on where it ended
			case <-ctx.Done():
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return l
}

func (l *tail) read(ctx context.Context, g *gateway) {
	l.mu.Lock()
	address := fmt.Sprintf("%s/logs?after=%d&limit=10000", g.url, l.last)
	l.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, "GET", address, nil)
	if err != nil {
		return
	}
	req.Header.Set("Authorization", "Bearer "+rootKey)
	req.Header.Set("Accept", "text/event-stream")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		var call store.Call
		if !ok || json.Unmarshal([]byte(data), &call) != nil || call.Seq == 0 {
			continue
		}
		l.mu.Lock()
		if call.Seq != l.last+1 && l.wrong == "" {
			l.wrong = fmt.Sprintf("%d came after %d", call.Seq, l.last)
		}
		l.last = call.Seq
		l.count++
		l.mu.Unlock()
	}
}

func (l *tail) at() (count int, wrong string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count, l.wrong
}

// liveLog: one node's live log shows the calls of all, in order.
func (c *nodes) liveLog(t *testing.T) {
	l := c.tail(t, c.all[2])
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for range 20 {
				if status, body, err := c.call(ctxFor(t), c.proxy, callEcho); status != 200 {
					t.Errorf("%d %s %v", status, body, err)
				}
			}
		})
	}
	wg.Wait()
	until(t, "120 calls in the live log", func() bool { n, _ := l.at(); return n >= 120 })
	if n, wrong := l.at(); n != 120 || wrong != "" {
		t.Errorf("%d calls; %s", n, wrong)
	}
	calls, err := c.store.Calls(ctxFor(t), store.CallQuery{Limit: 120})
	if err != nil {
		t.Fatal(err)
	}
	who := map[string]bool{}
	for _, call := range calls {
		who[call.Node] = true
	}
	if len(who) != 3 {
		t.Errorf("the calls came from %d nodes", len(who))
	}
}

const callLonely = `{"server":"lonely","tool":"test_simple_text","arguments":{}}`

// singleton: one process serves the calls of all nodes.
func (c *nodes) singleton(t *testing.T) {
	for i, g := range c.all {
		if status, body, err := c.call(ctxFor(t), g.url, callLonely); status != 200 || !strings.Contains(body, "text") {
			t.Errorf("at node %d: %d %s %v", i, status, body, err)
		}
	}
	if n := processes(t, c.single); n != 1 {
		t.Errorf("%d processes of a singleton", n)
	}
}
