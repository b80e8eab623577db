package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
)

// rawHTTP sends bytes that no HTTP client would send, and returns the response.
func rawHTTP(t *testing.T, gw *gateway, text string) (int, string) {
	t.Helper()
	u, err := url.Parse(gw.url)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	return resp.StatusCode, string(body)
}

// TestDNSRebindingIsRefused: requests from pages of other sites are refused on
// every route and on upgrades, both with a host name of the site that resolves
// to the gateway and with the site's origin.
func TestDNSRebindingIsRefused(t *testing.T) {
	t.Parallel()
	gw := newHome(t, stdioConfig(t)).serve()
	here := strings.TrimPrefix(gw.url, "http://")
	const upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	for _, route := range []string{
		"GET /", "GET /health", "GET /tools", "POST /execute", "POST /call_tool", "GET /logs", "POST /mcp", "GET /mcp", "POST /mcp/everything",
		"GET /api/status", "GET /api/servers", "POST /api/servers", "POST /api/call", "GET /api/config", "POST /api/keys", "GET /api/connections",
		"POST /api/mcp/everything/proxy", "POST /api/mcp/everything/authorize", "GET /oauth/callback?state=x&code=y", "GET /metrics", "POST /api/session",
		"GET /ws", "GET /ws/logs", "GET /ws/mcptrace", "GET /openapi.json", "OPTIONS /api/servers", "POST /api/orchestrate",
	} {
		for name, head := range map[string]string{
			"another host":           "Host: evil.example\r\n",
			"another host with port": "Host: evil.example:8787\r\n",
			"another origin":         "Host: " + here + "\r\nOrigin: https://evil.example\r\n",
			"a sandboxed frame":      "Host: " + here + "\r\nOrigin: null\r\n",
			"the port of another":    "Host: " + here + "\r\nOrigin: http://127.0.0.1:1\r\n",
		} {
			more := "Connection: close\r\n"
			if strings.HasPrefix(route, "GET /ws") {
				more = upgrade
			}
			status, body := rawHTTP(t, gw, route+" HTTP/1.1\r\n"+head+more+"Content-Length: 0\r\n\r\n")
			if status != 403 || !strings.Contains(body, `"DENIED"`) {
				t.Errorf("%s from %s: %d %s", route, name, status, tool200(body))
			}
		}
	}
	// The page's own requests are accepted.
	if status, body := rawHTTP(t, gw, "GET /ws HTTP/1.1\r\nHost: "+here+"\r\nOrigin: "+gw.url+"\r\n"+upgrade+"\r\n"); status != 101 {
		t.Errorf("the page's own WebSocket: %d %s", status, tool200(body))
	}
}

// TestMalformedRequestsAreAnswered sends malformed requests: each gets a
// response, and the gateway keeps running.
func TestMalformedRequestsAreAnswered(t *testing.T) {
	t.Parallel()
	gw := newHome(t, strings.Replace(stdioConfig(t), `"description"`, `"proxy":true,"description"`, 1)).serve().ready("everything")
	host := "Host: " + strings.TrimPrefix(gw.url, "http://") + "\r\n"
	post := func(path, head, body string) (int, string) {
		return rawHTTP(t, gw, fmt.Sprintf("POST %s HTTP/1.1\r\n%s%sConnection: close\r\nContent-Length: %d\r\n\r\n%s", path, host, head, len(body), body))
	}
	const list = `{"method":"tools/list"}`
	for _, path := range []string{
		"/api/mcp/../proxy", "/api/mcp/%2e%2e/proxy", "/api/mcp/..%2f..%2fetc%2fpasswd/proxy", "/api/mcp/everything%2f..%2fx/proxy", "/api/mcp/a%00b/proxy",
		"/api/mcp/%0d%0aX-Evil:1/proxy", "/api/mcp//proxy", "/api/mcp/" + strings.Repeat("a", 5000) + "/proxy", "/api/mcp/everything/proxy/../../x/proxy",
		"/api/mcp/Everything/proxy", "/api/mcp/everything%20/proxy", "/api/mcp/*/proxy", "/mcp/..%2f..", "/tools/..%2f..%2fetc",
	} {
		if status, body := post(path, "", list); status < 300 || status >= 500 || strings.Contains(body, "root:") {
			t.Errorf("%s: %d %s", path, status, tool200(body))
		}
	}
	for name, head := range map[string]string{
		"a line break in the id": "X-Request-Id: a\tb\r\n",
		"a long id":              "X-Request-Id: " + strings.Repeat("a", 10_000) + "\r\n",
		"a bad trace":            "Traceparent: 00-zz\r\n",
	} {
		status, body := post("/api/mcp/everything/proxy", head, list)
		if status != 200 || strings.Contains(body, "a\tb") {
			t.Errorf("%s: %d %s", name, status, tool200(body))
		}
	}
	if status, _ := post("/api/mcp/everything/proxy", "X-Big: "+strings.Repeat("a", 100_000)+"\r\n", list); status != 431 {
		t.Errorf("headers of 100 kB: %d", status)
	}
	// Line breaks in names reach neither headers nor log lines.
	for _, body := range []string{
		`{"method":"tools/call","params":{"name":"x\r\nX-Evil: 1","arguments":{}}}`,
		`{"method":"resources/read","params":{"uri":"x\r\nX-Evil: 1"}}`,
		`{"method":"x\r\nX-Evil: 1"}`,
		`{"method":"tools/call","params":{"name":"\u0000","arguments":{}}}`,
		`{"method":"tools/call","params":{"name":"test_simple_text","Name":"test_image_content","arguments":{}}}`,
		`{"method":"tools/call","params":{"name":7}}`, `{"method":"tools/call","params":null}`, `{"method":"tools/call"}`,
	} {
		if status, answer := post("/api/mcp/everything/proxy", "", body); status >= 500 && status != 502 || status == 0 {
			t.Errorf("%s: %d %s", body, status, tool200(answer))
		}
	}
	if status, _ := post("/api/mcp/everything/proxy", "", list); status != 200 {
		t.Errorf("after all that: %d", status)
	}
	for _, line := range strings.Split(gw.log.String(), "\n") {
		if strings.HasPrefix(line, "X-Evil") {
			t.Errorf("a name broke out of its log line: %s", line)
		}
	}
}

// TestKeyCannotReachHiddenToolsOnAnyAPI uses a key for tools that it may not
// see, with every API.
func TestKeyCannotReachHiddenToolsOnAnyAPI(t *testing.T) {
	t.Parallel()
	const admin, limited = "admin-key-of-the-test-0001", "limited-key-of-the-test-02"
	server := fmt.Sprintf(`{"command":%q,"proxy":true}`, everything(t))
	gw := newHome(t, fmt.Sprintf(`{"auth":{"loopback":"key","keys":[
		{"name":"boss","key":%q,"admin":true},
		{"name":"guest","key":%q,"servers":["mine"],"tools":["mine:test_simple_text"]}]},
		"mcpServers":{"mine":%s,"theirs":%s}}`, admin, limited, server, server)).serve()
	as := func(key, method, path, body string) (int, string) {
		t.Helper()
		return gw.send(method, path, body, "Authorization", "Bearer "+key, "Content-Type", "application/json", "Accept", "application/json, text/event-stream")
	}
	plain := func(key, method, path, body string) (int, string) {
		t.Helper()
		return gw.send(method, path, body, "Authorization", "Bearer "+key, "Content-Type", "application/json")
	}
	eventually(t, "the servers are connected", func() bool {
		_, body := plain(admin, "GET", "/api/status", "")
		return strings.Count(body, `"connected"`) == 2
	})
	if status, _ := gw.send("GET", "/tools", ""); status != 401 {
		t.Errorf("without a key: %d", status)
	}
	if status, _ := plain("jct_notakeyatall12345", "GET", "/tools", ""); status != 401 {
		t.Errorf("with a wrong key: %d", status)
	}
	// A call of the administrator, which no response to the guest may contain.
	if status, body := plain(admin, "POST", "/call_tool", `{"server":"theirs","tool":"test_simple_text","arguments":{}}`); status != 200 {
		t.Fatalf("the administrator's call: %d %s", status, body)
	}
	mcp := func(path, method, params string) (int, string) {
		t.Helper()
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`, method, params)
		header := []string{"Authorization", "Bearer " + limited, "Content-Type", "application/json", "Accept", "application/json, text/event-stream",
			"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method}
		if _, name, ok := strings.Cut(params, `"name":"`); ok {
			name, _, _ = strings.Cut(name, `"`)
			header = append(header, "Mcp-Name", name)
		}
		return gw.send("POST", path, body, header...)
	}
	// Allowed requests.
	for _, allowed := range []struct{ path, body string }{
		{"/call_tool", `{"server":"mine","tool":"test_simple_text","arguments":{}}`},
		{"/api/mcp/mine/proxy", `{"method":"tools/call","params":{"name":"test_simple_text","arguments":{}}}`},
		{"/execute", `{"call":{"name":"mine__test_simple_text","args":{}},"provider":"gemini"}`},
	} {
		if status, body := plain(limited, "POST", allowed.path, allowed.body); status != 200 || strings.Contains(body, `"code":"TOOL_NOT_FOUND"`) {
			t.Errorf("%s: %d %s", allowed.path, status, tool200(body))
		}
	}
	// Lists and searches must not show anything else.
	for _, look := range []struct {
		what string
		ask  func() (int, string)
	}{
		{"tools", func() (int, string) { return plain(limited, "GET", "/tools", "") }},
		{"tools for a provider", func() (int, string) { return plain(limited, "GET", "/tools/openai", "") }},
		{"context", func() (int, string) { return plain(limited, "GET", "/tools/openai/context", "") }},
		{"search", func() (int, string) { return plain(limited, "GET", "/tools/openai?query=image+content", "") }},
		{"control tools", func() (int, string) { return plain(limited, "GET", "/api/tools", "") }},
		{"control search", func() (int, string) { return plain(limited, "GET", "/api/tools?query=image", "") }},
		{"control servers", func() (int, string) { return plain(limited, "GET", "/api/servers", "") }},
		{"connections", func() (int, string) { return plain(limited, "GET", "/api/connections", "") }},
		{"proxied list", func() (int, string) { return plain(limited, "POST", "/api/mcp/mine/proxy", `{"method":"tools/list"}`) }},
		{"direct list", func() (int, string) { return mcp("/mcp?mode=direct", "tools/list", "") }},
		{"single list", func() (int, string) { return mcp("/mcp/mine", "tools/list", "") }},
		{"search_tools", func() (int, string) {
			return mcp("/mcp", "tools/call", `"name":"search_tools","arguments":{"query":"image content"},`)
		}},
		{"list_tools", func() (int, string) {
			return mcp("/mcp", "tools/call", `"name":"list_tools","arguments":{"server":"mine"},`)
		}},
		{"list_mcp_servers", func() (int, string) { return mcp("/mcp", "tools/call", `"name":"list_mcp_servers","arguments":{},`) }},
		{"logs", func() (int, string) { return plain(limited, "GET", "/logs", "") }},
		{"calls", func() (int, string) { return plain(limited, "GET", "/api/calls", "") }},
		{"status", func() (int, string) { return plain(limited, "GET", "/api/status", "") }},
		{"health", func() (int, string) { return plain(limited, "GET", "/health", "") }},
		{"backends", func() (int, string) { return plain(limited, "GET", "/api/backends", "") }},
		{"trace", func() (int, string) { return plain(limited, "GET", "/api/mcptrace", "") }},
		{"program log", func() (int, string) { return plain(limited, "GET", "/api/logs", "") }},
		{"config", func() (int, string) { return plain(limited, "GET", "/api/config", "") }},
		{"keys", func() (int, string) { return plain(limited, "GET", "/api/keys", "") }},
	} {
		status, body := look.ask()
		if strings.Contains(body, "test_image_content") || strings.Contains(body, "theirs") || strings.Contains(body, "boss") {
			t.Errorf("%s shows what it must not: %d %s", look.what, status, tool200(body))
		}
	}
	// Calls must not reach anything else.
	forbidden := map[string]func() (int, string){
		"call_tool": func() (int, string) {
			return plain(limited, "POST", "/call_tool", `{"server":"mine","tool":"test_image_content","arguments":{}}`)
		},
		"call_tool theirs": func() (int, string) {
			return plain(limited, "POST", "/call_tool", `{"server":"theirs","tool":"test_simple_text","arguments":{}}`)
		},
		"execute": func() (int, string) {
			return plain(limited, "POST", "/execute", `{"provider":"gemini","call":{"name":"mine__test_image_content","args":{}}}`)
		},
		"execute theirs": func() (int, string) {
			return plain(limited, "POST", "/execute", `{"provider":"gemini","server":"theirs","call":{"name":"test_simple_text","args":{}}}`)
		},
		"proxy": func() (int, string) {
			return plain(limited, "POST", "/api/mcp/mine/proxy", `{"method":"tools/call","params":{"name":"test_image_content","arguments":{}}}`)
		},
		"proxy twice named": func() (int, string) {
			return plain(limited, "POST", "/api/mcp/mine/proxy", `{"method":"tools/call","params":{"Name":"test_image_content","name":"test_simple_text","arguments":{}}}`)
		},
		"proxy theirs": func() (int, string) {
			return plain(limited, "POST", "/api/mcp/theirs/proxy", `{"method":"tools/list"}`)
		},
		"status theirs": func() (int, string) { return plain(limited, "GET", "/api/mcp/theirs/proxy/status", "") },
		"login theirs":  func() (int, string) { return plain(limited, "POST", "/api/mcp/theirs/authorize", "") },
		"control call": func() (int, string) {
			return plain(limited, "POST", "/api/call", `{"server":"mine","tool":"test_image_content","arguments":{}}`)
		},
		"control tool":   func() (int, string) { return plain(limited, "GET", "/api/tools/mine/test_image_content", "") },
		"control server": func() (int, string) { return plain(limited, "GET", "/api/servers/theirs", "") },
		"execute_tool": func() (int, string) {
			return mcp("/mcp", "tools/call", `"name":"execute_tool","arguments":{"server":"mine","tool":"test_image_content","arguments":{}},`)
		},
		"get_tool_details": func() (int, string) {
			return mcp("/mcp", "tools/call", `"name":"get_tool_details","arguments":{"server":"mine","tool":"test_image_content"},`)
		},
		"direct": func() (int, string) {
			return mcp("/mcp?mode=direct", "tools/call", `"name":"mine__test_image_content","arguments":{},`)
		},
		"single": func() (int, string) {
			return mcp("/mcp/mine", "tools/call", `"name":"test_image_content","arguments":{},`)
		},
		"single theirs": func() (int, string) { return mcp("/mcp/theirs", "tools/list", "") },
		"proxied resources": func() (int, string) {
			return plain(limited, "POST", "/api/mcp/mine/proxy", `{"method":"resources/list"}`)
		},
		"proxied unknown":  func() (int, string) { return plain(limited, "POST", "/api/mcp/mine/proxy", `{"method":"x/y"}`) },
		"single resources": func() (int, string) { return mcp("/mcp/mine", "resources/list", "") },
		"single prompts":   func() (int, string) { return mcp("/mcp/mine", "prompts/list", "") },
		"metrics":          func() (int, string) { return plain(limited, "GET", "/metrics", "") },
		"add a server":     func() (int, string) { return plain(limited, "POST", "/api/servers", `{"name":"x","command":"id"}`) },
		"remove":           func() (int, string) { return plain(limited, "DELETE", "/api/servers/mine", "") },
		"make a key":       func() (int, string) { return plain(limited, "POST", "/api/keys", `{"name":"x","admin":true}`) },
		"restart":          func() (int, string) { return plain(limited, "POST", "/api/servers/theirs/restart", "") },
		"websocket log":    func() (int, string) { return as(limited, "GET", "/ws/logs", "") },
	}
	for name, ask := range forbidden {
		status, body := ask()
		refused := status >= 400 || strings.Contains(body, `\"success\":false`) || strings.Contains(body, `"error":`)
		if !refused || strings.Contains(body, "image/png") || strings.Contains(body, "inputSchema") {
			t.Errorf("%s: %d %s", name, status, tool200(body))
		}
	}
}

// TestStreamsPerCallerAreLimited: further streams of a caller at its limit are
// refused.
func TestStreamsPerCallerAreLimited(t *testing.T) {
	t.Parallel()
	address := remote(t, "streamableHttp")
	gw := newHome(t, fmt.Sprintf(`{"limits":{"maxStreamsPerCaller":2,"callerRate":{"calls":1000,"perMs":1000}},"mcpServers":{"far":{"url":%q,"proxy":true}}}`, address)).serve().ready("far")
	const long = `{"method":"tools/call","params":{"name":"trigger-long-running-operation","arguments":{"duration":600,"steps":1200}}}`
	ctx := ctxFor(t)
	for range 2 {
		req, _ := http.NewRequestWithContext(ctx, "POST", gw.url+"/api/mcp/far/proxy", strings.NewReader(long))
		req.Header.Set("Accept", "text/event-stream")
		resp, err := http.DefaultClient.Do(req)
		if err != nil || resp.StatusCode != 200 {
			t.Fatalf("a stream: %v %v", resp, err)
		}
		defer resp.Body.Close()
	}
	status, body := gw.send("POST", "/api/mcp/far/proxy", long, "Accept", "text/event-stream")
	if status != 429 || !strings.Contains(body, "RATE_LIMITED") {
		t.Errorf("a third stream: %d %s", status, body)
	}
	if status, _ := gw.send("POST", "/api/mcp/far/proxy", `{"method":"tools/list"}`); status != 200 {
		t.Errorf("a plain request meanwhile: %d", status)
	}
}
