package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"junctor/internal/upstream/upstreamtest"
)

// TestLongConnectionsEndWithTheirKey opens every kind of connection that lasts
// with one key, revokes the key, and waits until each has ended.
func TestLongConnectionsEndWithTheirKey(t *testing.T) {
	cfg := upstreamtest.Listen(t, upstreamtest.Script{}).Config("up")
	r := start(t, fmt.Sprintf(`{"mcpServers":{"up":%s}}`, entry(t, cfg)), t.TempDir())
	code, body := r.ask("POST", "/api/keys", `{"name":"rv","admin":true}`)
	var made struct{ Key string }
	if err := json.Unmarshal([]byte(body), &made); err != nil || made.Key == "" {
		t.Fatalf("key: %d %s", code, body)
	}
	send := func(method, path, body string, headers ...string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, r.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-API-Key", made.Key)
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "text/event-stream")
		for i := 0; i+1 < len(headers); i += 2 {
			req.Header.Set(headers[i], headers[i+1])
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("%s %s: %v", method, path, err)
		}
		if res.StatusCode >= 300 {
			b, _ := io.ReadAll(res.Body)
			t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, b)
		}
		return res
	}
	const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	opened := send("POST", "/mcp", initialize, "Accept", "application/json, text/event-stream")
	session := []string{"Mcp-Session-Id", opened.Header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", "2025-11-25"}
	opened.Body.Close()
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	const silent = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_tool","arguments":{"server":"up","tool":"silent","arguments":{}}}}`

	ended := make(chan string, 20)
	waiting := map[string]bool{}
	stream := func(name string, res *http.Response) {
		waiting[name] = true
		go func() {
			_, _ = io.Copy(io.Discard, res.Body)
			res.Body.Close()
			ended <- name
		}()
	}
	socket := func(path string) {
		t.Helper()
		c, _, err := websocket.Dial(t.Context(), strings.Replace(r.url, "http", "ws", 1)+path, &websocket.DialOptions{HTTPHeader: http.Header{"X-Api-Key": {made.Key}}})
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		waiting[path] = true
		go func() {
			for {
				if _, _, err := c.Read(t.Context()); err != nil {
					if path == "/ws" && websocket.CloseStatus(err) != 4401 {
						t.Errorf("%s ended with %v, want close code 4401", path, err)
					}
					ended <- path
					return
				}
			}
		}()
	}
	socket("/ws")
	socket("/ws/logs")
	socket("/ws/mcptrace")
	stream("calls", send("GET", "/api/calls", ""))
	stream("logs", send("GET", "/logs", ""))
	stream("mcp stream", send("GET", "/mcp", "", session...))
	stream("mcp call", send("POST", "/mcp", silent, session...))
	stream("mcp listen", send("POST", "/mcp/up", `{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+meta+`}}`, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen"))
	stream("legacy events", send("GET", "/mcp", ""))
	plain := func(name, path, body string) { // answers when it is over
		waiting[name] = true
		go func() {
			req, err := http.NewRequestWithContext(t.Context(), "POST", r.url+path, strings.NewReader(body))
			if err == nil {
				req.Header.Set("X-API-Key", made.Key)
				req.Header.Set("Content-Type", "application/json")
				var res *http.Response
				if res, err = http.DefaultClient.Do(req); err == nil {
					res.Body.Close()
				}
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			ended <- name
		}()
	}
	plain("call", "/api/call", `{"tool":"up:silent"}`)
	plain("execute", "/call_tool", `{"tool":"up:silent","arguments":{}}`)
	for r.executor.InFlight() < 3 { // the calls are on their way; the test's time bounds this
		select {
		case name := <-ended:
			t.Fatalf("%s ended before the revocation; the log says: %s", name, r.log)
		case <-time.After(time.Millisecond):
		}
	}

	begun := time.Now()
	if code, body := r.ask("DELETE", "/api/keys/rv", ""); code != 200 {
		t.Fatalf("revoke: %d %s", code, body)
	}
	for len(waiting) > 0 {
		select {
		case name := <-ended:
			delete(waiting, name)
		case <-time.After(time.Minute):
			t.Fatalf("a minute after the revocation these go on: %v", waiting)
		}
	}
	t.Logf("all ended within %s", time.Since(begun))
	for r.executor.InFlight() > 0 {
		time.Sleep(time.Millisecond)
	}
	if n := r.discovery.Sessions(); n != 0 {
		t.Errorf("%d MCP sessions are left", n)
	}
}
