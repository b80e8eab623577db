package discovery

import (
	"testing"

	"junctor/internal/mcp"
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
