package app

import (
	"bufio"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"junctor/internal/llm/llmtest"
	"junctor/internal/rawjson"
	"junctor/internal/upstream/upstreamtest"
)

// watched is a server that records the requests it receives.
type watched struct {
	*upstreamtest.HTTP
	mu  sync.Mutex
	got []string // method and name

	listening chan struct{} // closed when the gateway has subscribed to notifications
}

func watch(t *testing.T, script upstreamtest.Script) *watched {
	w := &watched{HTTP: upstreamtest.Listen(t, script), listening: make(chan struct{})}
	listening := sync.OnceFunc(func() { close(w.listening) })
	w.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return false
		}
		r.Body = io.NopCloser(strings.NewReader(string(b)))
		w.mu.Lock()
		defer w.mu.Unlock()
		method := rawjson.FieldString(b, "method")
		w.got = append(w.got, strings.TrimSpace(method+" "+rawjson.FieldString(rawjson.Field(b, "params"), "name")))
		if method == "subscriptions/listen" {
			listening()
		}
		return false
	}
	return w
}

// since returns the requests after the first n, without those of the gateway
// itself.
func (w *watched) since(n int) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.got[n:]), func(s string) bool { return s == "ping" || s == "" })
}

func (w *watched) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.got)
}

// TestLimitedKeyOverEveryAPI uses every API as a caller that may call only one
// tool of one server. No other request may reach a server, and no response may
// reveal what the caller may not use.
func TestLimitedKeyOverEveryAPI(t *testing.T) {
	for name, way := range map[string]struct{ rights, query string }{
		"key with globs":            {`"tools":["mine:echo"]`, ""},
		"key with excluding globs":  {`"servers":["*","!theirs"],"tools":["*:*","!*:whoami","!*:*/*"]`, ""},
		"key bound to a profile":    {`"profile":"echo"`, ""},
		"key that chooses":          {`"rate":{"calls":10000}`, "profile=echo"},
		"key that chooses its own":  {`"profile":"echo"`, "profile=echo"},
		"globs within a profile":    {`"servers":["mine"]`, "profile=echo"},
		"key that chooses by a tag": {`"rate":{"calls":10000}`, "profile=tagged"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limitedOverEveryAPI(t, way.rights, way.query)
		})
	}
}

func limitedOverEveryAPI(t *testing.T, rights, query string) {
	const boss, guest = "key-of-the-boss-0000001", "key-of-the-guest-000002"
	tools := func(secret string) []json.RawMessage {
		return []json.RawMessage{upstreamtest.Tool("echo", "says it again"), upstreamtest.Tool("whoami", secret)}
	}
	mine := watch(t, upstreamtest.Script{Tools: tools("guarded one"), Guidance: "guarded guidance", Instructions: "of mine"})
	theirs := watch(t, upstreamtest.Script{Tools: append(tools("guarded two"), upstreamtest.Tool("only_here", "guarded two")), Guidance: "guarded guidance", Instructions: "guarded instructions"})
	forced := []llmtest.Call{
		{Tool: "theirs:echo", Args: json.RawMessage(`{}`)}, {Tool: "theirs__echo", Args: json.RawMessage(`{}`)}, {Tool: "mine__whoami", Args: json.RawMessage(`{}`)},
		{Tool: "execute_tool", Args: json.RawMessage(`{"server":"theirs","tool":"echo","arguments":{}}`)},
		{Tool: "get_tool_details", Args: json.RawMessage(`{"server":"mine","tool":"whoami"}`)},
	}
	model := llmtest.Start(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "do it", Results: new(int)}, Reply: llmtest.Reply{Calls: forced}},
	}, Default: &llmtest.Reply{Text: "over"}})
	r := start(t, fmt.Sprintf(`{"llm":{"provider":"openai","model":"x","apiKey":"sk-test-key","baseUrl":%q},
		"auth":{"loopback":"key","keys":[{"name":"boss","key":%q,"admin":true},{"name":"guest","key":%q,%s,"chat":true}]},
		"profiles":{"echo":{"tools":["mine:echo"]},"tagged":{"tags":["open"]}},"toolRules":[{"pattern":["mine:echo"],"tags":["open"]}],
		"mcpServers":{"mine":{"url":%q,"proxy":true},"theirs":{"url":%q,"proxy":true}}}`, model.URL+"/v1", boss, guest, rights, mine.URL, theirs.URL), t.TempDir())
	r.connected("mine")
	r.connected("theirs")
	for _, w := range []*watched{mine, theirs} { // requests after connecting are the gateway's own
		select {
		case <-w.listening:
		case <-time.After(time.Minute):
			t.Fatal("the gateway did not ask for notifications")
		}
	}

	send := func(key, method, path, body string, header ...string) (int, http.Header, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, r.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if key == guest && query != "" {
			req.URL.RawQuery = strings.TrimPrefix(req.URL.RawQuery+"&"+query, "&")
		}
		req.Header.Set("Authorization", "Bearer "+key)
		req.Header.Set("Content-Type", "application/json")
		for i := 0; i+1 < len(header); i += 2 {
			req.Header.Set(header[i], header[i+1])
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		return res.StatusCode, res.Header, string(b)
	}
	open := func(key, path, version string) []string {
		t.Helper()
		code, header, body := send(key, "POST", path, fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`, version), "Accept", "application/json, text/event-stream")
		if code != 200 {
			t.Fatalf("%s: %d %s", path, code, body)
		}
		return []string{"Mcp-Session-Id", header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", version, "Accept", "application/json, text/event-stream"}
	}
	// Data of the boss that the guest must not see.
	if code, _, body := send(boss, "POST", "/call_tool", `{"server":"theirs","tool":"echo","arguments":{"note":"guarded argument"}}`, "X-Request-Id", "guarded-request"); code != 200 {
		t.Fatalf("the boss's call: %d %s", code, body)
	}
	_, _, calls := send(boss, "GET", "/api/calls", "")
	call := rawjson.FieldString(firstOf(rawjson.Field([]byte(calls), "calls")), "id")
	if call == "" {
		t.Fatalf("the boss's calls: %s", calls)
	}
	chat := talk(t, r.url+"/ws", boss, "a guarded conversation")
	bossSession, bossEvents := open(boss, "/mcp", "2025-11-25"), legacy(t, r.url, boss)
	meta, direct, single := open(guest, "/mcp", "2025-03-26"), open(guest, "/mcp?mode=direct", "2025-03-26"), open(guest, "/mcp/mine", "2025-03-26")
	// Open the guest's sessions with the servers before counting.
	if code, _, body := send(guest, "POST", "/call_tool", `{"server":"mine","tool":"echo","arguments":{}}`); code != 200 {
		t.Fatalf("what the guest may do: %d %s", code, body)
	}
	atMine, atTheirs := mine.count(), theirs.count()

	rpc := func(method, params string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s}}`, method, params)
	}
	executes := func(server, name string) string {
		return rpc("tools/call", fmt.Sprintf(`"name":"execute_tool","arguments":{"server":%q,"tool":%q,"arguments":{}}`, server, name))
	}
	type request struct {
		method, path, body string
		header             []string
	}
	get := func(path string) request { return request{method: "GET", path: path} }
	post := func(path, body string, header ...string) request { return request{"POST", path, body, header} }
	proxy := func(body string) request { return post("/api/mcp/mine/proxy", body) }
	requests := map[string]request{
		// The tools API.
		"tools": get("/tools"), "tools of a provider": get("/tools/openai"), "context": get("/tools/gemini/context"), "tools searched": get("/tools/openai?query=guarded"),
		"call":                 post("/call_tool", `{"server":"theirs","tool":"echo","arguments":{}}`),
		"call, other tool":     post("/call_tool", `{"server":"mine","tool":"whoami","arguments":{}}`),
		"call, whole name":     post("/call_tool", `{"tool":"mine:whoami","arguments":{}}`),
		"call, direct name":    post("/call_tool", `{"tool":"mine__whoami","arguments":{}}`),
		"call, twice named":    post("/call_tool", `{"server":"mine","tool":"echo","tool":"whoami","arguments":{}}`),
		"call, in capitals":    post("/call_tool", `{"server":"mine","tool":"echo","Tool":"whoami","arguments":{}}`),
		"call, escaped":        post("/call_tool", `{"server":"mine","t\u006fol":"wh\u006fami","arguments":{}}`),
		"call, name in name":   post("/call_tool", `{"server":"mine","tool":"echo\u0000whoami","arguments":{}}`),
		"execute":              post("/execute", `{"provider":"gemini","call":{"name":"theirs__echo","args":{}}}`),
		"execute, other tool":  post("/execute", `{"provider":"gemini","call":{"name":"mine__whoami","args":{}}}`),
		"execute, several":     post("/execute", `{"provider":"openai","call":[{"id":"1","type":"function","function":{"name":"theirs__echo","arguments":"{}"}},{"id":"2","type":"function","function":{"name":"mine__whoami","arguments":"{}"}}]}`),
		"execute, with server": post("/execute", `{"provider":"gemini","server":"theirs","call":{"name":"echo","args":{}}}`),
		"execute, bare name":   post("/execute", `{"provider":"gemini","call":{"name":"only_here","args":{}}}`),
		"execute, left":        post("/execute", `{"provider":"gemini","call":{"name":"only_here","args":{}},"wait":false}`),
		"logs":                 get("/logs?limit=100"), "logs of a server": get("/logs?server=theirs"), "health": get("/health"), "metrics": get("/metrics"),
		// The proxy.
		"proxy":                 proxy(`{"method":"tools/call","params":{"name":"whoami","arguments":{}}}`),
		"proxy, escaped":        proxy(`{"method":"tools\/c\u0061ll","params":{"n\u0061me":"wh\u006fami","arguments":{}}}`),
		"proxy, twice named":    proxy(`{"method":"tools/call","params":{"name":"echo","name":"whoami","arguments":{}}}`),
		"proxy, two methods":    proxy(`{"method":"tools/list","method":"prompts/list","params":{}}`),
		"proxy, in capitals":    proxy(`{"method":"tools/call","params":{"name":"echo","Name":"whoami","arguments":{}}}`),
		"proxy, two params":     proxy(`{"method":"tools/call","params":{"name":"echo","arguments":{}},"params":{"name":"whoami","arguments":{}}}`),
		"proxy, batch":          proxy(`[{"method":"tools/call","params":{"name":"whoami","arguments":{}}}]`),
		"proxy, resources":      proxy(`{"method":"resources/list"}`),
		"proxy, read":           proxy(`{"method":"resources/read","params":{"uri":"file:///etc/passwd"}}`),
		"proxy, subscribe":      proxy(`{"method":"resources/subscribe","params":{"uri":"x:y"}}`),
		"proxy, prompts":        proxy(`{"method":"prompts/list"}`),
		"proxy, prompt":         proxy(`{"method":"prompts/get","params":{"name":"tool-descriptions"}}`),
		"proxy, completion":     proxy(`{"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"tool-descriptions"},"argument":{"name":"x","value":""}}}`),
		"proxy, level":          proxy(`{"method":"logging/setLevel","params":{"level":"debug"}}`),
		"proxy, tasks":          proxy(`{"method":"tasks/list"}`),
		"proxy, unknown":        proxy(`{"method":"x/y"}`),
		"proxy, notification":   proxy(`{"method":"notifications/roots/list_changed"}`),
		"proxy of theirs":       post("/api/mcp/theirs/proxy", `{"method":"tools/list"}`),
		"proxy, escaped server": post("/api/mcp/their%73/proxy", `{"method":"tools/list"}`),
		"proxy, dots":           post("/api/mcp/mine%2f..%2ftheirs/proxy", `{"method":"tools/list"}`),
		"proxy status":          get("/api/mcp/theirs/proxy/status"), "connections": get("/api/connections"),
		"login": post("/api/mcp/theirs/authorize", ""), "logout": {method: "DELETE", path: "/api/mcp/theirs/authorize"},
		// MCP.
		"execute_tool":                post("/mcp", executes("theirs", "echo"), meta...),
		"execute_tool, other tool":    post("/mcp", executes("mine", "whoami"), meta...),
		"execute_tool, batch":         post("/mcp", "["+executes("theirs", "echo")+","+executes("mine", "whoami")+"]", meta...),
		"execute_tool, twice named":   post("/mcp", rpc("tools/call", `"name":"execute_tool","arguments":{"server":"mine","tool":"echo","tool":"whoami","arguments":{}}`), meta...),
		"execute_tool, escaped":       post("/mcp", rpc("tools/call", `"name":"execute_tool","arguments":{"server":"their\u0073","tool":"ech\u006f","arguments":{}}`), meta...),
		"search_tools":                post("/mcp", rpc("tools/call", `"name":"search_tools","arguments":{"query":"guarded"}`), meta...),
		"list_tools":                  post("/mcp", rpc("tools/call", `"name":"list_tools","arguments":{"server":"mine"}`), meta...),
		"list_tools of theirs":        post("/mcp", rpc("tools/call", `"name":"list_tools","arguments":{"server":"theirs"}`), meta...),
		"list_mcp_servers":            post("/mcp", rpc("tools/call", `"name":"list_mcp_servers","arguments":{}`), meta...),
		"get_tool_details":            post("/mcp", rpc("tools/call", `"name":"get_tool_details","arguments":{"server":"mine","tool":"whoami"}`), meta...),
		"direct list":                 post("/mcp?mode=direct", rpc("tools/list", ""), direct...),
		"direct":                      post("/mcp?mode=direct", rpc("tools/call", `"name":"theirs__echo","arguments":{}`), direct...),
		"direct, batch":               post("/mcp?mode=direct", "["+rpc("tools/call", `"name":"mine__whoami","arguments":{}`)+","+rpc("prompts/list", "")+"]", direct...),
		"direct prompts":              post("/mcp?mode=direct", rpc("prompts/list", ""), direct...),
		"direct prompt":               post("/mcp?mode=direct", rpc("prompts/get", `"name":"theirs__tool-descriptions"`), direct...),
		"direct resources":            post("/mcp?mode=direct", rpc("resources/list", ""), direct...),
		"direct completion":           post("/mcp?mode=direct", rpc("completion/complete", `"ref":{"type":"ref/prompt","name":"mine__tool-descriptions"},"argument":{"name":"x","value":""}`), direct...),
		"single list":                 post("/mcp/mine", rpc("tools/list", ""), single...),
		"single":                      post("/mcp/mine", rpc("tools/call", `"name":"whoami","arguments":{}`), single...),
		"single prompts":              post("/mcp/mine", rpc("prompts/list", ""), single...),
		"single prompt":               post("/mcp/mine", rpc("prompts/get", `"name":"tool-descriptions"`), single...),
		"single resources":            post("/mcp/mine", rpc("resources/read", `"uri":"x:y"`), single...),
		"single completion":           post("/mcp/mine", rpc("completion/complete", `"ref":{"type":"ref/prompt","name":"tool-descriptions"},"argument":{"name":"x","value":""}`), single...),
		"single, notification":        post("/mcp/mine", `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, single...),
		"single of theirs":            post("/mcp/theirs", rpc("tools/list", ""), single...),
		"session of the boss":         post("/mcp", executes("theirs", "echo"), bossSession...),
		"stream of the boss":          {"GET", "/mcp", "", append(slices.Clone(bossSession[:4]), "Accept", "text/event-stream")},
		"end of the boss's session":   {"DELETE", "/mcp", "", bossSession[:4]},
		"legacy stream of the boss":   post(bossEvents, executes("theirs", "echo")),
		"legacy stream, a foreign id": post("/mcp?sessionId=none", executes("theirs", "echo")),
		// Chat.
		"chats": get("/api/sessions"), "chat of the boss": get("/api/sessions/" + chat), "export": get("/api/sessions/" + chat + "/export"),
		"rename": {method: "PATCH", path: "/api/sessions/" + chat, body: `{"title":"x"}`}, "delete": {method: "DELETE", path: "/api/sessions/" + chat},
		"approvals": get("/api/approvals"), "chat socket": get("/ws?sessionId=" + chat),
		"task": post("/api/orchestrate", `{"query":"call theirs:echo"}`),
		// The page's API.
		"status": get("/api/status"), "control tools": get("/api/tools"), "control search": get("/api/tools?query=guarded"), "control tool": get("/api/tools/mine/whoami"),
		"control tool of theirs": get("/api/tools/theirs/echo"), "servers": get("/api/servers"), "servers, waited for": get("/api/servers?wait"), "server": get("/api/servers/theirs"),
		"control call": post("/api/call", `{"tool":"theirs:echo","arguments":{}}`), "control call, other tool": post("/api/call", `{"tool":"mine:whoami","arguments":{}}`),
		"calls": get("/api/calls?limit=100"), "calls searched": get("/api/calls?q=guarded"), "calls of the boss": get("/api/calls?caller=boss"), "call of the boss": get("/api/calls/" + call),
		"call by the boss's request id": get("/api/calls/guarded-request"), "stats": get("/api/stats"), "changes": get("/api/changes"), "config": get("/api/config"), "keys": get("/api/keys"),
		"page sessions": get("/api/page-sessions"), "add a server": post("/api/servers", `{"name":"x","command":"id"}`), "change": {method: "PATCH", path: "/api/servers/mine", body: `{"enabled":false}`},
		"remove": {method: "DELETE", path: "/api/servers/mine"}, "restart": post("/api/servers/mine/restart", ""), "approve": post("/api/servers/mine/approve", "{}"),
		"make a key": post("/api/keys", `{"name":"x","admin":true}`), "revoke a key": {method: "DELETE", path: "/api/keys/boss"}, "import": post("/api/import", "{}"),
		// The debug API.
		"backends": get("/api/backends"), "program log": get("/api/logs"), "trace": get("/api/mcptrace"), "log socket": get("/ws/logs"), "trace socket": get("/ws/mcptrace"),
	}
	// Read-only requests come first, because the guest's failed calls name
	// theirs.
	order := slices.SortedFunc(maps.Keys(requests), func(a, b string) int {
		return cmp.Or(cmp.Compare(requests[a].method, requests[b].method), cmp.Compare(a, b)) // DELETE, GET, PATCH, POST
	})
	for _, name := range order {
		q := requests[name]
		code, _, body := send(guest, q.method, q.path, q.body, q.header...)
		// A response may repeat what the request contained.
		for _, secret := range []string{"guarded one", "guarded two", "guarded guidance", "guarded instructions", "guarded argument", "guarded conversation", "guarded-request", boss} {
			if strings.Contains(body, secret) {
				t.Errorf("%s shows %q: %d %s", name, secret, code, body)
			}
		}
		if sent := q.path + q.body; strings.Contains(body, "theirs") && !strings.Contains(sent, "their") {
			t.Errorf("%s shows the server theirs: %d %s", name, code, body)
		}
	}
	// A model that calls tools that it was not given.
	talk(t, r.url+"/ws?"+query, guest, "do it")

	if got := theirs.since(atTheirs); len(got) > 0 {
		t.Errorf("the server theirs got %q", got)
	}
	for _, got := range mine.since(atMine) {
		if got != "tools/call echo" && got != "tools/list" {
			t.Errorf("the server mine got %q", got)
		}
	}
	if code, _, body := send(boss, "GET", "/api/sessions/"+chat, ""); code != 200 || !strings.Contains(body, "guarded conversation") {
		t.Errorf("the boss's conversation afterwards: %d %s", code, body)
	}
	if code, _, body := send(boss, "POST", "/mcp", rpc("tools/list", ""), bossSession...); code != 200 {
		t.Errorf("the boss's session afterwards: %d %s", code, body)
	}
	if len(model.Requests()) < 2 {
		t.Errorf("the model got %d requests", len(model.Requests()))
	}
}

func firstOf(list json.RawMessage) json.RawMessage {
	for v := range rawjson.Elements(list) {
		return v
	}
	return nil
}

// legacy opens an event stream of the first protocol version and returns the
// URL for messages.
func legacy(t *testing.T, url, key string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), "GET", url+"/mcp", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-API-Key", key)
	req.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		if address, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			return address
		}
	}
	t.Fatalf("no endpoint: %d, %v", res.StatusCode, lines.Err())
	return ""
}

// talk sends one message in a new conversation, waits for the end of the reply
// and returns the conversation's id.
func talk(t *testing.T, url, key, text string) string {
	t.Helper()
	c, _, err := websocket.Dial(t.Context(), strings.Replace(url, "http", "ws", 1), &websocket.DialOptions{HTTPHeader: http.Header{"X-Api-Key": {key}}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.CloseNow()
	body, err := json.Marshal(map[string]any{"type": "message", "payload": map[string]string{"text": text}})
	if err != nil {
		t.Fatal(err)
	}
	id := ""
	for {
		_, b, err := c.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		payload := rawjson.Field(b, "payload")
		switch rawjson.FieldString(b, "type") {
		case "connection":
			id = rawjson.FieldString(payload, "sessionId")
			if err := c.Write(t.Context(), websocket.MessageText, body); err != nil {
				t.Fatal(err)
			}
		case "status":
			if rawjson.FieldString(payload, "tool") == "" && rawjson.FieldString(payload, "state") == "complete" {
				return id
			}
		case "error", "approval":
			t.Fatalf("%s", b)
		}
	}
}
