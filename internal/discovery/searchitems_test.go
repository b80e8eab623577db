package discovery

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// metaCall calls a meta-tool and returns the text of its result.
func metaCall(t *testing.T, c *mcpclient.Client, name string, args any) string {
	t.Helper()
	raw, err := c.Do(ctxFor(t), tool.Request{Method: "tools/call", Params: marshal(map[string]any{"name": name, "arguments": args})})
	if err != nil {
		t.Fatal(err)
	}
	for block := range rawjson.Elements(rawjson.Field(raw, "content")) {
		return rawjson.FieldString(block, "text")
	}
	return ""
}

// found returns the results of a call of search_tools.
func found(t *testing.T, c *mcpclient.Client, args map[string]any) []toolLine {
	t.Helper()
	var out struct{ Results []toolLine }
	text := metaCall(t, c, "search_tools", args)
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out.Results
}

// archive is a server with tools and with items of each kind.
func archive() *testServer {
	d := newTestServer(
		`{"name":"create_invoice","description":"Create an invoice for a customer","inputSchema":{"type":"object"}}`,
		`{"name":"list_invoices","description":"List the invoices of a customer","inputSchema":{"type":"object"}}`,
	)
	d.lists = map[string]string{
		"resources/list": `{"resources":[
			{"uri":"note:handbook","name":"handbook.md","title":"Employee handbook","description":"Rules about holidays and sick leave","mimeType":"text/markdown"},
			{"uri":"skill://pdf-forms/SKILL.md","name":"pdf-forms","description":"How to fill in PDF forms"}]}`,
		"resources/templates/list": `{"resourceTemplates":[{"uriTemplate":"made:{id}/x","name":"weather station","description":"Measurements of a weather station by its id"}]}`,
		"prompts/list":             `{"prompts":[{"name":"review_contract","description":"Review a contract for risky clauses","arguments":[{"name":"text","required":true},{"name":"style"}]}]}`,
	}
	return d
}

func TestSearchFindsResourcesPromptsAndSkills(t *testing.T) {
	r := newFixture(t, map[string]*testServer{"office": archive(), "desk": newTestServer(anyTool("one"))})
	for _, version := range []string{mcp.Version20251125, mcp.Version20260728} {
		c := r.client(version, View{Mode: MetaMode})
		for query, want := range map[string]toolLine{
			"what are the rules for holidays": {Kind: "resource", Tool: "read_resource", Arguments: json.RawMessage(`{"uri":"note:handbook"}`)},
			"fill in a PDF form":              {Kind: "skill", Tool: "read_resource", Arguments: json.RawMessage(`{"uri":"skill://pdf-forms/SKILL.md"}`)},
			"measurements of weather station": {Kind: "resource template", Tool: "read_resource", Arguments: json.RawMessage(`{"uri":"junctor:office:made:{id}/x"}`), Signature: "fill in what is in braces"},
			"review a contract":               {Kind: "prompt", Tool: "get_prompt", Arguments: json.RawMessage(`{"name":"office__review_contract"}`), Signature: "also arguments: {text*, style}"},
			"handbook.md":                     {Kind: "resource", Tool: "read_resource", Arguments: json.RawMessage(`{"uri":"note:handbook"}`)},
		} {
			hits := found(t, c, map[string]any{"query": query})
			if len(hits) == 0 {
				t.Errorf("%s, %q: nothing found", version, query)
				continue
			}
			got := hits[0]
			if got.Kind != want.Kind || got.Server != "junctor" || got.Tool != want.Tool || got.From != "office" || string(got.Arguments) != string(want.Arguments) || got.Signature != want.Signature || got.Summary == "" {
				t.Errorf("%s, %q: %s", version, query, marshal(hits))
			}
		}
		// The arguments of a search result read the item.
		for query, want := range map[string]string{"what are the rules for holidays": "of the desk", "review a contract": "review_contract"} {
			hit := found(t, c, map[string]any{"query": query, "server": "office", "limit": 1})[0]
			if text, isError := executeTool(t, c, hit.Server, hit.Tool, hit.Arguments, ""); isError || text != want {
				t.Errorf("%q: execute_tool with its arguments: %s", query, text)
			}
			if text := metaCall(t, c, "get_tool_details", map[string]any{"server": hit.Server, "tool": hit.Tool}); !strings.Contains(text, `"inputSchema":{`) {
				t.Errorf("details of %s: %s", hit.Tool, text)
			}
		}
		for name, want := range map[string]string{"note:handbook": `"kind":"resource"`, "made:{id}/x": `"kind":"resource template"`, "review_contract": `"name":"arguments.text","type":"string","required":true`, "office__review_contract": `"kind":"prompt"`} {
			if text := metaCall(t, c, "get_tool_details", map[string]any{"server": "office", "tool": name}); !strings.Contains(text, want) || !strings.Contains(text, `"arguments":{`) {
				t.Errorf("details of %s: %s", name, text)
			}
		}
	}
}

// Items require rights to their server, but none to the server junctor.
func TestSearchOfItemsKeepsRights(t *testing.T) {
	r := newFixture(t, map[string]*testServer{"office": archive(), "desk": newTestServer(anyTool("one"))})
	for name, tt := range map[string]struct {
		servers []string
		finds   bool
	}{"of the server": {[]string{"office"}, true}, "of another": {[]string{"desk"}, false}, "of none": {[]string{"none"}, false}} {
		c := r.clientAs(tool.Caller{ID: "key:" + name, Servers: tt.servers}, mcp.Version20251125, View{Mode: MetaMode})
		hits := found(t, c, map[string]any{"query": "rules about holidays"})
		if finds := len(hits) > 0 && hits[0].Kind == "resource"; finds != tt.finds {
			t.Errorf("%s: %s", name, marshal(hits))
		}
		if _, isError := executeTool(t, c, "junctor", "read_resource", map[string]string{"uri": "note:handbook"}, ""); isError == tt.finds && name != "of another" {
			t.Errorf("%s: reading is an error: %v", name, isError)
		}
		if text := metaCall(t, c, "get_tool_details", map[string]any{"server": "office", "tool": "note:handbook"}); strings.Contains(text, "holidays") != tt.finds {
			t.Errorf("%s: details: %s", name, text)
		}
	}
}

// A query for a tool returns the same tools, in the same order, as without
// items.
func TestItemsDoNotDisplaceTools(t *testing.T) {
	office := archive()
	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprintf(`{"uri":"note:%d","name":"invoice %d","description":"The invoice %d of a customer"}`, i, i, i))
	}
	office.lists["resources/list"] = `{"resources":[` + strings.Join(many, ",") + `]}`
	r := newFixture(t, map[string]*testServer{"office": office})
	c := r.client(mcp.Version20251125, View{Mode: MetaMode})
	for _, query := range []string{"create an invoice", "list_invoices", "list the invoices of a customer"} {
		hits := found(t, c, map[string]any{"query": query, "limit": 6})
		var tools []string
		items := 0
		for _, h := range hits {
			if h.Kind == "" {
				tools = append(tools, h.Tool)
			} else {
				items++
			}
		}
		if len(tools) != 2 || hits[0].Kind != "" || items > 2 {
			t.Errorf("%q: %s", query, marshal(hits))
		}
	}
}

func TestSearchSeesNewItems(t *testing.T) {
	office := archive()
	r := newFixture(t, map[string]*testServer{"office": office})
	c := r.client(mcp.Version20251125, View{Mode: MetaMode})
	query := map[string]any{"query": "travel expenses"}
	if hits := found(t, c, query); len(hits) > 0 && hits[0].Kind != "" {
		t.Fatalf("before: %s", marshal(hits))
	}
	office.mu.Lock()
	office.lists = map[string]string{"resources/list": `{"resources":[{"uri":"note:travel","name":"travel","description":"Rules for travel expenses"}]}`}
	office.mu.Unlock()
	eventually(t, "the new resource is found", func() bool {
		office.server.Notify(mcp.MethodResourcesChanged, nil) // repeated, because the gateway may not be listening yet
		hits := found(t, c, query)
		return len(hits) > 0 && hits[0].Kind == "resource"
	})
}

// A configured server named junctor does not replace the gateway's own tools;
// its tools remain available in its transparent view.
func TestReservedItemToolsAreNotShadowed(t *testing.T) {
	r := newFixture(t, map[string]*testServer{"junctor": newTestServer(anyTool("read_resource"), anyTool("own")), "desk": newTestServer(anyTool("one"))})
	c := r.client(mcp.Version20251125, View{Mode: MetaMode})
	if text, isError := executeTool(t, c, "junctor", "read_resource", map[string]string{"uri": "note:one"}, ""); isError || text != "of the desk" {
		t.Errorf("read_resource: %s", text)
	}
	if text := metaCall(t, c, "get_tool_details", map[string]string{"server": "junctor", "tool": "read_resource"}); !strings.Contains(text, "Read a resource") {
		t.Errorf("details: %s", text)
	}
	if text, isError := executeTool(t, c, "junctor", "own", map[string]string{}, ""); isError || !strings.HasPrefix(text, "own") {
		t.Errorf("a tool of the configured server: %s", text)
	}
	own := r.client(mcp.Version20251125, View{Server: "junctor"})
	raw, err := own.Do(ctxFor(t), tool.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"read_resource","arguments":{"a":1}}`)})
	if err != nil || !strings.Contains(string(raw), `read_resource {\"a\":1}`) {
		t.Errorf("in the view of the server: %s, %v", raw, err)
	}
}

// In every view, completions reach the server of the prompt or template.
func TestCompletionInEveryView(t *testing.T) {
	r := newFixture(t, map[string]*testServer{"office": archive(), "desk": newTestServer(anyTool("one"))})
	for _, version := range []string{mcp.Version20251125, mcp.Version20260728} {
		for name, tt := range map[string]struct {
			view      View
			ref, want string
		}{
			"prompt, meta":          {View{Mode: MetaMode}, `{"type":"ref/prompt","name":"office__review_contract"}`, "review_contract"},
			"template, meta":        {View{Mode: MetaMode}, `{"type":"ref/resource","uri":"made:{id}/x"}`, "made:{id}/x"},
			"prompt, direct":        {View{Mode: DirectMode}, `{"type":"ref/prompt","name":"desk__greet"}`, "greet"},
			"template, direct":      {View{Mode: DirectMode}, `{"type":"ref/resource","uri":"made:{id}/x"}`, "made:{id}/x"},
			"prompt, transparent":   {View{Server: "office"}, `{"type":"ref/prompt","name":"review_contract"}`, "review_contract"},
			"template, transparent": {View{Server: "office"}, `{"type":"ref/resource","uri":"made:{id}/x"}`, "made:{id}/x"},
		} {
			c := r.client(version, tt.view)
			raw, err := c.Do(ctxFor(t), tool.Request{Method: "completion/complete", Params: json.RawMessage(`{"ref":` + tt.ref + `,"argument":{"name":"id","value":"5"}}`)})
			if err != nil || !strings.Contains(string(raw), `"values":[`+string(marshal(tt.want))+`]`) {
				t.Errorf("%s, %s: %s, %v", version, name, raw, err)
			}
			if caps := c.Info().Capabilities; rawjson.Field(caps, "completions") == nil {
				t.Errorf("%s, %s: capabilities %s", version, name, caps)
			}
		}
	}
}

// A replaced index does not stay in memory.
func TestReplacedItemIndexIsNotKept(t *testing.T) {
	r := newFixture(t, map[string]*testServer{"office": archive()})
	c := r.client(mcp.Version20251125, View{Mode: MetaMode})
	query := map[string]any{"query": "rules about holidays"}
	current := func() *itemIndex {
		r.view.mu.Lock()
		defer r.view.mu.Unlock()
		for _, x := range r.view.found {
			return x
		}
		return nil
	}
	eventually(t, "the items are indexed", func() bool { return len(found(t, c, query)) > 0 && current() != nil && current().isReady() })
	old := current()
	old.at = old.at.Add(-itemsTTL - time.Second)
	if hits := found(t, c, query); len(hits) == 0 || hits[0].Kind != "resource" {
		t.Errorf("while the lists are read again: %s", marshal(hits))
	}
	eventually(t, "the new index does not keep the old one", func() bool {
		r.view.mu.Lock()
		defer r.view.mu.Unlock()
		for _, x := range r.view.found {
			return x != old && x.isReady() && x.before == nil
		}
		return false
	})
}

// Large items neither displace all other results nor exceed the size limit of
// a response.
func TestHugeItemsAreBounded(t *testing.T) {
	limit := DefaultConfig().MaxAnswerBytes
	huge := strings.Repeat("invoice ", limit/4)
	office := archive()
	office.lists["resources/list"] = `{"resources":[` +
		`{"uri":"note:` + strings.ReplaceAll(huge, " ", "-") + `","name":"create an invoice","description":"create an invoice"},` +
		`{"uri":"note:long","name":"create an invoice","title":"` + huge + `","description":"` + huge + `","annotations":{"note":"` + huge + `"}}]}`
	r := newFixture(t, map[string]*testServer{"office": office})
	c := r.client(mcp.Version20251125, View{Mode: MetaMode})
	eventually(t, "the items are indexed", func() bool {
		text := metaCall(t, c, "search_tools", map[string]any{"query": "create an invoice"})
		if !strings.Contains(text, `"create_invoice"`) || len(text) > limit+1000 {
			t.Fatalf("search: %d bytes: %.300s", len(text), text)
		}
		return strings.Contains(text, "note:long")
	})
	text := metaCall(t, c, "get_tool_details", map[string]any{"server": "office", "tool": "note:long"})
	if !strings.Contains(text, `"arguments":{"uri":"note:long"}`) || !strings.Contains(text, `"inputSchema":{`) || len(text) > limit {
		t.Errorf("details: %d bytes: %.300s", len(text), text)
	}
}
