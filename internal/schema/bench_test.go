package schema

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const benchSchema = `{"type":"object","properties":{"path":{"type":"string","minLength":1},"lines":{"type":"integer","minimum":0},"mode":{"enum":["text","binary"]},"tags":{"anyOf":[{"type":"null"},{"type":"array","items":{"type":"string"}}]}},"required":["path"],"additionalProperties":false}`

const benchValue = `{"path":"/home/user/notes.txt","lines":200,"mode":"text","tags":["a","b"]}`

func BenchmarkCheck(b *testing.B) {
	s, err := Compile(json.RawMessage(benchSchema))
	if err != nil {
		b.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(benchValue))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("counting", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if found, err := check(b.Context(), s.compiled, v, len(benchValue)); len(found) > 0 || err != nil {
				b.Fatal(found, err)
			}
		}
	})
	b.Run("library", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := s.compiled.Validate(v); err != nil {
				b.Fatal(err)
			}
		}
	})
}
