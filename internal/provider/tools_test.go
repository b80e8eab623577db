package provider

import (
	"encoding/json"
	"testing"

	"junctor/internal/tool"
)

func def(t testing.TB, server, name, schema string) tool.Definition {
	t.Helper()
	raw, err := json.Marshal(map[string]any{"name": name, "description": "Does " + name + ".", "inputSchema": json.RawMessage(schema)})
	if err != nil {
		t.Fatal(err)
	}
	d, err := tool.ParseDefinition(server, raw)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestSmoke(t *testing.T) {
	defs := []tool.Definition{
		def(t, "fs", "read.file", `{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer","exclusiveMinimum":0},"mode":{"enum":[1,2,null]},"filter[x]":{"type":["string","null"]},"tree":{"$ref":"#/$defs/T"}},"required":["path"],"$defs":{"T":{"type":"object","properties":{"kids":{"type":"array","items":{"$ref":"#/$defs/T"}}}}}}`),
	}
	tools := NewTools(defs, nil)
	for _, p := range Providers() {
		l, err := tools.Declare(p, nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s", l.Body())
	}
	l, _ := tools.Declare(Gemini, nil, Options{Schema: OpenAPISchema})
	t.Logf("%s", l.Body())
	l, _ = tools.Declare(OpenAI, nil, Options{Strict: true})
	t.Logf("%s", l.Body())
	n, args, err := tools.Restore(l.Declarations[0].Name, json.RawMessage(`"{\"path\":\"a\",\"n\":\"3\",\"mode\":\"1\",\"filter_x__5cd39e5d\":\"f\"}"`))
	t.Logf("%v %s %v", n, args, err)
}
