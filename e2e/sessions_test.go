package e2e

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
)

// rss returns the resident memory of the gateway, in bytes.
func (g *gateway) rss() int {
	g.t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", g.cmd.Process.Pid))
	if err != nil {
		g.t.Skip("no /proc to look at")
	}
	var kb int
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "VmRSS:") {
			_, _ = fmt.Sscanf(line, "VmRSS: %d kB", &kb)
		}
	}
	return kb << 10
}

// open opens a session over HTTP and returns its id.
func (g *gateway) open() string {
	g.t.Helper()
	post := func(body, session string) *http.Response {
		req, err := http.NewRequest(http.MethodPost, g.url+"/mcp", strings.NewReader(body))
		if err != nil {
			g.t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			req.Header.Set("Mcp-Session-Id", session)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			g.t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return resp
	}
	id := post(initialize, "").Header.Get("Mcp-Session-Id")
	if id == "" {
		g.t.Fatal("no session")
	}
	post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, id)
	return id
}

// TestThousandIdleSessions: a thousand idle sessions, each with an open stream,
// add less than 15 MB.
func TestThousandIdleSessions(t *testing.T) {
	t.Parallel()
	const n = 1000
	limit, _ := exec.Command("sh", "-c", "ulimit -Hn").Output() // may be "unlimited"
	if files, err := strconv.Atoi(strings.TrimSpace(string(limit))); err == nil && files < 4*n {
		unmet(t, fmt.Sprintf("a process may open only %d files; raise the hard limit (ulimit -Hn) to %d", files, 4*n))
	}
	h := newHome(t, `{}`)
	g := h.serve().ready("junctor")
	for range 50 { // the first ones cause other allocations, too
		g.open()
	}
	before := g.rss()
	for i := range n {
		id := g.open()
		conn, err := net.Dial("tcp", strings.TrimPrefix(g.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "GET /mcp HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\nMcp-Session-Id: %s\r\n\r\n", strings.TrimPrefix(g.url, "http://"), id)
		line, err := bufio.NewReaderSize(conn, 16).ReadString('\n')
		if err != nil || !strings.Contains(line, "200") {
			t.Fatalf("stream %d: %q, %v", i, line, err)
		}
	}
	var grown int
	eventually(t, "a thousand idle sessions add less than 15 MB", func() bool { // after garbage collection
		grown = g.rss() - before
		return grown < 15<<20
	})
	t.Logf("%d sessions with open streams add %.1f MB", n, float64(grown)/(1<<20))
}

// TestMaxSessions: a session over the limit ends the one that has been idle
// longest, also after the limit has changed.
func TestMaxSessions(t *testing.T) {
	t.Parallel()
	h := newHome(t, `{"limits":{"maxSessions":1}}`)
	g := &faultFixture{gateway: h.serve().ready("junctor")}
	var opened []string
	state := func() (s string) {
		for _, id := range opened {
			o := g.post("/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Mcp-Session-Id", id)
			s += fmt.Sprint(o.status, " ")
		}
		return s
	}
	opened = append(opened, g.open(), g.open())
	if got := state(); got != "404 200 " {
		t.Errorf("two sessions where one may be: %s", got)
	}
	h.write("junctor.json", `{"limits":{"maxSessions":2}}`)
	g.eventually(t, "the new limit", func() bool { return strings.Contains(g.log.String(), "configuration applied") })
	opened = append(opened, g.open())
	if got := state(); got != "404 200 200 " {
		t.Errorf("two sessions where two may be: %s", got)
	}
	opened = append(opened, g.open())
	if got := state(); got != "404 404 200 200 " {
		t.Errorf("three sessions where two may be: %s", got)
	}
	h.write("junctor.json", `{"limits":{"maxSessions":1}}`)
	g.eventually(t, "one session", func() bool { return strings.Contains(g.get("/metrics").body, `junctor_sessions{kind="mcp"} 1`+"\n") })
	if got := state(); got != "404 404 404 200 " {
		t.Errorf("after the limit was lowered to one: %s", got)
	}
}

// TestReloadReachesClients: a change of the configuration is visible to
// connected clients: tools of a new server appear, those of a removed one
// disappear, and the session continues.
func TestReloadReachesClients(t *testing.T) {
	t.Parallel()
	h := newHome(t, stdioConfig(t))
	g := h.serve().ready("everything")
	c := h.raw("--mode", "direct")
	c.ask(initialize)
	if got := c.ask(`{"jsonrpc":"2.0","id":"a","method":"tools/list"}`); !strings.Contains(got, "everything__test_simple_text") {
		t.Fatalf("tools/list = %.300s", got)
	}
	h.write("junctor.json", fmt.Sprintf(`{"mcpServers":{"renamed":{"command":%q}}}`, everything(t)))
	c.next("notifications/tools/list_changed")
	g.ready("renamed")
	eventually(t, "the new tools are listed", func() bool {
		got := c.ask(`{"jsonrpc":"2.0","id":"b","method":"tools/list"}`)
		return strings.Contains(got, "renamed__test_simple_text") && !strings.Contains(got, "everything__test_simple_text")
	})
	if got := c.ask(`{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"renamed__test_simple_text","arguments":{}}}`); !strings.Contains(got, "simple text response") {
		t.Errorf("tools/call = %s", got)
	}
}
