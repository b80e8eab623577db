package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"junctor/internal/store"
)

// TestNodes runs all tests that share the same three nodes.
func TestNodes(t *testing.T) {
	t.Parallel()
	jobs := taskServerURL(t)
	c := startNodes(t, 3, func(_ int, s settings) {
		s["toolRules"] = []settings{{"pattern": "tools:huge", "approval": "ask"}}
		s["mcpServers"].(settings)["jobs"] = settings{"url": jobs}
	}).ready("tools", "lonely", "jobs")
	t.Run("sessions", c.sessions)
	t.Run("approvals", c.approvals)
	t.Run("official client", c.officialClient)
	t.Run("questions", c.questions)
	t.Run("parked", c.parkedCalls)
	t.Run("keys", c.keys)
	t.Run("rate", c.rate)
	t.Run("configuration", c.configuration)
	t.Run("live log", c.liveLog)
	t.Run("singleton", c.singleton)
	t.Run("connections cut", c.connectionsCut)
	task, question := c.beginTask(t)
	t.Run("killed under load", c.killedUnderLoad)
	t.Run("task of a killed node", func(t *testing.T) { c.endTask(t, task, question) })
}

// sessions: a session that is created or closed on one node is so on all nodes.
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
	if status, _, _ := try(ctx, "POST", c.proxy+"/mcp", slowKey, list, "Mcp-Session-Id", id); status != 404 {
		t.Errorf("another caller's session: %d", status)
	}
	if status, body, _ := try(ctx, "DELETE", c.proxy+"/mcp", rootKey, "", "Mcp-Session-Id", id); status != 204 {
		t.Fatalf("DELETE: %d %s", status, body)
	}
	for _, g := range c.all {
		eventually(t, "the session's end", func() bool {
			status, _, _ := try(ctx, "POST", g.url+"/mcp", rootKey, list, "Mcp-Session-Id", id)
			return status == 404
		})
	}
}

// keyed is an http.RoundTripper that adds the key to every request.
type keyed struct{}

func (keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+rootKey)
	return http.DefaultTransport.RoundTrip(r)
}

// officialClient: the official SDK's client makes calls, answers requests and
// receives notifications of changes, with each of its requests on another node.
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
	// The client starts listening asynchronously, and is not notified of
	// earlier changes.
	for notified := false; !notified; {
		if _, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "tools__change", Arguments: map[string]any{}}); err != nil {
			t.Fatal(err)
		}
		select {
		case <-changed:
			notified = true
		case <-time.After(time.Second):
		}
	}
}

// stream posts a request and reads events until one is a response, which it
// returns. Other messages are passed to each.
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

// questions: a question that is asked on one node's stream is answered through
// another node.
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

// keys: a key that is revoked on one node is refused on all within 2 s.
func (c *nodes) keys(t *testing.T) {
	ctx := ctxFor(t)
	key := strings.TrimSpace(firstLine(c.all[0].mustRun(nil, junctor(t), "keys", "add", "guest", "--config", c.all[0].config)))
	for _, g := range c.all {
		if status, body, err := try(ctx, "GET", g.url+"/tools", key, ""); status != 200 {
			t.Errorf("a new key: %d %s %v", status, body, err)
		}
	}
	c.all[1].mustRun(nil, junctor(t), "keys", "revoke", "guest", "--config", c.all[1].config)
	revoked := time.Now()
	for _, g := range c.all {
		eventually(t, "a revoked key is refused", func() bool {
			status, _, _ := try(ctx, "GET", g.url+"/tools", key, "")
			return status == 401
		})
	}
	within(t, "a revoked key is refused everywhere", time.Since(revoked), 2*time.Second)
}

// configuration: a change by an administrator on one node applies to all.
func (c *nodes) configuration(t *testing.T) {
	ctx := ctxFor(t)
	ask := func(g *gateway, method, path, body string) {
		t.Helper()
		if status, text, err := try(ctx, method, g.url+path, rootKey, body, "Origin", g.url); status/100 != 2 {
			t.Fatalf("%s %s: %d %s %v", method, path, status, text, err)
		}
	}
	everywhere := func(what string, served bool) {
		t.Helper()
		for _, g := range c.all {
			eventually(t, what, func() bool {
				status, _, _ := c.call(ctx, g.url, `{"server":"added","tool":"echo","arguments":{}}`)
				return (status == 200) == served
			})
		}
	}
	ask(c.all[0], "POST", "/api/servers", fmt.Sprintf(`{"servers":{"added":{"url":%q}}}`, c.tools.URL))
	everywhere("the server everywhere", true)
	ask(c.all[1], "PATCH", "/api/servers/added", `{"enabled":false}`)
	everywhere("the server off everywhere", false)
	ask(c.all[2], "PATCH", "/api/servers/added", `{"enabled":true}`)
	everywhere("the server on everywhere", true)
	ask(c.all[1], "DELETE", "/api/servers/added", "")
	everywhere("the server gone everywhere", false)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// rate: a rate limit applies to all nodes together.
func (c *nodes) rate(t *testing.T) {
	ctx := ctxFor(t)
	var served, refused atomic.Int64
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			for range 10 {
				switch status, body, err := try(ctx, "POST", c.proxy+"/call_tool", slowKey, callEcho); status {
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
	eventually(t, "120 calls in the live log", func() bool { n, _ := l.at(); return n >= 120 })
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
