package app

import (
	"encoding/json"
	"strings"
	"testing"

	"junctor/internal/tool"
)

// TestDisabledServerIsReportedOnEveryAPI: a call to a server that the
// configuration disables is refused with TOOL_DISABLED on every API. A caller
// that may not see the server gets the response for one that does not exist.
func TestDisabledServerIsReportedOnEveryAPI(t *testing.T) {
	r := start(t, `{"mcpServers":{"off":{"command":"no-such-program","enabled":false,"proxy":true}},"builtin":true}`, t.TempDir())
	mcpHeader := []string{"X-API-Key", "admin-key-for-the-tests", "Content-Type", "application/json", "Accept", "application/json, text/event-stream"}
	call := func(params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":` + params[:len(params)-1] +
			`,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
	}
	stateless := append([]string{"MCP-Protocol-Version", "2026-07-28", "Mcp-Method", "tools/call"}, mcpHeader...)
	for name, tt := range map[string]struct {
		path, body string
		header     []string
		status     int
	}{
		"call_tool":            {"/call_tool", `{"server":"off","tool":"x"}`, mcpHeader, 403},
		"call_tool, qualified": {"/call_tool", `{"tool":"off:x"}`, mcpHeader, 403},
		"execute":              {"/execute", `{"provider":"gemini","call":{"name":"off__x","args":{}}}`, mcpHeader, 403},
		"control":              {"/api/call", `{"server":"off","tool":"x"}`, mcpHeader, 403},
		"broker, tool":         {"/api/mcp/off/proxy", `{"method":"tools/call","params":{"name":"x"}}`, mcpHeader, 403},
		"broker, list":         {"/api/mcp/off/proxy", `{"method":"tools/list"}`, mcpHeader, 403},
		"execute_tool":         {"/mcp", call(`{"name":"execute_tool","arguments":{"server":"off","tool":"x"}}`), append([]string{"Mcp-Name", "execute_tool"}, stateless...), 200},
		"transparent view":     {"/mcp/off", call(`{"name":"x"}`), append([]string{"Mcp-Name", "x"}, stateless...), 0},
	} {
		status, body := r.as("POST", tt.path, tt.body, tt.header...)
		body = strings.ReplaceAll(body, `\`, "")
		if tt.status != 0 && status != tt.status || !strings.Contains(body, "TOOL_DISABLED") || !strings.Contains(body, `server "off" is disabled; enable it with: junctor servers enable off`) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	limited := tool.Caller{ID: "key:k", Servers: []string{"junctor"}}
	for _, server := range []string{"off", "odd"} {
		_, called := r.executor.Call(t.Context(), tool.Call{Caller: limited, Server: server, Tool: "x", Arguments: json.RawMessage(`{}`)})
		_, forwarded := r.executor.Forward(t.Context(), tool.Forward{Caller: limited, Server: server, Method: "tools/list"})
		for _, err := range []error{called, forwarded} {
			if tool.KindOf(err) != tool.ServerNotFound || err.Error() != `no server named "`+server+`"; there is junctor` {
				t.Errorf("%s for a limited caller: %v", server, err)
			}
		}
	}
}
