package provider

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"junctor/internal/tool"
)

// TestRecursiveSchemasAreBounded checks that definitions that refer to each
// other twice on each of 30 levels are not expanded without limit, neither in a
// provider's format nor in the signature.
func TestRecursiveSchemasAreBounded(t *testing.T) {
	const maxSize = 1 << 20
	for _, keyword := range []string{"anyOf", "allOf", "oneOf"} {
		var b strings.Builder
		b.WriteString(`{"name":"bomb","inputSchema":{"type":"object","properties":{"x":{"$ref":"#/$defs/l0"}},"$defs":{`)
		for i := range 30 {
			fmt.Fprintf(&b, `"l%d":{%q:[{"$ref":"#/$defs/l%d"},{"type":"object","properties":{"a":{"$ref":"#/$defs/l%d"},"b":{"$ref":"#/$defs/l%d"}}}]},`, i, keyword, i+1, i+1, i+1)
		}
		b.WriteString(`"l30":{"type":"string"}}}}`)
		d, err := tool.ParseDefinition("s", json.RawMessage(b.String()))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(d.Signature()); n > maxSize {
			t.Errorf("%s: a signature of %d bytes", keyword, n)
		}
		for _, name := range []string{Gemini, OpenAI, OpenAIResponses, Anthropic, Bedrock, Ollama} {
			listing, err := NewTools([]tool.Definition{d}, nil).Declare(name, []tool.Name{d.Name}, Options{})
			if err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(listing)
			if err != nil || len(raw) > maxSize {
				t.Errorf("%s, %s: %d bytes, %v", keyword, name, len(raw), err)
			}
		}
	}
}
