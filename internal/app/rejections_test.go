package app

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"junctor/internal/store"
	"junctor/internal/upstream/upstreamtest"
)

// Every request that is rejected before it becomes a call is logged once and
// counted once under its reason, on every API.
func TestRejectedRequestsAreLoggedAndCounted(t *testing.T) {
	server := entry(t, upstreamtest.Stdio(t, "files", upstreamtest.Script{}))
	r := start(t, fmt.Sprintf(`{"mcpServers":{"files":%s},"auth":{"loopback":"key"},"limits":{"maxBodyBytes":2048}}`, server), t.TempDir())
	const key = "admin-key-for-the-tests"
	counter := regexp.MustCompile(`rejected_requests_total\{reason="([^"]*)"\} (\d+)`)
	counts := func() map[string]int {
		_, text := r.ask("GET", "/metrics", "")
		m := map[string]int{}
		for _, c := range counter.FindAllStringSubmatch(text, -1) {
			m[c[1]], _ = strconv.Atoi(c[2])
		}
		return m
	}
	mcpHeader := []string{"X-API-Key", key, "Content-Type", "application/json", "Accept", "application/json, text/event-stream"}
	for name, tt := range map[string]struct {
		method, path, body string
		header             []string
		reason             string
	}{
		"wrong key":                 {"GET", "/tools/openai", "", []string{"X-API-Key", "guess-guess-guess-guess"}, "key"},
		"no key":                    {"GET", "/tools/openai", "", nil, "no_credentials"},
		"foreign origin":            {"GET", "/tools/openai", "", []string{"X-API-Key", key, "Origin", "https://evil.example"}, "origin"},
		"origin null":               {"GET", "/tools/openai", "", []string{"X-API-Key", key, "Origin", "null"}, "origin"},
		"proxy disabled":            {"POST", "/api/mcp/files/proxy", `{"method":"tools/list"}`, mcpHeader, "proxy_disabled"},
		"unknown server":            {"POST", "/api/mcp/nothing/proxy", `{"method":"tools/list"}`, mcpHeader, "server_not_found"},
		"malformed body":            {"POST", "/execute", `{"call"`, mcpHeader, "parse_error"},
		"malformed MCP":             {"POST", "/mcp", `{"jsonrpc"`, mcpHeader, "parse_error"},
		"MCP that is none":          {"POST", "/mcp", `{"jsonrpc":"2.0"}`, mcpHeader, "invalid_request"},
		"MCP without a session":     {"POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, mcpHeader, "invalid_request"},
		"a guessed MCP session":     {"GET", "/mcp", "", append([]string{"Mcp-Session-Id", "guess"}, mcpHeader...), "invalid_request"},
		"MCP with a large body":     {"POST", "/mcp", `"` + strings.Repeat("x", 4096) + `"`, mcpHeader, "too_large"},
		"MCP of another type":       {"POST", "/mcp", `{}`, []string{"X-API-Key", key, "Content-Type", "text/plain"}, "invalid_request"},
		"malformed MCP of a server": {"POST", "/mcp/files", `{`, mcpHeader, "parse_error"},
	} {
		t.Run(name, func(t *testing.T) {
			before, logged := counts(), strings.Count(r.log.String(), "request rejected")
			status, body := r.as(tt.method, tt.path, tt.body, tt.header...)
			if status < 400 {
				t.Fatalf("%d %s", status, body)
			}
			after := counts()
			for reason, n := range after {
				want := before[reason]
				if reason == tt.reason {
					want++
				}
				if n != want {
					t.Errorf("%d %s: counted %d times as %s, want %d", status, body, n, reason, want)
				}
			}
			if after[tt.reason] == 0 {
				t.Errorf("%d %s: not counted as %s", status, body, tt.reason)
			}
			lines := strings.Count(r.log.String(), "request rejected") - logged
			if lines != 1 {
				t.Errorf("%d lines of the log", lines)
			}
		})
	}
	if strings.Contains(r.log.String(), "guess-guess") {
		t.Error("the log has the key that was tried")
	}
}

// A refused call has a record in the call log, so it is not also logged and
// counted as a rejected request.
func TestRecordedCallsAreNotRejectedRequests(t *testing.T) {
	server := entry(t, upstreamtest.Stdio(t, "files", upstreamtest.Script{}))
	r := start(t, fmt.Sprintf(`{"mcpServers":{"files":%s},"toolRules":[{"pattern":["files:echo"],"approval":"ask"}]}`, strings.Replace(server, "{", `{"proxy":true,`, 1)), t.TempDir())
	for name, tt := range map[string]struct {
		path, body string
		status     int
	}{
		"unknown server":       {"/call_tool", `{"server":"nothing","tool":"x"}`, 404},
		"unknown server, page": {"/api/call", `{"server":"nothing","tool":"x"}`, 404},
		"no approval":          {"/call_tool", `{"server":"files","tool":"echo","arguments":{"text":"a"}}`, 403},
		"no approval, execute": {"/execute", `{"provider":"gemini","call":{"name":"files__echo","args":{"text":"a"}}}`, 403},
		"no approval, broker":  {"/api/mcp/files/proxy", `{"method":"tools/call","params":{"name":"echo","arguments":{"text":"a"}}}`, 403},
	} {
		if status, body := r.ask("POST", tt.path, tt.body); status != tt.status {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if n, err := r.store.Calls(t.Context(), store.CallQuery{}); err != nil || len(n) != 5 {
		t.Errorf("%d records, %v; want 5", len(n), err)
	}
	if strings.Contains(r.log.String(), "request rejected") {
		t.Errorf("the log has recorded calls as rejected requests: %s", r.log)
	}
	if _, text := r.ask("GET", "/metrics", ""); strings.Contains(text, "rejected_requests_total{") {
		t.Error("recorded calls are counted as rejected requests")
	}
}
