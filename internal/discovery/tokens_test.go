package discovery

import (
	"encoding/json"
	"testing"

	"github.com/tiktoken-go/tokenizer"
)

// The tools of each view cost few tokens in a client's context. Counted are
// the name, description and schema of each, as given to a model.
func TestMetaToolsAreShort(t *testing.T) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		list        json.RawMessage
		tools, most int
	}{
		"meta":               {toolList(metaTools), 5, 450},
		"meta with run_code": {toolList(metaTools, runCodeTool), 6, 600},
		"code":               {toolList(searchTool, runCodeTool), 2, 450},
	} {
		var list struct {
			Tools []struct {
				Name        string          `json:"name"`
				Description string          `json:"description"`
				InputSchema json.RawMessage `json:"inputSchema"`
			} `json:"tools"`
		}
		if err := json.Unmarshal(tt.list, &list); err != nil {
			t.Fatal(err)
		}
		total := 0
		for _, tool := range list.Tools {
			b, err := json.Marshal(tool)
			if err != nil {
				t.Fatal(err)
			}
			n, err := codec.Count(string(b))
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %d tokens", tool.Name, n)
			total += n
		}
		if len(list.Tools) != tt.tools || total >= tt.most {
			t.Errorf("%s: %d tools cost %d tokens, want %d under %d", name, len(list.Tools), total, tt.tools, tt.most)
		}
		t.Logf("%s: %d tokens", name, total)
	}
}

// The inputs match the published design in name, type and whether they are
// required.
func TestMetaToolInputs(t *testing.T) {
	want := map[string]struct {
		types    map[string]string
		required []string
	}{
		"list_mcp_servers": {map[string]string{}, []string{}},
		"search_tools":     {map[string]string{"query": "string", "server": "string", "limit": "number"}, []string{"query"}},
		"list_tools":       {map[string]string{"server": "string", "includeDisabled": "boolean"}, []string{"server"}},
		"get_tool_details": {map[string]string{"server": "string", "tool": "string"}, []string{"server", "tool"}},
		"run_code":         {map[string]string{"code": "string"}, []string{"code"}},
		"execute_tool":     {map[string]string{"server": "string", "tool": "string", "arguments": "object", "select": "string"}, []string{"server", "tool", "arguments"}},
	}
	var list struct {
		Tools []struct {
			Name        string `json:"name"`
			InputSchema struct {
				Type       string                           `json:"type"`
				Properties map[string]struct{ Type string } `json:"properties"`
				Required   []string                         `json:"required"`
			} `json:"inputSchema"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(toolList(metaTools, runCodeTool), &list); err != nil {
		t.Fatal(err)
	}
	for _, tool := range list.Tools {
		w, ok := want[tool.Name]
		if !ok || tool.InputSchema.Type != "object" || len(tool.InputSchema.Properties) != len(w.types) || len(tool.InputSchema.Required) != len(w.required) {
			t.Errorf("%s: %+v", tool.Name, tool.InputSchema)
			continue
		}
		for name, p := range tool.InputSchema.Properties {
			if w.types[name] != p.Type {
				t.Errorf("%s.%s is %s, want %s", tool.Name, name, p.Type, w.types[name])
			}
		}
		for i, name := range tool.InputSchema.Required {
			if w.required[i] != name {
				t.Errorf("%s requires %v", tool.Name, tool.InputSchema.Required)
			}
		}
		if _, ok := tools[tool.Name]; !ok {
			t.Errorf("%s is listed but not served", tool.Name)
		}
	}
}
