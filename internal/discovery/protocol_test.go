package discovery

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// protocolMethods are the requests of both revisions, with valid params.
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

// protocolNotifications are the notifications that do not belong to a call,
// with the eras in which each view forwards them and the test that shows it.
// An empty entry for the transparent view is filled from the transcripts of
// TestWire.
var protocolNotifications = []struct{ method, from, transparent, direct, meta string }{
	{"notifications/cancelled", "both", "", bothEras, bothEras},
	{mcp.MethodToolsChanged, "server", bothEras, bothEras, "–"},               // TestChangesReachClients
	{mcp.MethodPromptsChanged, "server", bothEras, bothEras, "–"},             // TestChangesReachClients
	{mcp.MethodResourcesChanged, "server", bothEras, bothEras, "–"},           // TestChangesReachClients
	{mcp.MethodResourceUpdated, "server", bothEras, bothEras, "–"},            // TestChangesReachClients
	{mcp.MethodTasks, "server", "", modernEra, modernEra},                     // TestFollowTasks
	{mcp.MethodTasksStatus, "server", "", oldEras, oldEras},                   // TestTaskStatusNotifications
	{mcp.MethodSubscriptionsAcknowledged, "server", "", modernEra, modernEra}, // TestFollowTasks
	{"notifications/initialized", "client", oldEras, oldEras, oldEras},
	{"notifications/roots/list_changed", "client", "", "–", "–"},
	{"notifications/vendor", "both", "", "–", "–"},
}

const (
	oldEras   = "handshake"
	modernEra = "2026-07-28"
	bothEras  = oldEras + ", " + modernEra
)

// ofTranscripts returns the eras in whose TestWire transcripts the method
// reaches the other side.
func ofTranscripts(t *testing.T, method string) string {
	t.Helper()
	var eras []string
	for _, file := range []struct{ name, era string }{{"2025-11-25", oldEras}, {"2026-07-28", modernEra}} {
		transcript, err := os.ReadFile("testdata/wire/" + file.name + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(transcript)) {
			kind, text, _ := strings.Cut(line, " ")
			if (kind == "<" || kind == "»") && rawjson.FieldString([]byte(text), "method") == method {
				eras = append(eras, file.era)
				break
			}
		}
	}
	return strings.Join(eras, ", ")
}

// notesOfCall returns the notifications that the caller receives during a call
// in a view.
func notesOfCall(t *testing.T, f *fixture, version string, view View, call string) map[string]bool {
	t.Helper()
	got := map[string]bool{}
	c := f.client(version, view)
	_, err := c.Do(ctxFor(t), tool.Request{Method: "tools/call", Params: json.RawMessage(call), Exchange: tool.Exchange{
		Notify: func(method string, params json.RawMessage) {
			if method != mcp.MethodProgress || rawjson.FieldString(params, "progressToken") == "p" {
				got[method] = true
			}
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// notificationRows returns the table rows for notifications.
func notificationRows(t *testing.T, f *fixture) string {
	var rows strings.Builder
	const params = `,"_meta":{"progressToken":"p","` + mcp.MetaLogLevel + `":"info"}}`
	views := []struct {
		view View
		call string
	}{
		{View{Server: "paint"}, `{"name":"notes","arguments":{}` + params},
		{View{Mode: DirectMode}, `{"name":"paint__notes","arguments":{}` + params},
		{View{Mode: MetaMode}, `{"name":"execute_tool","arguments":{"server":"paint","tool":"notes","arguments":{}}` + params},
	}
	cells := map[string][]string{}
	ofCalls := []string{mcp.MethodProgress, mcp.MethodLogMessage, "notifications/elicitation/complete"}
	for _, v := range views {
		old, modern := notesOfCall(t, f, mcp.Version20251125, v.view, v.call), notesOfCall(t, f, mcp.Version20260728, v.view, v.call)
		for _, method := range ofCalls {
			cell := map[[2]bool]string{{true, true}: bothEras, {true, false}: oldEras, {false, true}: modernEra, {}: "–"}[[2]bool{old[method], modern[method]}]
			cells[method] = append(cells[method], cell)
		}
	}
	for _, method := range ofCalls {
		fmt.Fprintf(&rows, "| `%s` of a call | server | %s |\n", method, strings.Join(cells[method], " | "))
	}
	for _, n := range protocolNotifications {
		transparent := n.transparent
		if transparent == "" {
			if transparent = ofTranscripts(t, n.method); transparent == "" {
				t.Errorf("no transcript of TestWire has %s", n.method)
			}
		}
		fmt.Fprintf(&rows, "| `%s` | %s | %s | %s | %s |\n", n.method, n.from, transparent, n.direct, n.meta)
	}
	return rows.String()
}

// TestProtocolTable checks the table in docs/protocol.md of the methods that
// each view serves in each era.
func TestProtocolTable(t *testing.T) {
	t.Parallel()
	f := newFixture(t, map[string]*testServer{"paint": newTestServer(pictureTool, anyTool("notes"))})
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
	table.WriteString("\n| notification | from | transparent | direct | meta |\n| --- | --- | --- | --- | --- |\n" + notificationRows(t, f))
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

// served reports whether a view supports a method.
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
