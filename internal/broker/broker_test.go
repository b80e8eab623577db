package broker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"junctor/internal/httperr"
	"junctor/internal/httpserver"
	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// gateway is a scripted core.
type gateway struct {
	last tool.Call
	sent json.RawMessage // the params of the last request
	do   func(ctx context.Context, ex tool.Exchange) (json.RawMessage, error)
}

func (g *gateway) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	g.last, g.sent = c, c.Params
	raw, err := g.do(ctx, c.Exchange)
	return tool.Result{Raw: raw}, err
}

func (g *gateway) Forward(ctx context.Context, r tool.Forward) (json.RawMessage, error) {
	g.sent = r.Params
	return g.do(ctx, r.Exchange)
}

func (g *gateway) Targets(string) []Target {
	return []Target{
		{Name: "jira", Proxy: true, URL: "https://mcp.example/v1/sse", Available: true, Authorized: true, HasToken: true, LastAuthorized: time.Unix(1000, 0).UTC()},
		{Name: "closed", URL: "stdio:npx"},
		{Name: "hidden", Proxy: true},
	}
}

func (g *gateway) Target(name, _ string) (Target, bool) {
	for _, t := range g.Targets("") {
		if t.Name == name {
			return t, true
		}
	}
	return Target{}, false
}

var limited = tool.Caller{ID: "key:k", Servers: []string{"jira", "closed"}}

func newServer(t *testing.T, g *gateway) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	New(Options{Calls: g, Targets: g}).Routes(mux)
	ts := httptest.NewServer(httperr.WithRequestID(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		httpserver.LimitBody(func() int64 { return 2000 }, mux).ServeHTTP(w, r.WithContext(tool.WithCaller(r.Context(), limited)))
	})))
	t.Cleanup(ts.Close)
	return ts
}

func post(t *testing.T, url, accept, body string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

func text(t *testing.T, res *http.Response) string {
	t.Helper()
	var b strings.Builder
	if _, err := bufio.NewReader(res.Body).WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestResultsPassByteForByte(t *testing.T) {
	g := &gateway{do: func(context.Context, tool.Exchange) (json.RawMessage, error) {
		return json.RawMessage(`{"x" : 12345678901234567890, "new":[ ]}`), nil
	}}
	ts := newServer(t, g)
	for body, want := range map[string]string{
		`{"method":"x/unknown","params":{"a" : 1},"id":7}`:                         `"id":7`,
		`{"jsonrpc":"2.0","method":"tools/list","id":"a\"b"}`:                      `"id":"a\"b"`,
		`{"method":"tools/call","params":{"name":"t","arguments":{"a":1}},"id":1}`: `"id":1`,
		`{"method":"resources/list"}`:                                              `"id":`,
		`{"method":"resources/list","params":null,"id":null}`:                      `"id":`,
	} {
		res := post(t, ts.URL+"/api/mcp/jira/proxy", "application/json", body)
		got := text(t, res)
		if res.StatusCode != 200 || !strings.Contains(got, want) || !strings.Contains(got, `"result":{"x" : 12345678901234567890, "new":[ ]}`) || !strings.Contains(got, `"jsonrpc":"2.0"`) {
			t.Errorf("%s → %d %s", body, res.StatusCode, got)
		}
	}
	post(t, ts.URL+"/api/mcp/jira/proxy", "", `{"method":"tools/call","params":{"name":"t","arguments":{"a":1},"task":{}}}`)
	if c := g.last; c.Server != "jira" || c.Tool != "t" || string(c.Arguments) != `{"a":1}` || string(c.Params) != `{"name":"t","arguments":{"a":1},"task":{}}` || c.Face != "broker" || c.Caller.ID != "key:k" || c.RequestID == "" {
		t.Errorf("call = %+v", c)
	}
}

func TestErrorStatusAndBody(t *testing.T) {
	g := &gateway{do: func(context.Context, tool.Exchange) (json.RawMessage, error) { return json.RawMessage(`{}`), nil }}
	ts := newServer(t, g)
	ok := `{"method":"tools/list"}`
	for name, tt := range map[string]struct {
		path, body string
		err        error
		status     int
		code       string
	}{
		"unknown server":      {"nope", ok, nil, 404, "SERVER_NOT_FOUND"},
		"hidden server":       {"hidden", ok, nil, 404, "SERVER_NOT_FOUND"},
		"tricky name":         {"..%2F..%2Fetc", ok, nil, 404, "SERVER_NOT_FOUND"},
		"no proxy":            {"closed", ok, nil, 400, "PROXY_DISABLED"},
		"not JSON":            {"jira", `{"method"`, nil, 400, "PARSE_ERROR"},
		"not UTF-8":           {"jira", "{\"method\":\"tools/call\",\"params\":{\"name\":\"a\",\"arguments\":{\"x\":\"\xff\"}}}", nil, 400, "PARSE_ERROR"},
		"too deep":            {"jira", `{"method":"tools/call","params":{"name":"a","arguments":` + strings.Repeat(`{"a":`, 300) + `1` + strings.Repeat(`}`, 300) + `}}`, nil, 400, "INVALID_REQUEST"},
		"empty":               {"jira", ``, nil, 400, "PARSE_ERROR"},
		"an array":            {"jira", `[]`, nil, 400, "INVALID_REQUEST"},
		"no method":           {"jira", `{"params":{}}`, nil, 400, "INVALID_REQUEST"},
		"odd method":          {"jira", `{"method":7}`, nil, 400, "INVALID_REQUEST"},
		"odd params":          {"jira", `{"method":"x","params":[1]}`, nil, 400, "INVALID_REQUEST"},
		"odd id":              {"jira", `{"method":"x","id":{}}`, nil, 400, "INVALID_REQUEST"},
		"notification":        {"jira", `{"method":"notifications/cancelled"}`, nil, 400, "INVALID_REQUEST"},
		"handshake":           {"jira", `{"method":"initialize"}`, nil, 400, "INVALID_REQUEST"},
		"call of no tool":     {"jira", `{"method":"tools/call"}`, nil, 400, "INVALID_REQUEST"},
		"call of a number":    {"jira", `{"method":"tools/call","params":{"name":7}}`, nil, 400, "INVALID_REQUEST"},
		"too large":           {"jira", `{"method":"x","params":{"a":"` + strings.Repeat("x", 3000) + `"}}`, nil, 413, "TOO_LARGE"},
		"needs consent":       {"jira", ok, &tool.Error{Kind: tool.UpstreamAuthRequired, Msg: "log in"}, 401, "UPSTREAM_AUTH_REQUIRED"},
		"unreachable":         {"jira", ok, &tool.Error{Kind: tool.UpstreamFailed, Msg: "down"}, 502, "UPSTREAM_ERROR"},
		"a bug shows no more": {"jira", ok, errors.New("/secret/path"), 500, "INTERNAL"},
	} {
		t.Run(name, func(t *testing.T) {
			g.do = func(context.Context, tool.Exchange) (json.RawMessage, error) { return json.RawMessage(`{}`), tt.err }
			for _, accept := range []string{"application/json", "text/event-stream"} {
				res := post(t, ts.URL+"/api/mcp/"+tt.path+"/proxy", accept, tt.body)
				body := text(t, res)
				if res.StatusCode != tt.status || !strings.Contains(body, `"code":"`+tt.code+`"`) || strings.Contains(body, "/secret") {
					t.Errorf("%s: %d %s", accept, res.StatusCode, body)
				}
			}
		})
	}
}

func TestUpstreamErrorIsReturnedAsResponse(t *testing.T) {
	g := &gateway{do: func(context.Context, tool.Exchange) (json.RawMessage, error) {
		return nil, &tool.Error{Kind: tool.UpstreamFailed, Msg: "x", Err: &mcp.Error{Code: -32002, Message: "no such resource", Data: json.RawMessage(`{"uri":"a"}`)}}
	}}
	ts := newServer(t, g)
	res := post(t, ts.URL+"/api/mcp/jira/proxy", "", `{"method":"resources/read","id":3}`)
	if body := text(t, res); res.StatusCode != 200 || body != `{"jsonrpc":"2.0","id":3,"error":{"code":-32002,"message":"no such resource","data":{"uri":"a"}}}` {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

func TestStreamSendsNotificationsBeforeResult(t *testing.T) {
	first := make(chan struct{})
	g := &gateway{do: func(_ context.Context, ex tool.Exchange) (json.RawMessage, error) {
		ex.Notify("notifications/progress", json.RawMessage(`{"progress":1}`))
		<-first // wait until the client has received the first event
		ex.Notify("notifications/message", json.RawMessage(`{"data":"x"}`))
		return json.RawMessage(`{"done":true}`), nil
	}}
	ts := newServer(t, g)
	for accept, prefix := range map[string]string{"text/event-stream, application/json": "data: ", "application/x-ndjson": ""} {
		res := post(t, ts.URL+"/api/mcp/jira/proxy", accept, `{"method":"tools/call","params":{"name":"t"},"id":9}`)
		var got []string
		for lines := bufio.NewScanner(res.Body); lines.Scan(); {
			if data, ok := strings.CutPrefix(lines.Text(), prefix); ok && strings.HasPrefix(data, "{") {
				if got = append(got, data); len(got) == 1 {
					first <- struct{}{}
				}
			}
		}
		want := []string{
			`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}`,
			`{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"x"}}`,
			`{"jsonrpc":"2.0","id":9,"result":{"done":true}}`,
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %q", accept, got)
		}
		if token := rawjson.Field(g.sent, "_meta", "progressToken"); string(token) != "9" {
			t.Errorf("progress was not asked for: %s", g.sent)
		}
	}
	own := `{"method":"x","params":{"_meta":{"progressToken":"mine"}}}`
	g.do = func(context.Context, tool.Exchange) (json.RawMessage, error) { return json.RawMessage(`{}`), nil }
	post(t, ts.URL+"/api/mcp/jira/proxy", "text/event-stream", own)
	if token := rawjson.Field(g.sent, "_meta", "progressToken"); string(token) != `"mine"` {
		t.Errorf("the client's own token was replaced: %s", g.sent)
	}
}

func TestStreamEndsWithErrorEvent(t *testing.T) {
	g := &gateway{do: func(_ context.Context, ex tool.Exchange) (json.RawMessage, error) {
		ex.Notify("notifications/progress", json.RawMessage(`{}`))
		return nil, &tool.Error{Kind: tool.UpstreamFailed, Msg: "the connection broke"}
	}}
	ts := newServer(t, g)
	body := text(t, post(t, ts.URL+"/api/mcp/jira/proxy", "text/event-stream", `{"method":"x"}`))
	if !strings.Contains(body, "event: error\ndata: {") || !strings.Contains(body, "UPSTREAM_ERROR") {
		t.Errorf("stream = %s", body)
	}
}

func TestDisconnectedClientCancelsCall(t *testing.T) {
	started, cancelled := make(chan struct{}), make(chan struct{})
	g := &gateway{do: func(ctx context.Context, ex tool.Exchange) (json.RawMessage, error) {
		close(started)
		<-ctx.Done()
		close(cancelled)
		return nil, ctx.Err()
	}}
	ts := newServer(t, g)
	ctx, cancel := context.WithCancel(t.Context())
	req, _ := http.NewRequestWithContext(ctx, "POST", ts.URL+"/api/mcp/jira/proxy", strings.NewReader(`{"method":"x"}`))
	go http.DefaultClient.Do(req)
	<-started
	cancel()
	<-cancelled
}

func TestStatusAndConnections(t *testing.T) {
	g := &gateway{do: func(context.Context, tool.Exchange) (json.RawMessage, error) { return json.RawMessage(`{}`), nil }}
	ts := newServer(t, g)
	get := func(path string) (int, map[string]any) {
		res, err := http.Get(ts.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var v map[string]any
		if err := json.NewDecoder(res.Body).Decode(&v); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, v
	}
	_, s := get("/api/mcp/jira/proxy/status")
	if s["lastProxyRequest"] != nil || s["proxyRequestCount"] != 0.0 || s["isProxy"] != true || s["targetUrl"] != "https://mcp.example/v1/sse" || s["isAuthorized"] != true || s["hasToken"] != true {
		t.Errorf("status = %v", s)
	}
	post(t, ts.URL+"/api/mcp/jira/proxy", "", `{"method":"x"}`)
	if _, s := get("/api/mcp/jira/proxy/status"); s["lastProxyRequest"] == nil || s["proxyRequestCount"] != 1.0 {
		t.Errorf("status = %v", s)
	}
	if code, _ := get("/api/mcp/hidden/proxy/status"); code != 404 {
		t.Errorf("status of a hidden server: %d", code)
	}
	_, c := get("/api/connections")
	list, _ := c["connections"].([]any)
	if len(list) != 2 {
		t.Fatalf("connections = %v", c)
	}
	jira := list[0].(map[string]any)
	if fmt.Sprint(jira["proxyEndpoints"]) != "[/api/mcp/jira/proxy]" || jira["type"] != "mcp-server" || jira["isAvailable"] != true {
		t.Errorf("jira = %v", jira)
	}
	if closed := list[1].(map[string]any); fmt.Sprint(closed["proxyEndpoints"]) != "[]" {
		t.Errorf("closed = %v", closed)
	}
}
