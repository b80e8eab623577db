package app

import (
	"net/http"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// TestSessionsAreCounted opens MCP sessions and conversations and checks the
// gauges while they are open and after they have closed.
func TestSessionsAreCounted(t *testing.T) {
	r := start(t, `{}`, t.TempDir())
	want := func(lines ...string) {
		t.Helper()
		for { // bounded by the test timeout: the end of a connection is noticed with a delay
			_, body := r.ask("GET", "/metrics", "")
			missing := 0
			for _, l := range lines {
				if !strings.Contains(body, l+"\n") {
					missing++
				}
			}
			if missing == 0 {
				return
			}
			if t.Context().Err() != nil {
				t.Fatalf("metrics lack %v", lines)
			}
		}
	}
	want(`junctor_sessions{kind="chat"} 0`, `junctor_sessions{kind="mcp"} 0`, `junctor_sessions{kind="stream"} 0`)
	var conns []*websocket.Conn
	for range 3 {
		c, _, err := websocket.Dial(t.Context(), strings.Replace(r.url, "http", "ws", 1)+"/ws", &websocket.DialOptions{HTTPHeader: http.Header{"X-Api-Key": {"admin-key-for-the-tests"}}})
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	for range 2 {
		req, err := http.NewRequestWithContext(t.Context(), "POST", r.url+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	want(`junctor_sessions{kind="chat"} 3`, `junctor_sessions{kind="mcp"} 2`)
	for _, c := range conns {
		c.Close(websocket.StatusNormalClosure, "")
	}
	want(`junctor_sessions{kind="chat"} 0`, `junctor_sessions{kind="mcp"} 2`)
}

// A stream whose connection the MCP server has hijacked has one Date header,
// like every response.
func TestStandaloneStreamHasOneDate(t *testing.T) {
	r := start(t, `{}`, t.TempDir())
	send := func(method, session, body string) *http.Response {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, r.url+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", map[string]string{"GET": "text/event-stream", "POST": "application/json, text/event-stream"}[method])
		req.Header.Set("X-API-Key", "admin-key-for-the-tests")
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		if n := len(res.Header["Date"]); n != 1 || res.StatusCode != http.StatusOK {
			t.Errorf("%s: %s, %d dates", method, res.Status, n)
		}
		return res
	}
	opened := send("POST", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	send("GET", opened.Header.Get("Mcp-Session-Id"), "")
}
