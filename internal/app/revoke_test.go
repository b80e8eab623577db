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

	"junctor/internal/postgres/pgtest"
	"junctor/internal/upstream/upstreamtest"
)

// longConnections are long-lived connections of one key.
type longConnections struct {
	t       *testing.T
	url     string
	key     string
	ended   chan string
	waiting map[string]bool
}

// openLong opens every kind of long-lived connection with one key to a gateway
// with the server up. Three of them are calls in flight.
func openLong(t *testing.T, r *fixture, key string) *longConnections {
	t.Helper()
	l := &longConnections{t: t, url: r.url, key: key, ended: make(chan string, 20), waiting: map[string]bool{}}
	const initialize = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	opened := l.send("POST", "/mcp", initialize, "Accept", "application/json, text/event-stream")
	session := []string{"Mcp-Session-Id", opened.Header.Get("Mcp-Session-Id"), "Mcp-Protocol-Version", "2025-11-25"}
	opened.Body.Close()
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	const silent = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_tool","arguments":{"server":"up","tool":"silent","arguments":{}}}}`
	l.socket("/ws")
	l.socket("/ws/logs")
	l.socket("/ws/mcptrace")
	l.stream("calls", l.send("GET", "/api/calls", ""))
	l.stream("logs", l.send("GET", "/logs", ""))
	l.stream("mcp stream", l.send("GET", "/mcp", "", session...))
	l.stream("mcp call", l.send("POST", "/mcp", silent, session...))
	l.stream("mcp listen", l.send("POST", "/mcp/up", `{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+meta+`}}`, "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen"))
	l.stream("legacy events", l.send("GET", "/mcp", ""))
	l.plain("call", "/api/call", `{"tool":"up:silent"}`)
	l.plain("execute", "/call_tool", `{"tool":"up:silent","arguments":{}}`)
	for r.executor.InFlight() < 3 { // bounded by the test timeout
		select {
		case name := <-l.ended:
			t.Fatalf("%s ended before the revocation; the log says: %s", name, r.log)
		case <-time.After(time.Millisecond):
		}
	}
	return l
}

func (l *longConnections) send(method, path, body string, headers ...string) *http.Response {
	l.t.Helper()
	req, err := http.NewRequestWithContext(l.t.Context(), method, l.url+path, strings.NewReader(body))
	if err != nil {
		l.t.Fatal(err)
	}
	req.Header.Set("X-API-Key", l.key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		l.t.Fatalf("%s %s: %v", method, path, err)
	}
	if res.StatusCode >= 300 {
		b, _ := io.ReadAll(res.Body)
		l.t.Fatalf("%s %s: %d %s", method, path, res.StatusCode, b)
	}
	return res
}

func (l *longConnections) stream(name string, res *http.Response) {
	l.waiting[name] = true
	go func() {
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		l.ended <- name
	}()
}

func (l *longConnections) socket(path string) {
	l.t.Helper()
	c, _, err := websocket.Dial(l.t.Context(), strings.Replace(l.url, "http", "ws", 1)+path, &websocket.DialOptions{HTTPHeader: http.Header{"X-Api-Key": {l.key}}})
	if err != nil {
		l.t.Fatalf("%s: %v", path, err)
	}
	l.waiting[path] = true
	go func() {
		for {
			if _, _, err := c.Read(l.t.Context()); err != nil {
				if path == "/ws" && websocket.CloseStatus(err) != 4401 {
					l.t.Errorf("%s ended with %v, want close code 4401", path, err)
				}
				l.ended <- path
				return
			}
		}
	}()
}

// plain sends a request whose response arrives when it has ended.
func (l *longConnections) plain(name, path, body string) {
	l.waiting[name] = true
	go func() {
		req, err := http.NewRequestWithContext(l.t.Context(), "POST", l.url+path, strings.NewReader(body))
		if err == nil {
			req.Header.Set("X-API-Key", l.key)
			req.Header.Set("Content-Type", "application/json")
			var res *http.Response
			if res, err = http.DefaultClient.Do(req); err == nil {
				res.Body.Close()
			}
		}
		if err != nil {
			l.t.Errorf("%s: %v", name, err)
		}
		l.ended <- name
	}()
}

// allEnd waits until every connection and its work at r have ended.
func (l *longConnections) allEnd(r *fixture) {
	l.t.Helper()
	begun := time.Now()
	for len(l.waiting) > 0 {
		select {
		case name := <-l.ended:
			delete(l.waiting, name)
		case <-time.After(time.Minute):
			l.t.Fatalf("a minute after the revocation these go on: %v", l.waiting)
		}
	}
	l.t.Logf("all ended within %s", time.Since(begun))
	for r.executor.InFlight() > 0 {
		time.Sleep(time.Millisecond)
	}
	eventually(l.t, "the end of the MCP sessions", func() bool { return r.discovery.Sessions() == 0 })
}

// makeKey creates an administrator's key.
func (r *fixture) makeKey(name string) string {
	r.t.Helper()
	code, body := r.ask("POST", "/api/keys", fmt.Sprintf(`{"name":%q,"admin":true}`, name))
	var made struct{ Key string }
	if err := json.Unmarshal([]byte(body), &made); err != nil || made.Key == "" {
		r.t.Fatalf("key: %d %s", code, body)
	}
	return made.Key
}

// TestLongConnectionsEndWithTheirKey opens every kind of long-lived connection
// with one key, revokes the key, and waits until each has ended.
func TestLongConnectionsEndWithTheirKey(t *testing.T) {
	cfg := upstreamtest.Listen(t, upstreamtest.Script{}).Config("up")
	r := start(t, fmt.Sprintf(`{"mcpServers":{"up":%s}}`, entry(t, cfg)), t.TempDir())
	long := openLong(t, r, r.makeKey("rv"))
	if code, body := r.ask("DELETE", "/api/keys/rv", ""); code != 200 {
		t.Fatalf("revoke: %d %s", code, body)
	}
	long.allEnd(r)
}

// TestLongConnectionsEndOnOtherNodes revokes a key on one node, and waits
// until its connections to another node have ended.
func TestLongConnectionsEndOnOtherNodes(t *testing.T) {
	server := upstreamtest.Listen(t, upstreamtest.Script{})
	cfg := fmt.Sprintf(`{"store":{"url":%q},"mcpServers":{"up":%s}}`, pgtest.New(t).Database(t), entry(t, server.Config("up")))
	a, b := start(t, cfg, t.TempDir()), start(t, cfg, t.TempDir())
	a.connected("up")
	b.connected("up")
	key := a.makeKey("rv")
	// Each node caches keys separately, so b may not know it yet.
	eventually(t, "the key on the other node", func() bool {
		req, err := http.NewRequestWithContext(t.Context(), "GET", b.url+"/tools", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-API-Key", key)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode == 200
	})
	long := openLong(t, b, key)
	if code, body := a.ask("DELETE", "/api/keys/rv", ""); code != 200 {
		t.Fatalf("revoke: %d %s", code, body)
	}
	long.allEnd(b)
}
