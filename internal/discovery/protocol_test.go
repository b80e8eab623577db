package discovery

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
)

// protocolMethods are the requests of both revisions, with params that a view
// answers if it serves the method at all.
var protocolMethods = []struct{ method, params string }{
	{"initialize", `"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}`},
	{"server/discover", ``},
	{"ping", ``},
	{"tools/list", ``},
	{"tools/call", `"name":"NAME","arguments":{}`},
	{"resources/list", ``},
	{"resources/templates/list", ``},
	{"resources/read", `"uri":"note:one"`},
	{"resources/subscribe", `"uri":"note:one"`},
	{"resources/unsubscribe", `"uri":"note:one"`},
	{"prompts/list", ``},
	{"prompts/get", `"name":"PROMPT"`},
	{"completion/complete", `"ref":{"type":"ref/prompt","name":"PROMPT"},"argument":{"name":"who","value":""}`},
	{"logging/setLevel", `"level":"info"`},
	{"subscriptions/listen", `"notifications":{}`},
	{"tasks/get", `"taskId":"x"`},
	{"tasks/result", `"taskId":"x"`},
	{"tasks/list", ``},
	{"tasks/cancel", `"taskId":"x"`},
	{"tasks/update", `"taskId":"x","inputResponses":{}`},
	{"vendor/method", ``},
}

// docs/protocol.md says which view serves which method in which era. The table
// is what the views answer here.
func TestProtocolTable(t *testing.T) {
	t.Parallel()
	f := newFixture(t, map[string]*testServer{"paint": newTestServer(pictureTool)})
	withTasks(t, f)
	var table strings.Builder
	table.WriteString("| method | transparent | direct | meta |\n| --- | --- | --- | --- |\n")
	for _, m := range protocolMethods {
		fmt.Fprintf(&table, "| `%s` |", m.method)
		for _, view := range []struct{ path, name, prompt string }{
			{"/mcp/paint", "picture", "greet"}, {"/mcp?mode=direct", "paint__picture", "paint__greet"}, {"/mcp?mode=meta", "list_mcp_servers", "greet"},
		} {
			params := strings.NewReplacer("NAME", view.name, "PROMPT", view.prompt).Replace(m.params)
			var eras []string
			if served(t, f.url+view.path, m.method, params, false) {
				eras = append(eras, "handshake")
			}
			if served(t, f.url+view.path, m.method, params, true) {
				eras = append(eras, "2026-07-28")
			}
			if len(eras) == 0 {
				eras = []string{"–"}
			}
			fmt.Fprintf(&table, " %s |", strings.Join(eras, ", "))
		}
		table.WriteString("\n")
	}
	const path, begin, end = "../../docs/protocol.md", "<!-- table of TestProtocolTable -->\n", "<!-- end -->\n"
	doc, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(doc), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no table", path)
	}
	want := before + begin + table.String() + end + after
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(doc) != want {
		t.Errorf("%s is out of date; run: go test ./internal/discovery -run TestProtocolTable -update\n%s", path, table.String())
	}
}

// served reports whether a view knows a method.
func served(t *testing.T, url, method, params string, modern bool) bool {
	t.Helper()
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if modern {
		if params != "" {
			params = "," + params
		}
		params = `"_meta":{"` + mcp.MetaProtocolVersion + `":"2026-07-28","` + mcp.MetaClientCapabilities + `":{"extensions":{"` + mcp.ExtensionTasks + `":{}}}}` + params
		header.Set("Mcp-Protocol-Version", mcp.Version20260728)
		header.Set("Mcp-Method", method)
		for _, key := range []string{"name", "uri", "taskId"} {
			if name := rawjson.FieldString([]byte("{"+params+"}"), key); name != "" {
				header.Set("Mcp-Name", name)
			}
		}
	} else if method != "initialize" {
		_, h := post(t, url, header, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
		header.Set("Mcp-Session-Id", h.Get("Mcp-Session-Id"))
	}
	body, _ := post(t, url, header, `{"jsonrpc":"2.0","id":2,"method":"`+method+`","params":{`+params+`}}`)
	return !bytes.Contains(body, []byte("-32601"))
}

func post(t *testing.T, url string, header http.Header, body string) ([]byte, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctxFor(t), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return b, res.Header
}
