package app

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestRequestIDFindsTheRecord checks that the X-Request-Id of a request finds
// the record of its call, on every API.
func TestRequestIDFindsTheRecord(t *testing.T) {
	r := start(t, `{}`, t.TempDir())
	for path, body := range map[string]string{
		"/mcp":       `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"execute_tool","arguments":{"server":"junctor","tool":"calculate","arguments":{"expression":"6*7"}},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`,
		"/call_tool": `{"tool":"calculate","arguments":{"expression":"6*7"}}`,
		"/api/call":  `{"tool":"calculate","arguments":{"expression":"6*7"}}`,
	} {
		id := "mine" + strings.ReplaceAll(path, "/", "-")
		req, err := http.NewRequestWithContext(t.Context(), "POST", r.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{
			"X-API-Key": "admin-key-for-the-tests", "X-Request-Id": id, "Content-Type": "application/json", "Accept": "application/json",
			"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "execute_tool",
		} {
			req.Header.Set(name, value)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != 200 || !strings.Contains(string(b), "42") {
			t.Fatalf("%s: %d %s", path, res.StatusCode, b)
		}
		if code, body := r.ask("GET", "/api/calls/"+id, ""); code != 200 || !strings.Contains(body, `"requestId":"`+id+`"`) || strings.Contains(body, `"id":"`+id+`"`) {
			t.Errorf("%s: the record: %d %s", path, code, body)
		}
	}
}
