package app

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"junctor/internal/rawjson"
	"junctor/internal/upstream/upstreamtest"
)

// TestOverridesOverEveryAPI checks that every API shows the overridden
// definition, calls the tool by its new name and sends the fixed arguments,
// and that callers can neither set them nor use the original name.
func TestOverridesOverEveryAPI(t *testing.T) {
	definition := json.RawMessage(`{"name":"echo","description":"old text","inputSchema":{"type":"object","properties":{"text":{"type":"string"},"folder":{"type":"string"}},"required":["text","folder"]}}`)
	server := upstreamtest.Listen(t, upstreamtest.Script{Tools: []json.RawMessage{definition}})
	var mu sync.Mutex
	var got []string
	server.Before = func(_ http.ResponseWriter, r *http.Request) bool {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return false
		}
		r.Body = io.NopCloser(strings.NewReader(string(b)))
		if params := rawjson.Field(b, "params"); rawjson.FieldString(b, "method") == "tools/call" {
			mu.Lock()
			defer mu.Unlock()
			got = append(got, rawjson.FieldString(params, "name")+" "+string(rawjson.Field(params, "arguments")))
		}
		return false
	}
	r := start(t, fmt.Sprintf(`{"mcpServers":{"s":{"url":%q,"proxy":true}},"builtin":false,
		"toolRules":[{"pattern":"s:echo","name":"say","description":"new text","arguments":{"folder":{"fixed":"/safe"}}}]}`, server.URL), t.TempDir())
	r.connected("s")
	mcp := func(path, method, params string) (string, string, string, []string) {
		return "POST", path, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`, method, params),
			[]string{"Accept", "application/json, text/event-stream", "Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", method, "Mcp-Name", rawjson.FieldString(json.RawMessage("{"+strings.TrimSuffix(params, ",")+"}"), "name")}
	}
	send := func(method, path, body string, header []string) string {
		t.Helper()
		_, out := r.as(method, path, body, append(slices.Clone(header), "Content-Type", "application/json")...)
		return out
	}
	post := func(path, body string) string { return send("POST", path, body, nil) }
	for name, list := range map[string]func() string{
		"tools API":   func() string { return send("GET", "/tools/openai", "", nil) },
		"search":      func() string { return send("GET", "/tools/openai?query=new+text", "", nil) },
		"control":     func() string { return send("GET", "/api/tools/s/say", "", nil) },
		"broker":      func() string { return post("/api/mcp/s/proxy", `{"method":"tools/list"}`) },
		"direct":      func() string { return send(mcp("/mcp?mode=direct", "tools/list", "")) },
		"transparent": func() string { return send(mcp("/mcp/s", "tools/list", "")) },
	} {
		shown := list()
		if !strings.Contains(shown, "say") || !strings.Contains(shown, "new text") {
			t.Errorf("%s shows %s", name, shown)
		}
		definition, _, _ := strings.Cut(shown, `"original"`) // also shown to operators
		if strings.Contains(definition, "folder") || strings.Contains(definition, "old text") || strings.Contains(definition, "echo") {
			t.Errorf("%s shows what is overridden: %s", name, shown)
		}
	}
	for name, call := range map[string]func(tool, arguments string) string{
		"tools API": func(tool, arguments string) string {
			return post("/call_tool", fmt.Sprintf(`{"server":"s","tool":%q,"arguments":%s}`, tool, arguments))
		},
		"control": func(tool, arguments string) string {
			return post("/api/call", fmt.Sprintf(`{"tool":"s:%s","arguments":%s}`, tool, arguments))
		},
		"broker": func(tool, arguments string) string {
			return post("/api/mcp/s/proxy", fmt.Sprintf(`{"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments))
		},
		"meta": func(tool, arguments string) string {
			return send(mcp("/mcp?mode=meta", "tools/call", fmt.Sprintf(`"name":"execute_tool","arguments":{"server":"s","tool":%q,"arguments":%s},`, tool, arguments)))
		},
		"direct": func(tool, arguments string) string {
			return send(mcp("/mcp?mode=direct", "tools/call", fmt.Sprintf(`"name":"s__%s","arguments":%s,`, tool, arguments)))
		},
		"transparent": func(tool, arguments string) string {
			return send(mcp("/mcp/s", "tools/call", fmt.Sprintf(`"name":%q,"arguments":%s,`, tool, arguments)))
		},
	} {
		mu.Lock()
		got = nil
		mu.Unlock()
		answer := call("say", `{"text":"hi"}`)
		mu.Lock()
		if want := []string{`echo {"folder":"/safe","text":"hi"}`}; !slices.Equal(got, want) {
			t.Errorf("%s: the server got %q, want %q: %s", name, got, want, answer)
		}
		got = nil
		mu.Unlock()
		for _, refused := range []string{
			call("say", `{"text":"hi","folder":"/etc"}`), call("say", `{"text":"hi","FOLDER":"/etc"}`), call("say", `{}`), call("echo", `{"text":"hi"}`),
		} {
			if !strings.Contains(strings.ToLower(refused), "error") {
				t.Errorf("%s: not refused: %s", name, refused)
			}
		}
		mu.Lock()
		if len(got) > 0 {
			t.Errorf("%s: the server got %q", name, got)
		}
		mu.Unlock()
	}
}
