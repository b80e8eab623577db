package provider

import (
	"encoding/json"
	"testing"

	"junctor/internal/tool"
)

// maxDeclared is the maximum size of a listing of one tool, whatever its
// schema.
const maxDeclared = 16 << 20

// FuzzLower checks that any JSON Schema becomes one that the provider accepts.
func FuzzLower(f *testing.F) {
	for _, d := range corpus(f) {
		f.Add([]byte(d.InputSchema))
	}
	f.Fuzz(func(t *testing.T, schema []byte) {
		d := tool.Definition{Name: tool.Name{Server: "s", Tool: "t"}, InputSchema: schema}
		tools := NewTools([]tool.Definition{d}, nil)
		for _, v := range variants {
			l, err := tools.Declare(v.provider, nil, v.options)
			if err != nil {
				t.Fatal(err)
			}
			body := l.Body()
			if !json.Valid(body) {
				t.Errorf("%s: not JSON: %s", v.name, body)
			}
			if len(body) > maxDeclared {
				t.Errorf("%s: %d bytes out of %d", v.name, len(body), len(schema))
			}
			for _, decl := range l.Declarations {
				if err := checkDeclaration(v.name, decl); err != nil {
					t.Errorf("%s: %v\n%s", v.name, err, decl.JSON)
				}
				if v.provider == Gemini {
					if err := checkGemini(decl); err != nil {
						t.Errorf("%s: the API's message refuses it: %v\n%s", v.name, err, decl.JSON)
					}
				}
			}
		}
		if _, err := tools.Context(OpenAI, []ContextGroup{{Server: "s", Tools: []ContextTool{{Name: d.Name}}}}, false); err != nil {
			t.Error(err)
		}
	})
}

// FuzzReadCall checks that ReadCall does not panic, and that a result can be
// formatted for every call that it accepts.
func FuzzReadCall(f *testing.F) {
	for _, c := range callForms {
		f.Add(c.provider, c.call)
		f.Add("", c.call)
	}
	f.Fuzz(func(t *testing.T, provider, call string) {
		name, c, err := ReadCall(provider, json.RawMessage(call))
		if err != nil {
			return
		}
		raw, err := FormatResult(name, c, ReadResult(tool.Result{Raw: json.RawMessage(call)}))
		if err != nil || !json.Valid(raw) {
			t.Errorf("FormatResult(%q) = %s, %v", name, raw, err)
		}
	})
}
