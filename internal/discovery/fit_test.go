package discovery

import (
	"encoding/json"
	"strings"
	"testing"

	"junctor/internal/catalog"
	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/rawjson"
	"junctor/internal/script/scripttest"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// executeTool calls execute_tool and returns the first text of its result.
func executeTool(t *testing.T, c *mcpclient.Client, server, name string, arguments any, selected string) (text string, isError bool) {
	t.Helper()
	args := map[string]any{"server": server, "tool": name, "arguments": arguments}
	if selected != "" {
		args["select"] = selected
	}
	raw, err := c.Do(ctxFor(t), tool.Request{Method: "tools/call", Params: marshal(map[string]any{"name": "execute_tool", "arguments": args})})
	if err != nil {
		t.Fatal(err)
	}
	for block := range rawjson.Elements(rawjson.Field(raw, "content")) {
		text = rawjson.FieldString(block, "text")
		break
	}
	return text, mcp.ResultIsError(raw)
}

func TestExecuteToolSelects(t *testing.T) {
	server := newTestServer(anyTool("picture"), anyTool("read"), anyTool("always"))
	r := newFixture(t, map[string]*testServer{"fs": server}, func(r *fixture, _ *[]upstream.Config) {
		r.catalog.Configure(catalog.Settings{Rules: []catalog.ToolRule{{Pattern: []string{"fs:always"}, Select: `length`}}}, nil)
	})
	c := r.client(mcp.Version20251125, View{Mode: MetaMode})
	if text, isError := executeTool(t, c, "fs", "picture", map[string]any{}, ".a * 2"); isError || text != "3" {
		t.Errorf("%t %s", isError, text)
	}
	if text, _ := executeTool(t, c, "fs", "always", map[string]any{}, ""); text != "9" { // the whole result is {}
		t.Errorf("the rule's select: %s", text)
	}
	text, isError := executeTool(t, c, "fs", "picture", map[string]any{}, ".a.b")
	if !isError || !strings.Contains(text, "The result looks like {a: number}") || !strings.Contains(text, "its result is stored: read_result") {
		t.Errorf("%t %s", isError, text)
	}
	server.mu.Lock()
	calls := len(server.seen)
	server.mu.Unlock()
	text, isError = executeTool(t, c, "fs", "picture", map[string]any{}, ".a[")
	server.mu.Lock()
	defer server.mu.Unlock()
	if !isError || !strings.Contains(text, "The tool was not called") || len(server.seen) != calls {
		t.Errorf("%t %s; the server saw %d more", isError, text, len(server.seen)-calls)
	}
}

func TestLargeResultsArePaged(t *testing.T) {
	scripttest.NeedEngine(t)
	r := newFixture(t, map[string]*testServer{"fs": newTestServer(anyTool("read"))})
	cfg := DefaultConfig()
	cfg.MaxResultBytes = 2000
	r.SetConfig(cfg)
	c := r.client(mcp.Version20251125, View{Mode: MetaMode})
	long := strings.Repeat("0123456789", 500)
	text, _ := executeTool(t, c, "fs", "read", map[string]any{"long": long}, "")
	whole := `read {"long":"` + long + `"}`
	begin, note, ok := strings.Cut(text, "\n[junctor: the first 2000 of 5016 bytes.")
	if !ok || begin != whole[:2000] {
		t.Fatalf("%.100s", text)
	}
	_, id, _ := strings.Cut(note, `"id":"`)
	id, _, _ = strings.Cut(id, `"`)
	read := begin
	for range 3 {
		page, isError := executeTool(t, c, "junctor", "read_result", map[string]any{"id": id, "offset": len(read)}, "")
		if isError {
			t.Fatal(page)
		}
		page, _, more := strings.Cut(page, "\n[junctor: up to byte")
		if read += page; !more {
			break
		}
	}
	if read != whole {
		t.Errorf("%d bytes were read, want %d", len(read), len(whole))
	}
	if page, _ := executeTool(t, c, "junctor", "read_result", map[string]any{"id": id, "select": ".[5:20]"}, ""); page != `{"long":"012345` {
		t.Errorf("select: %s", page)
	}
	for name, args := range map[string]any{"no id": map[string]any{}, "another id": map[string]any{"id": "x"}, "another argument": map[string]any{"id": id, "colour": 1}} {
		if page, isError := executeTool(t, c, "junctor", "read_result", args, ""); !isError || !strings.Contains(page, "INVALID_ARGUMENTS") {
			t.Errorf("%s: %s", name, page)
		}
	}
	other := r.clientAs(tool.Caller{ID: "key:other"}, mcp.Version20251125, View{Mode: MetaMode})
	if page, isError := executeTool(t, other, "junctor", "read_result", map[string]any{"id": id}, ""); !isError {
		t.Errorf("another caller reads %.40s", page)
	}
	// The same applies to scripts and their return values.
	code := r.client(mcp.Version20251125, View{Mode: CodeMode})
	if texts, _ := runScript(t, code, `return (await tools.call("junctor:read_result", {id: "`+id+`", offset: 5000})).slice(0, 3)`); texts[0] != "678" {
		t.Errorf("%q", texts)
	}
	texts, _ := runScript(t, code, `return "x".repeat(40000)`)
	if !strings.Contains(texts[0], "[junctor: the first 32768 of 40000 bytes.") {
		t.Errorf("%.200s", texts[0][len(texts[0])-300:])
	}
}

// A configured server named junctor does not replace the gateway's own tools;
// its other tools remain available.
func TestReservedToolsAreNotShadowed(t *testing.T) {
	r := newFixture(t, map[string]*testServer{"junctor": newTestServer(anyTool("read_result"), anyTool("other"))})
	c := r.client(mcp.Version20251125, View{Mode: MetaMode})
	if text, isError := executeTool(t, c, "junctor", "read_result", json.RawMessage(`{"id":"none"}`), ""); !isError || !strings.Contains(text, "is stored for this caller") {
		t.Errorf("%s", text)
	}
	if text, isError := executeTool(t, c, "junctor", "other", json.RawMessage(`{}`), ""); isError || text != "other {}" {
		t.Errorf("%s", text)
	}
}
