package provider

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"junctor/internal/tool"
)

func many(t testing.TB, n int) []tool.Definition {
	var defs []tool.Definition
	for i := range n {
		defs = append(defs, def(t, fmt.Sprintf("server%d", i%20), fmt.Sprintf("tool_%d", i), fmt.Sprintf(`{
			"$schema":"http://json-schema.org/draft-07/schema#","type":"object","required":["query"],"additionalProperties":false,
			"properties":{
				"query":{"type":"string","description":"What to look for in collection %d.","minLength":1},
				"limit":{"anyOf":[{"type":"integer","minimum":1,"maximum":100},{"type":"null"}],"default":10},
				"sort":{"type":"string","enum":["asc","desc"],"description":"Order."},
				"filters":{"type":"array","items":{"type":"object","properties":{"field":{"type":"string"},"op":{"enum":["=","<",">"]},"value":{"type":["string","number","null"]}},"required":["field","op"]}},
				"options":{"type":"object","additionalProperties":{"type":"string"}}
			}}`, i)))
	}
	return defs
}

func TestDeclarationLimits(t *testing.T) {
	tools := NewTools(many(t, 600), nil)
	for name, tt := range map[string]struct {
		provider string
		options  Options
		want     int
		says     string
	}{
		"openai":               {OpenAI, Options{}, 128, "openai takes at most 128 tools; 472 are left out"},
		"responses":            {OpenAIResponses, Options{}, 128, "128"},
		"xai":                  {XAI, Options{}, 200, "xai takes at most 200"},
		"gemini":               {Gemini, Options{}, 512, "gemini takes at most 512"},
		"anthropic has none":   {Anthropic, Options{}, 600, ""},
		"asked for fewer":      {OpenAI, Options{Limit: 5}, 5, "the request asks for at most 5"},
		"asked for more":       {OpenAI, Options{Limit: 500}, 128, "openai takes at most 128"},
		"asked where no limit": {Ollama, Options{Limit: 7}, 7, "the request asks for"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := tools.Declare(tt.provider, nil, tt.options)
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(l.Warnings, func(w Warning) bool { return w.Code == OverLimit })
			if len(l.Declarations) != tt.want || (i >= 0) != (tt.says != "") {
				t.Fatalf("%d declarations, warnings %+v", len(l.Declarations), l.Warnings)
			}
			if i >= 0 && (!strings.Contains(l.Warnings[i].Message, tt.says) || len(l.Warnings[i].Tools) != 600-tt.want) {
				t.Errorf("warning %q names %d tools", l.Warnings[i].Message, len(l.Warnings[i].Tools))
			}
		})
	}
}

func TestDeclareSelectedTools(t *testing.T) {
	defs := many(t, 3)
	tools := NewTools(defs, nil)
	l, err := tools.Declare("claude", []tool.Name{defs[2].Name, {Server: "x", Tool: "gone"}, defs[0].Name}, Options{})
	if err != nil || len(l.Declarations) != 2 || l.Declarations[0].Tool != defs[2].Name || l.Declarations[1].Tool != defs[0].Name {
		t.Errorf("Declare = %+v, %v", l, err)
	}
	if l, _ := tools.Declare(OpenAI, []tool.Name{}, Options{}); len(l.Declarations) != 0 || string(l.Body()) != `{"tools":[]}` {
		t.Errorf("none: %s", l.Body())
	}
	d := l.Declarations[0]
	if !json.Valid(d.Schema) || !strings.Contains(string(d.JSON), string(d.Schema)) {
		t.Errorf("schema %s is not part of %s", d.Schema, d.JSON)
	}
}

func TestDeclarationBodies(t *testing.T) {
	tools := NewTools([]tool.Definition{def(t, "s", "t", `{"type":"object"}`)}, nil)
	for provider, want := range map[string]string{
		Gemini:          `{"function_declarations":[{"name":"s__t","description":"Does t.","parametersJsonSchema":{"type":"object","properties":{}}}]}`,
		OpenAI:          `{"tools":[{"type":"function","function":{"name":"s__t","description":"Does t.","parameters":{"type":"object","properties":{}}}}]}`,
		XAI:             `{"tools":[{"type":"function","function":{"name":"s__t","description":"Does t.","parameters":{"type":"object","properties":{}}}}]}`,
		OpenAIResponses: `{"tools":[{"type":"function","name":"s__t","description":"Does t.","parameters":{"type":"object","properties":{}},"strict":false}]}`,
		Anthropic:       `{"tools":[{"name":"s__t","description":"Does t.","input_schema":{"type":"object","properties":{}}}]}`,
		Ollama:          `{"tools":[{"type":"function","function":{"name":"s__t","description":"Does t.","parameters":{"type":"object","properties":{}}}}]}`,
		Bedrock:         `{"toolConfig":{"tools":[{"toolSpec":{"name":"s__t","description":"Does t.","inputSchema":{"json":{"type":"object","properties":{}}}}}]}}`,
	} {
		l, err := tools.Declare(provider, nil, Options{})
		if err != nil || string(l.Body()) != want {
			t.Errorf("%s:\ngot  %s (%v)\nwant %s", provider, l.Body(), err, want)
		}
	}
	l, _ := tools.Declare(OpenAIResponses, nil, Options{Strict: true})
	if want := `"additionalProperties":false},"strict":true}`; !strings.Contains(string(l.Body()), want) {
		t.Errorf("strict: %s", l.Body())
	}
}

func TestOptionsAreChecked(t *testing.T) {
	tools := NewTools(many(t, 1), nil)
	for name, tt := range map[string]struct {
		provider string
		options  Options
	}{
		"unknown provider":  {"nobody", Options{}},
		"unknown schema":    {Gemini, Options{Schema: "xml"}},
		"openapi elsewhere": {OpenAI, Options{Schema: OpenAPISchema}},
		"strict elsewhere":  {Anthropic, Options{Strict: true}},
	} {
		if _, err := tools.Declare(tt.provider, nil, tt.options); tool.KindOf(err) != tool.InvalidRequest {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := tools.Context("nobody", nil, false); tool.KindOf(err) != tool.InvalidRequest {
		t.Errorf("Context: %v", err)
	}
}

func TestConcise(t *testing.T) {
	d := def(t, "s", "t", `{"type":"object","properties":{"a":{"type":"string","title":"A","description":"The name, e.g. x. More about it.","examples":["q"]}}}`)
	d.Description = "Finds things. It does so in many ways.\nMore."
	tools := NewTools([]tool.Definition{d}, nil)
	l, err := tools.Declare(Anthropic, nil, Options{Concise: true})
	want := `{"tools":[{"name":"s__t","description":"Finds things","input_schema":{"type":"object","properties":{"a":{"type":"string","description":"The name, e.g. x"}}}}]}`
	if err != nil || string(l.Body()) != want {
		t.Errorf("got  %s\nwant %s", l.Body(), want)
	}
}

func TestResolve(t *testing.T) {
	tools := NewTools([]tool.Definition{
		def(t, "a", "read.file", `{}`), def(t, "a", "list", `{}`), def(t, "b", "list", `{}`), def(t, "b", "a__list", `{}`), def(t, "b", "only", `{}`),
	}, nil)
	for name, tt := range map[string]struct {
		server, called, want string
	}{
		"declared name":                    {"", LegalName(tool.Name{Server: "a", Tool: "read.file"}), "a:read.file"},
		"declared name in its server":      {"a", "a__list", "a:list"},
		"declared name in another server":  {"b", "a__list", "b:a__list"},
		"qualified":                        {"", "b:list", "b:list"},
		"qualified in another server":      {"a", "b:list", ""},
		"bare and unique":                  {"", "only", "b:only"},
		"bare in two servers":              {"", "list", ""},
		"bare with its server":             {"b", "list", "b:list"},
		"bare in a server that has it not": {"a", "only", ""},
		"unknown":                          {"", "nothing", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := tools.Resolve(tt.server, tt.called)
			if ok != (tt.want != "") || ok && got.String() != tt.want {
				t.Errorf("Resolve(%q, %q) = %v, %v, want %q", tt.server, tt.called, got, ok, tt.want)
			}
		})
	}
	if _, _, err := tools.Restore("nothing", nil); tool.KindOf(err) != tool.ToolNotFound {
		t.Errorf("Restore(nothing) = %v", err)
	}
	if _, _, err := tools.Restore("only", json.RawMessage(`[]`)); tool.KindOf(err) != tool.InvalidArguments {
		t.Errorf("Restore([]) = %v", err)
	}
	if d, ok := tools.Definition(tool.Name{Server: "b", Tool: "only"}); !ok || d.Name.Tool != "only" {
		t.Errorf("Definition = %v, %v", d, ok)
	}
	if _, ok := tools.Definition(tool.Name{Server: "b", Tool: "none"}); ok {
		t.Error("Definition found what is not there")
	}
	if _, ok := tools.Names().Tool("b__only"); !ok {
		t.Error("Names has not b__only")
	}
}

// TestNewVersionReusesUnchangedTools checks that a new version reuses the
// translations of unchanged tools, and only those.
func TestNewVersionReusesUnchangedTools(t *testing.T) {
	defs := many(t, 4)
	before := NewTools(defs, nil)
	first, err := before.Declare(OpenAI, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	changed := slices.Clone(defs[:3])
	changed[1] = def(t, defs[1].Name.Server, defs[1].Name.Tool, `{"type":"object","properties":{"new":{"type":"string"}}}`)
	changed = append(changed, def(t, "new", "one", `{}`))
	after := NewTools(changed, before)
	l, err := after.Declare(OpenAI, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	same := func(i int) bool { return &l.Declarations[i].JSON[0] == &first.Declarations[i].JSON[0] }
	if !same(0) || same(1) || !same(2) || len(l.Declarations) != 4 || l.Declarations[3].Name != "new__one" {
		t.Errorf("kept %v %v %v, %d declarations", same(0), same(1), same(2), len(l.Declarations))
	}
	if !strings.Contains(string(l.Declarations[1].JSON), `"new"`) {
		t.Errorf("the changed tool is stale: %s", l.Declarations[1].JSON)
	}
}

// TestVariantsAreBounded checks that requests for every form do not grow the
// cache without limit, and that an evicted form can still be requested.
func TestVariantsAreBounded(t *testing.T) {
	tools := NewTools(many(t, 2), nil)
	for _, concise := range []bool{false, true} {
		for _, v := range variants {
			o := v.options
			o.Concise = concise
			if _, err := tools.Declare(v.provider, nil, o); err != nil {
				t.Fatal(err)
			}
		}
	}
	if len(tools.variants) > maxVariants || len(tools.order) != len(tools.variants) {
		t.Errorf("%d variants, %d in order", len(tools.variants), len(tools.order))
	}
	if l, err := tools.Declare(Gemini, nil, Options{}); err != nil || len(l.Declarations) != 2 {
		t.Errorf("Declare = %v, %v", l, err)
	}
}

func TestConcurrentUse(t *testing.T) {
	tools := NewTools(many(t, 50), nil)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for _, v := range variants {
				if _, err := tools.Declare(v.provider, nil, v.options); err != nil {
					t.Error(err)
				}
			}
			if _, _, err := tools.Restore(fmt.Sprintf("server%d__tool_%d", i, i), json.RawMessage(`{"query":1}`)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestContext(t *testing.T) {
	a := def(t, "files", "read", `{"type":"object","required":["path"],"properties":{"path":{"type":"string","description":"Which\nfile."},"lines":{"type":"array","items":{"type":"integer"}},"mode":{"enum":["text","raw"],"default":"text"},"at":{"type":"object","properties":{"x":{"type":"number"},"y":{"anyOf":[{"type":"number"},{"type":"null"}]}},"required":["x"]},"opts":{"type":"object","additionalProperties":{"type":"string"}},"gone":false,"v":{}}}`)
	a.Description = "Reads a file. Slowly."
	b := def(t, "files", "drop", `{}`)
	c := def(t, "web", "get", `{"type":"string"}`)
	tools := NewTools([]tool.Definition{a, b, c}, nil)
	groups := []ContextGroup{
		{Server: "files", Guidance: "Paths are relative.", Tools: []ContextTool{{Name: b.Name}, {Name: a.Name, Tags: []string{"read", "x"}}, {Name: tool.Name{Server: "files", Tool: "gone"}, Tags: []string{"read"}}}},
		{Server: "empty"},
		{Server: "web", Tools: []ContextTool{{Name: c.Name}}},
	}
	concise, err := tools.Context(OpenAI, groups, true)
	if err != nil {
		t.Fatal(err)
	}
	want := "Parameters: * is required, ? optional; without a type, text.\n\n# files\n## read\n" +
		"- files__read(path*, lines?: integer[], mode?: \"text\"|\"raw\", at?: {x*: number, y?: number}, opts?: object, gone?: any, v?: any): Reads a file\n" +
		"## other\n- files__drop(): Does drop\n\n# web\n- web__get(): Does get\n"
	if concise.Text != want {
		t.Errorf("concise:\n%s\nwant:\n%s", concise.Text, want)
	}
	if concise.Tools != 3 || concise.Tokens != estimateTokens(len(want)) || concise.Tokens < 40 {
		t.Errorf("%d tools, %d tokens", concise.Tools, concise.Tokens)
	}
	full, err := tools.Context(OpenAI, groups, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{
		"Paths are relative.", "  Reads a file. Slowly.\n", "  - path (string, required): Which file.\n", "  - mode (\"text\"|\"raw\", optional) Default: \"text\".\n",
		"  - at ({x: number, y?: number|null}, optional)\n",
	} {
		if !strings.Contains(full.Text, part) {
			t.Errorf("full text lacks %q:\n%s", part, full.Text)
		}
	}
	if strings.Contains(full.Text, "gone") {
		t.Errorf("full text has a forbidden parameter:\n%s", full.Text)
	}
}

func TestTokenEstimate(t *testing.T) {
	for bytes, want := range map[int]int{0: 0, 1: 1, 7: 2, 35: 10} {
		if got := estimateTokens(bytes); got != want {
			t.Errorf("estimateTokens(%d) = %d, want %d", bytes, got, want)
		}
	}
}

// BenchmarkTranslate measures the translation of 1,000 tools for each provider
// with an empty cache.
func BenchmarkTranslate(b *testing.B) {
	defs := many(b, 1000)
	for _, v := range variants {
		b.Run(v.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				tools := NewTools(defs, nil)
				for _, d := range defs {
					if _, err := tools.Declare(v.provider, []tool.Name{d.Name}, v.options); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkWarm measures a listing of 1,000 tools from the cache.
func BenchmarkWarm(b *testing.B) {
	tools := NewTools(many(b, 1000), nil)
	if _, err := tools.Declare(Anthropic, nil, Options{}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		l, err := tools.Declare(Anthropic, nil, Options{})
		if err != nil || len(l.Declarations) != 1000 {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(l.Body())))
	}
}

func BenchmarkRepair(b *testing.B) {
	d := many(b, 1)[0]
	args := json.RawMessage(`{"query":"x","limit":"10","filters":"[{\"field\":\"a\",\"op\":\"=\",\"value\":1}]"}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Repair(d, args); err != nil {
			b.Fatal(err)
		}
	}
}
