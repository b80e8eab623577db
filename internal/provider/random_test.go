//go:build !race

// These tests check hundreds of random schemas on one goroutine. The race
// detector would find nothing, but make them ten times slower. make test runs
// them without the detector, in the suite quality.

package provider

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"junctor/internal/tool"
)

// schemas generates random schemas from all keywords, in sensible and other
// combinations.
type schemas struct{ sampler }

func (s schemas) pick(list ...any) any { return list[s.IntN(len(list))] }

func (s schemas) name() string { return string(s.pick("a", "b", "c", "d[0]", "e.f", "g h").(string)) }

func (s schemas) props(depth int) *object {
	o := newObject()
	for range s.IntN(4) {
		o.set(s.name(), s.schema(depth+1))
	}
	return o
}

func (s schemas) list(depth int) []any {
	var list []any
	for range 1 + s.IntN(3) {
		list = append(list, s.schema(depth+1))
	}
	return list
}

func (s schemas) number() json.Number { return json.Number(fmt.Sprint(s.IntN(7) - 2)) }

func (s schemas) schema(depth int) any {
	if s.IntN(25) == 0 {
		return s.IntN(4) > 0
	}
	o := newObject()
	if s.IntN(5) > 0 {
		o.set("type", s.pick("string", "integer", "number", "boolean", "object", "array", "null",
			[]any{"string", "null"}, []any{"integer", "string"}, []any{"object", "array", "null"}, "int", "unknown"))
	}
	for range s.IntN(3) {
		switch s.IntN(24) {
		case 0:
			o.set("enum", []any{s.pick("x", "", json.Number("1"), nil, true, obj("k", "v")), s.pick("y", json.Number("2.5"), []any{json.Number("3")})})
		case 1:
			o.set("const", s.pick("x", json.Number("1"), nil, false))
		case 2:
			o.set("minimum", s.number())
		case 3:
			o.set("exclusiveMaximum", s.number())
		case 4:
			o.set("minLength", s.number())
		case 5:
			o.set("maxItems", s.number())
		case 6:
			o.set("pattern", s.pick("^a", "(?=x)", "["))
		case 7:
			o.set("format", s.pick("uri", "date-time", "int32"))
		case 8:
			o.set("uniqueItems", true)
		case 9:
			o.set("required", []any{s.name(), s.name()})
		case 10:
			o.set("additionalProperties", s.pick(true, false, obj("type", "string")))
		case 11:
			o.set("default", s.pick("x", nil, json.Number("1"), obj("$ref", "#")))
		case 12:
			o.set("description", "Some words. And more.")
		case 13:
			o.set("$ref", s.pick("#", "#/$defs/A", "#/$defs/B", "#/properties/a", "#/nowhere"))
		case 14:
			o.set("minProperties", s.number())
		}
		if depth > 4 {
			continue
		}
		switch s.IntN(16) {
		case 0, 1, 2:
			o.set("properties", s.props(depth))
		case 3, 4:
			o.set("items", s.schema(depth+1))
		case 5:
			o.set("prefixItems", s.list(depth))
		case 6, 7:
			o.set("anyOf", s.list(depth))
		case 8:
			o.set("oneOf", s.list(depth))
		case 9, 10:
			o.set("allOf", s.list(depth))
		case 11:
			o.set("not", s.schema(depth+1))
		case 12:
			o.set("if", s.schema(depth+1))
			o.set("then", s.schema(depth+1))
		case 13:
			o.set("patternProperties", obj("^a", s.schema(depth+1)))
		case 14:
			o.set("dependentSchemas", obj("a", s.schema(depth+1)))
		case 15:
			o.set("contains", s.schema(depth+1))
		}
	}
	return o
}

// TestRandomSchemas checks that the declaration of any schema is legal, and
// that the round trip succeeds if nothing was lost.
func TestRandomSchemas(t *testing.T) {
	checked := 0
	for seed := range uint64(1500 / every(10)) {
		s := schemas{sampler{rand.New(rand.NewPCG(seed, 7))}}
		root := newObject()
		root.set("type", "object")
		root.set("properties", s.props(0))
		if more, ok := s.schema(0).(*object); ok {
			for _, k := range more.keys {
				if k != "type" {
					root.set(k, more.vals[k])
				}
			}
		}
		root.set("$defs", obj("A", s.schema(2), "B", s.schema(2)))
		raw := encode(root)
		d := tool.Definition{Name: tool.Name{Server: "s", Tool: "t"}, InputSchema: raw}
		tools := NewTools([]tool.Definition{d}, nil)
		own := original(raw)
		for _, v := range variants {
			l, err := tools.Declare(v.provider, nil, v.options)
			if err != nil {
				t.Fatal(err)
			}
			for _, decl := range l.Declarations {
				if err := checkDeclaration(v.name, decl); err != nil {
					t.Errorf("seed %d, %s: %v\nfrom %s", seed, v.name, err, raw)
				}
				if v.provider == Gemini {
					if err := checkGemini(decl); err != nil {
						t.Errorf("seed %d, %s: %v", seed, v.name, err)
					}
				}
				if own != nil && len(l.Warnings) == 0 {
					if roundTrip(t, fmt.Sprintf("seed %d, %s, from %s", seed, v.name, raw), tools, decl, own) > 0 {
						checked++
					}
				}
			}
			if t.Failed() {
				return // one failure is enough
			}
		}
	}
	t.Logf("%d round trips", checked)
}
