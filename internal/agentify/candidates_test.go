package agentify

import (
	"fmt"
	"strings"
	"testing"

	"junctor/internal/llm"
	"junctor/internal/llm/llmtest"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
)

// many returns a backend with n tools, none of which reads files.
func many(n int) *backend {
	var tools []string
	for i := range n {
		tools = append(tools, def(fmt.Sprintf("gadget_%d", i), fmt.Sprintf("Operate the gadget with the number %d in the workshop", i), `{"speed":{"type":"integer"}}`))
	}
	return newBackend("", tools...)
}

func TestLargeCatalogueIsRankedAndSearchable(t *testing.T) {
	r := newFixture(t, map[string]*backend{"files": files(), "shop": many(200)}, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "gadget", Tool: "agentify:look_further"}, Reply: calls(call("agentify:look_further", `{"tools":["shop:gadget_3","shop__gadget_199","nonsense"]}`))},
		{When: llmtest.When{User: "gadget", Tool: "shop:gadget_199"}, Reply: calls(call("shop:gadget_199", `{"speed":3}`))},
		{When: llmtest.When{User: "Datei", Tool: "agentify:look_further"}, Reply: calls(call("agentify:look_further", `{"words":"read a file"}`))},
		{When: llmtest.When{User: "Datei", Tool: "files:read_file"}, Reply: calls(call("files:read_file", `{"path":"/a"}`))},
		{When: llmtest.When{User: "again", Tool: "agentify:look_further"}, Reply: calls(call("agentify:look_further", `{"words":"x"}`))},
		{When: llmtest.When{User: "again"}, Reply: calls(call("agentify:look_further", `{"words":"x"}`))},
		{When: llmtest.When{User: "empty"}, Reply: calls(call("agentify:look_further", `{}`))},
	}})
	out, err := r.do(Task{Query: "operate gadget 5", Explain: true})
	if err != nil || out.Plan.name.Tool != "gadget_199" {
		t.Fatalf("%s, %v", rawjson.MarshalOrNull(out), err)
	}
	first := r.llm.Requests()[0]
	if n := len(first.Tools); n != maxCandidates+2 {
		t.Errorf("%d tools reached the model", n)
	}
	look, _ := first.Lookup("agentify:look_further")
	if n := strings.Count(look.Description, "\n- "); n != maxFurther {
		t.Errorf("%d tools are named", n)
	}
	if out, err = r.do(Task{Query: "die Datei lesen"}); err != nil || out.Plan.name.Tool != "read_file" {
		t.Errorf("%s, %v", rawjson.MarshalOrNull(out), err)
	}
	if got := r.refused(Task{Query: "again"}); !strings.Contains(got.Reason, "could not be used") {
		t.Errorf("%+v", got)
	}
	if got := r.refused(Task{Query: "empty"}); !strings.Contains(got.Reason, "search words") {
		t.Errorf("%+v", got)
	}
}

func TestSmallCatalogueIsSentWhole(t *testing.T) {
	r := newFixture(t, both(), always(calls(call("agentify:decline", `{"reason":"?"}`))))
	r.refused(Task{Query: "まったく関係のない話"})
	if n := len(r.llm.Last().Tools); n != 10+1 {
		t.Errorf("%d tools reached the model", n)
	}
	if _, ok := r.llm.Last().Lookup("agentify:look_further"); ok {
		t.Error("there is nothing further to look at")
	}
}

func TestContextAddsCandidates(t *testing.T) {
	r := newFixture(t, map[string]*backend{"files": files(), "shop": many(100),
		"data": newBackend("", def("run_query", "Run a SQL statement against the database", `{"sql":{"type":"string"}}`))},
		always(calls(call("agentify:decline", `{"reason":"?"}`))))
	r.refused(Task{Query: "operate the gadget", Context: Context{ActiveDocumentURI: "file:///db/report.sql", SelectionText: "SELECT * FROM database"}})
	if _, ok := r.llm.Last().Lookup("data:run_query"); !ok {
		t.Error("what the user looks at was not considered")
	}
	if got := (Context{ActiveDocumentURI: "https://example.com/x"}).words(); got != "web page example.com" {
		t.Errorf("words %q", got)
	}
}

func TestHugeDeclarationsAreBounded(t *testing.T) {
	var tools []string
	for i := range 20 {
		tools = append(tools, def(fmt.Sprintf("book_%d", i), "Read the book "+strings.Repeat("long ", 8000), `{}`))
	}
	r := newFixture(t, map[string]*backend{"library": newBackend("", tools...)}, always(calls(call("agentify:decline", `{"reason":"?"}`))))
	r.refused(Task{Query: "read the book"})
	if n := len(r.llm.Last().Tools); n > 8 {
		t.Errorf("%d books reached the model", n)
	}
	r.model = r.modelOf(llm.Config{Provider: llm.OpenAI, Model: "small", ContextWindow: 8000}, "/v1")
	r.refused(Task{Query: "read the book"})
	if n := len(r.llm.Last().Tools); n != 3 { // one large tool, look_further, decline
		t.Errorf("%d tools reached the small model", n)
	}
	if budget(llm.Info{}) != maxDeclared {
		t.Error("an unknown window is taken for a small one")
	}
}

func TestManyResourcesAreRanked(t *testing.T) {
	b := both()
	b["notes"] = newBackend("")
	b["notes"].extras, b["notes"].notes = true, 600
	b["mute"] = newBackend("") // declares lists but fails to return them
	b["mute"].extras, b["mute"].server = true, mcpserver.New(mcpserver.Options{}, mute{b["mute"]})
	r := newFixture(t, b, always(calls(call("agentify:read_resource", `{"backend":"notes","uri":"note:shopping"}`))))
	for range 2 { // the second time from the cache
		out, err := r.do(Task{Query: "what is on the shopping list?"})
		if err != nil || out.Plan.Method != "resources/read" {
			t.Fatalf("%s, %v", rawjson.MarshalOrNull(out), err)
		}
	}
	got, ok := r.llm.Last().Lookup("agentify:read_resource")
	if n := strings.Count(got.Description, "\n- "); !ok || n > maxExtras || !strings.Contains(got.Description, "note:shopping") {
		t.Errorf("%d resources: %s", n, got.Description)
	}
	if len(r.tokens) != 1 || r.tokens["gpt-test"] == 0 { // under the same name as in chat
		t.Errorf("counted tokens %v", r.tokens)
	}
}
