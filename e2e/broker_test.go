package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"junctor/internal/address/addresstest"
)

// remote starts the reference server "everything" over streamable HTTP or SSE,
// and returns its address.
func remote(t *testing.T, transport string) string {
	t.Helper()
	node, suite := suiteNode(t)
	index := filepath.Join(filepath.Dir(suite), "..", "..", "server-everything", "dist", "index.js")
	port := strconv.Itoa(addresstest.UnusedPort(t))
	cmd := exec.Command(node, index, transport)
	cmd.Env = []string{"PORT=" + port}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan struct{})
	go func() { defer close(exited); _ = cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-exited })
	ctx := ctxFor(t)
	for {
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+port)
		if err == nil {
			conn.Close()
			path := map[string]string{"sse": "/sse", "streamableHttp": "/mcp"}[transport]
			return "http://127.0.0.1:" + port + path
		}
		select {
		case <-exited:
			t.Fatal("the server does not start")
		case <-ctx.Done():
			t.Fatal("the server does not listen")
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stream posts a request to the broker and passes each JSON value of the
// response to each as it arrives.
func (g *gateway) stream(ctx context.Context, server, accept, body string, each func(string) (more bool)) {
	g.t.Helper()
	req, err := http.NewRequestWithContext(ctx, "POST", g.url+"/api/mcp/"+server+"/proxy", strings.NewReader(body))
	if err != nil {
		g.t.Fatal(err)
	}
	req.Header.Set("Accept", accept)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("Content-Type"); !strings.HasPrefix(got, accept) {
		data, _ := io.ReadAll(resp.Body)
		g.t.Fatalf("asked for %s, got %s %s", accept, got, data)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		if data := strings.TrimPrefix(lines.Text(), "data: "); strings.HasPrefix(data, "{") && !each(data) {
			return
		}
	}
}

func (g *gateway) inFlight(server string) int {
	g.t.Helper()
	var s struct{ InFlight int }
	fetchJSON(g.t, g.url+"/api/servers/"+server, &s)
	return s.InFlight
}

// TestRemoteServers uses the reference server through the proxy, over both HTTP
// transports, which are detected automatically.
func TestRemoteServers(t *testing.T) {
	t.Parallel()
	for transport, kind := range map[string]string{"streamableHttp": "streamable", "sse": "sse"} {
		t.Run(kind, func(t *testing.T) {
			address := remote(t, transport)
			gw := newHome(t, fmt.Sprintf(`{"mcpServers":{"far":{"url":%q,"proxy":true}}}`, address)).serve().ready("far")
			// A single response.
			status, body := gw.send("POST", "/api/mcp/far/proxy", `{"method":"tools/call","params":{"name":"get-sum","arguments":{"a":2,"b":40}},"id":"x-1"}`)
			if status != 200 || !strings.Contains(body, "42") || !strings.Contains(body, `"id":"x-1"`) {
				t.Errorf("get-sum: %d %s", status, body)
			}
			for _, method := range []string{"tools/list", "resources/list", "prompts/list", "resources/templates/list"} {
				if status, body := gw.send("POST", "/api/mcp/far/proxy", `{"method":"`+method+`"}`); status != 200 || !strings.Contains(body, `"result":{`) {
					t.Errorf("%s: %d %s", method, status, body)
				}
			}
			if status, body := gw.send("POST", "/api/mcp/far/proxy", `{"method":"no/such","id":7}`); status != 200 || !strings.Contains(body, `"code":-32601`) || !strings.Contains(body, `"id":7`) {
				t.Errorf("the server's own error: %d %s", status, body)
			}
			// Progress arrives while the tool is running. When the client
			// disconnects, the call is cancelled.
			const long = `{"method":"tools/call","params":{"name":"trigger-long-running-operation","arguments":{"duration":2,"steps":4}},"id":9}`
			endless := strings.Replace(long, `"duration":2,"steps":4`, `"duration":600,"steps":1200`, 1)
			for _, accept := range []string{"text/event-stream", "application/x-ndjson"} {
				var progress int
				var last string
				gw.stream(ctxFor(t), "far", accept, long, func(data string) bool {
					if strings.Contains(data, "notifications/progress") {
						progress++
					}
					last = data
					return true
				})
				if progress != 4 || !strings.Contains(last, `"id":9,"result"`) {
					t.Errorf("%s: %d pieces of progress; last %s", accept, progress, last)
				}
				ctx, cancel := context.WithCancel(ctxFor(t))
				early := 0
				gw.stream(ctx, "far", accept, endless, func(data string) bool {
					if strings.Contains(data, "notifications/progress") && gw.inFlight("far") > 0 {
						early++
					}
					return early < 3
				})
				cancel()
				if early != 3 {
					t.Errorf("%s: %d pieces of progress while the tool runs, want 3", accept, early)
				}
				eventually(t, "the work stops", func() bool { return gw.inFlight("far") == 0 })
			}
			// Every request is in the call log.
			eventually(t, "the cancelled call is in the log", func() bool {
				_, body := gw.send("GET", "/api/calls?server=far&limit=100", "")
				return strings.Contains(body, "CANCELED")
			})
			_, body = gw.send("GET", "/api/calls?server=far&limit=100", "")
			for _, want := range []string{`"tools/list"`, `"resources/list"`, `"no/such"`, `"get-sum"`, `"broker"`, `"local"`} {
				if !strings.Contains(body, want) {
					t.Errorf("the log has no %s: %s", want, body)
				}
			}
		})
	}
}

// TestProxyErrors checks the specification's table of errors with a real
// gateway.
func TestProxyErrors(t *testing.T) {
	t.Parallel()
	gw := newHome(t, fmt.Sprintf(`{"limits":{"maxBodyBytes":100000},"mcpServers":{
		"closed":{"command":%[1]q}, "open":{"command":%[1]q,"proxy":true},
		"down":{"url":"http://127.0.0.1:1/mcp","proxy":true}}}`, everything(t))).serve().ready("open", "closed")
	const list = `{"method":"tools/list"}`
	for name, tt := range map[string]struct {
		server, body string
		status       int
		code         string
	}{
		"not found":        {"nope", list, 404, "SERVER_NOT_FOUND"},
		"not enabled":      {"closed", list, 400, "PROXY_DISABLED"},
		"unreachable":      {"down", list, 502, "UPSTREAM_ERROR"},
		"unreachable tool": {"down", whoami, 502, "UPSTREAM_ERROR"},
		"no JSON":          {"open", `{`, 400, "PARSE_ERROR"},
		"no method":        {"open", `{}`, 400, "INVALID_REQUEST"},
		"unknown tool":     {"open", `{"method":"tools/call","params":{"name":"nope"}}`, 404, "TOOL_NOT_FOUND"},
		"bad arguments":    {"open", `{"method":"tools/call","params":{"name":"test_reconnection","arguments":[]}}`, 400, "INVALID_ARGUMENTS"},
		"too large":        {"open", `{"method":"` + strings.Repeat("x", 200_000) + `"}`, 413, "TOO_LARGE"},
		"deeply nested":    {"open", `{"method":"x","params":` + strings.Repeat(`{"a":`, 15_000), 400, "INVALID_REQUEST"},
		"nested and whole": {"open", `{"method":"x","params":` + strings.Repeat(`{"a":`, 12_000) + "1" + strings.Repeat("}", 12_000) + "}", 400, "INVALID_REQUEST"},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := gw.send("POST", "/api/mcp/"+tt.server+"/proxy", tt.body)
			if status != tt.status || !strings.Contains(body, `"code":"`+tt.code+`"`) {
				t.Errorf("%d %s", status, tool200(body))
			}
		})
	}
	if status, _ := gw.send("POST", "/api/mcp/open/proxy", list); status != 200 {
		t.Errorf("after all that: %d", status)
	}
}

func tool200(s string) string { return s[:min(len(s), 500)] }
