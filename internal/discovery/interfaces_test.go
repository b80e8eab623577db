package discovery

import (
	"testing"

	"junctor/internal/mcp"
	"junctor/internal/tool"
)

func TestToolsNameTheInterfaceOfTheirOwnServer(t *testing.T) {
	const shown = `{"name":"show","inputSchema":{"type":"object"},"_meta":{"ui":{"resourceUri":"ui://x"}}}`
	a, b := newDesk(shown), newDesk(shown)
	a.resources, b.resources = []string{"ui://x"}, []string{"ui://x"}
	r := newRig(t, map[string]*desk{"a": a, "b": b})
	c := r.client(mcp.Version20251125, View{Mode: DirectMode})
	uris := map[string]string{}
	for item := range mcp.Elements(mcp.Field(do(t, c, "tools/list", `{}`), "tools")) {
		uris[mcp.FieldString(item, "name")] = mcp.FieldString(item, "_meta", "ui", "resourceUri")
	}
	if uris["a__show"] != "ui://x" || uris["b__show"] != "ui://junctor/b/x" {
		t.Fatalf("interfaces = %v", uris)
	}
	// The desk has no such resource to read; it is asked for its own name.
	_, _ = c.Do(ctxFor(t), tool.Request{Method: "resources/read", Params: []byte(`{"uri":"` + uris["b__show"] + `"}`)})
	if !b.has("resources/read ui://x") || a.has("resources/read ui://x") {
		t.Error("the wrong server was asked for its interface")
	}
}
