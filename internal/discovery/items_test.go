package discovery

import (
	"strings"
	"testing"

	"junctor/internal/mcp"
	"junctor/internal/script/scripttest"
	"junctor/internal/tool"
)

func TestResourcesAndPromptsAreReadWithTools(t *testing.T) {
	scripttest.NeedEngine(t)
	r := newFixture(t, map[string]*testServer{"desk": newTestServer(anyTool("one")), "other": newTestServer(anyTool("two"))})
	for _, version := range []string{mcp.Version20251125, mcp.Version20260728} {
		c := r.client(version, View{Mode: MetaMode})
		for name, tt := range map[string]struct {
			tool string
			args map[string]any
			want string
		}{
			"a resource":        {"read_resource", map[string]any{"uri": "note:one"}, "of the desk"},
			"of a template":     {"read_resource", map[string]any{"uri": "made:5/x"}, "of the desk"},
			"a prompt":          {"get_prompt", map[string]any{"name": "desk__greet", "arguments": map[string]string{"who": "you"}}, "greet"},
			"no such resource":  {"read_resource", map[string]any{"uri": "none:x"}, `"code":"`},
			"no such prompt":    {"get_prompt", map[string]any{"name": "none"}, `"code":"`},
			"no URI":            {"read_resource", map[string]any{}, "uri is missing"},
			"an argument twice": {"get_prompt", map[string]any{"name": "desk__greet", "arguments": map[string]any{"who": 1}}, "INVALID_ARGUMENTS"},
		} {
			if text, _ := executeTool(t, c, "junctor", tt.tool, tt.args, ""); !strings.Contains(text, tt.want) {
				t.Errorf("%s, %s: %s", version, name, text)
			}
		}
	}
	if texts, _ := runScript(t, r.client(mcp.Version20251125, View{Mode: CodeMode}), `return await tools.junctor.read_resource({uri: "note:two"})`); texts[0] != "of the desk" {
		t.Errorf("%q", texts)
	}
	limited := r.clientAs(tool.Caller{ID: "key:x", Servers: []string{"none"}}, mcp.Version20251125, View{Mode: MetaMode})
	for name, args := range map[string]map[string]any{"read_resource": {"uri": "note:one"}, "get_prompt": {"name": "desk__greet"}} {
		if text, isError := executeTool(t, limited, "junctor", name, args, ""); !isError {
			t.Errorf("a caller without the server: %s", text)
		}
	}
}
