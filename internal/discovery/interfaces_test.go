package discovery

import (
	"encoding/json"
	"strings"
	"testing"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/rawjson"
)

func TestToolsNameTheInterfaceOfTheirOwnServer(t *testing.T) {
	const shown = `{"name":"show","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://x"}}}`
	a, b := newTestServer(shown), newTestServer(shown)
	a.resources, b.resources = []string{"ui://x"}, []string{"ui://x"}
	r := newFixture(t, map[string]*testServer{"a": a, "b": b})
	c := r.client(mcp.Version20251125, View{Mode: DirectMode})
	uris := map[string]string{}
	for item := range rawjson.Elements(rawjson.Field(do(t, c, "tools/list", `{}`), "tools")) {
		uris[rawjson.FieldString(item, "name")] = rawjson.FieldString(item, "_meta", "ui", "resourceUri")
	}
	if uris["a__show"] != "ui://x" || uris["b__show"] != "ui://junctor/b/x" {
		t.Fatalf("interfaces = %v", uris)
	}
	for own, uri := range uris {
		got := do(t, c, "resources/read", `{"uri":"`+uri+`"}`)
		want := `[{"uri":"` + uri + `","text":"page"},{"uri":"ui://y","text":"part"}]`
		if string(rawjson.Field(got, "contents")) != want || string(rawjson.Field(got, "odd")) != "1" {
			t.Errorf("%s reads %s, want %s", own, got, want)
		}
	}
	if !a.has("resources/read ui://x") || !b.has("resources/read ui://x") {
		t.Error("the wrong server was asked for its interface")
	}
}

// A tool with visibility ["app"] is only returned to clients that render apps
// and to clients of the transparent view.
func TestToolsForAppsAreHiddenFromModels(t *testing.T) {
	const refresh = `{"name":"refresh","description":"Refresh the dashboard.","inputSchema":{"type":"object"},"_meta":{"ui":{"visibility":["app"]}}}`
	r := newFixture(t, map[string]*testServer{"a": newTestServer(anyTool("echo"), refresh)})
	renders := func(o *mcpclient.Options) {
		o.Capabilities.Extensions = json.RawMessage(`{"` + mcp.ExtensionUI + `":{"mimeTypes":["text/html;profile=mcp-app"]}}`)
	}
	for _, version := range []string{mcp.Version20251125, mcp.Version20260728} {
		plain, host := r.client(version, View{Mode: DirectMode}), r.client(version, View{Mode: DirectMode}, renders)
		if list := string(do(t, plain, "tools/list", `{}`)); strings.Contains(list, "refresh") || !strings.Contains(list, "a__echo") {
			t.Errorf("%s: a client without apps gets %s", version, list)
		}
		if list := string(do(t, host, "tools/list", `{}`)); !strings.Contains(list, `"a__refresh"`) {
			t.Errorf("%s: a client with apps gets %s", version, list)
		}
		if text, failed := callText(t, plain, "a__refresh", `{}`); !failed || !strings.Contains(text, "not for models") {
			t.Errorf("%s: called without apps: %s", version, text)
		}
		if text, failed := callText(t, host, "a__refresh", `{}`); failed {
			t.Errorf("%s: called with apps: %s", version, text)
		}
		if list := string(do(t, r.client(version, View{Server: "a"}), "tools/list", `{}`)); !strings.Contains(list, refresh) {
			t.Errorf("%s: the transparent view gives %s", version, list)
		}
	}
	meta := r.client(mcp.Version20251125, View{Mode: MetaMode}, renders)
	for name, arguments := range map[string]string{"search_tools": `{"query":"refresh the dashboard"}`, "list_tools": `{"server":"a"}`} {
		if text, _ := callText(t, meta, name, arguments); strings.Contains(text, "refresh\"") {
			t.Errorf("%s shows %s", name, text)
		}
	}
	if text, failed := callText(t, meta, "execute_tool", `{"server":"a","tool":"refresh"}`); !failed || !strings.Contains(text, "not for models") {
		t.Errorf("execute_tool: %s", text)
	}
}
