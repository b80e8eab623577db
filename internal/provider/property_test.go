//go:build !race

// These tests check thousands of schemas and values on one goroutine. The race
// detector would find nothing, but make them ten times slower. make test runs
// them without the detector, in the suite quality.

package provider

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"junctor/internal/tool"
)

// original compiles a tool's own schema under the draft in which it is written.
// Formats are omitted: validators of older drafts enforce them, but in JSON
// Schema they are annotations, and models get them in the description.
func original(raw json.RawMessage) *jsonschema.Schema {
	v, err := parseJSON(raw)
	if err != nil {
		return nil
	}
	raw = encode(plain(v))
	for _, draft := range []*jsonschema.Draft{jsonschema.Draft2020, jsonschema.Draft7, jsonschema.Draft4} {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			return nil
		}
		c := jsonschema.NewCompiler()
		c.DefaultDraft(draft)
		if c.AddResource("mem:///o.json", doc) != nil {
			return nil
		}
		if s, err := c.Compile("mem:///o.json"); err == nil {
			return s
		}
	}
	return nil
}

func validates(s *jsonschema.Schema, args json.RawMessage) error {
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(args))
	if err != nil {
		return err
	}
	return s.Validate(v)
}

// sampler generates values that match a declared schema, like a model.
type sampler struct{ *rand.Rand }

func (s sampler) value(schema any, depth int) any {
	o, _ := schema.(*object)
	if depth > 24 || o == nil {
		return "deep"
	}
	if v, _ := o.get("nullable"); v == true && s.IntN(4) == 0 {
		return nil
	}
	if enum, ok := o.vals["enum"].([]any); ok && len(enum) > 0 {
		return enum[s.IntN(len(enum))]
	}
	v := s.typed(o, depth)
	for _, k := range []string{"anyOf", "oneOf"} {
		if list, ok := o.vals[k].([]any); ok {
			v = overlay(v, s.value(list[s.IntN(len(list))], depth+1), o.vals["type"] == nil)
		}
	}
	if list, ok := o.vals["allOf"].([]any); ok {
		for _, sub := range list {
			v = overlay(v, s.value(sub, depth+1), o.vals["type"] == nil)
		}
	}
	return v
}

// overlay combines the values for two parts of a schema.
func overlay(a, b any, replace bool) any {
	ao, okA := a.(*object)
	bo, okB := b.(*object)
	if okA && okB {
		for _, k := range bo.keys {
			ao.set(k, bo.vals[k])
		}
		return ao
	}
	if replace {
		return b
	}
	return a
}

func (s sampler) typed(o *object, depth int) any {
	var names []string
	switch t := o.vals["type"].(type) {
	case string:
		names = []string{strings.ToLower(t)}
	case []any:
		names = stringsIn(t)
	}
	if len(names) == 0 {
		names = []string{"string", "number", "boolean"}
		if _, ok := o.get("properties"); ok {
			names = []string{"object"}
		}
	}
	if depth > 12 && slices.Contains(names, "null") {
		return nil
	}
	switch names[s.IntN(len(names))] {
	case "null":
		return nil
	case "boolean":
		return s.IntN(2) == 0
	case "integer":
		low, high := s.bounds(o)
		return json.Number(fmt.Sprintf("%.0f", math.Ceil(low)+float64(s.Int64N(int64(min(high-low, 1e6))+1))))
	case "number":
		low, high := s.bounds(o)
		return json.Number(fmt.Sprintf("%.3f", low+s.Float64()*min(high-low, 1e6)))
	case "array":
		return s.array(o, depth)
	case "object":
		return s.object(o, depth)
	}
	if d := o.text("description"); strings.Contains(d, "a JSON object written as text") {
		return string(encode(obj("k", json.Number("1"))))
	}
	n := s.count(o, "minLength", "maxLength")
	return strings.Repeat(string(rune('a'+s.IntN(26))), n)
}

func (s sampler) bounds(o *object) (low, high float64) {
	low, high = -50, 50
	get := func(k string, into *float64, shift float64) {
		if n, ok := o.vals[k].(json.Number); ok {
			f, _ := n.Float64()
			*into = f + shift
		}
	}
	get("minimum", &low, 0)
	get("exclusiveMinimum", &low, 1)
	high = low + 100
	get("maximum", &high, 0)
	get("exclusiveMaximum", &high, -1)
	if low > high {
		low = high
	}
	return low, high
}

func (s sampler) count(o *object, low, high string) int {
	a, b := 0, 3
	if n, ok := o.vals[low].(json.Number); ok {
		f, _ := n.Float64()
		a = int(f)
		b = a + 2
	}
	if n, ok := o.vals[high].(json.Number); ok {
		f, _ := n.Float64()
		b = min(b, int(f))
	}
	return a + s.IntN(max(b-a, 0)+1)
}

func (s sampler) array(o *object, depth int) any {
	list := []any{}
	prefix, _ := o.vals["prefixItems"].([]any)
	for i := range s.count(o, "minItems", "maxItems") {
		if i < len(prefix) {
			list = append(list, s.value(prefix[i], depth+1))
		} else {
			list = append(list, s.value(o.vals["items"], depth+1))
		}
	}
	return list
}

func (s sampler) object(o *object, depth int) any {
	out := newObject()
	props, _ := o.vals["properties"].(*object)
	required := stringsIn(o.vals["required"])
	if props != nil {
		for _, k := range props.keys {
			if slices.Contains(required, k) || depth < 10 && s.IntN(2) == 0 {
				out.set(k, s.value(props.vals[k], depth+1))
			}
		}
	}
	if extra, ok := o.vals["additionalProperties"].(*object); ok {
		for i := range s.IntN(3) {
			out.set(fmt.Sprintf("X-%d", i), s.value(extra, depth+1))
		}
	}
	return out
}

// plain converts the OpenAPI dialect to JSON Schema, so that all variants can
// be checked with one validator.
func plain(v any) any {
	switch v := v.(type) {
	case *object:
		out := newObject()
		for _, k := range v.keys {
			switch k {
			case "nullable", "format", "propertyOrdering":
			case "type":
				if t, ok := v.vals[k].(string); ok {
					out.set(k, strings.ToLower(t))
				} else {
					out.set(k, v.vals[k])
				}
			case "properties":
				props := newObject()
				for _, p := range v.vals[k].(*object).keys {
					props.set(p, plain(v.vals[k].(*object).vals[p]))
				}
				out.set(k, props)
			case "enum", "const", "default", "examples", "required":
				out.set(k, v.vals[k])
			default:
				out.set(k, plain(v.vals[k]))
			}
		}
		if v.vals["nullable"] == true {
			return obj("anyOf", []any{out, obj("type", "null")})
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = plain(v[i])
		}
		return out
	}
	return v
}

// TestRoundTrip checks that values that match the declaration match the tool's
// own schema after repair, unless a warning reports a loss.
func TestRoundTrip(t *testing.T) {
	checked := 0
	for name, d := range corpus(t) {
		own := original(d.InputSchema)
		if own == nil {
			continue // no validator can check the call either
		}
		tools := NewTools([]tool.Definition{d}, nil)
		for _, v := range variants {
			l, err := tools.Declare(v.provider, nil, v.options)
			if err != nil {
				t.Fatal(err)
			}
			if len(l.Declarations) == 0 || len(l.Warnings) > 0 {
				continue
			}
			n := roundTrip(t, name+"/"+v.name, tools, l.Declarations[0], own)
			if n > 0 {
				checked++
			}
		}
	}
	if checked < 300 {
		t.Errorf("only %d declarations could be checked", checked)
	}
}

func roundTrip(t *testing.T, name string, tools *Tools, d Declaration, own *jsonschema.Schema) int {
	schema, err := parseJSON(d.Schema)
	if err != nil {
		t.Fatal(err)
	}
	declared, err := validator(encode(plain(schema)))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	s := sampler{rand.New(rand.NewPCG(1, 2))}
	n := 0
	for range 40 {
		args := encode(s.value(schema, 0))
		if validates(declared, args) != nil {
			continue
		}
		n++
		called, repaired, err := tools.Restore(d.Name, args)
		if err != nil || called != d.Tool {
			t.Errorf("%s: Restore(%s) = %v, %v", name, args, called, err)
			return n
		}
		if err := validates(own, repaired); err != nil {
			t.Errorf("%s: %s fits the declaration, but %s does not fit the tool: %v\n%s", name, args, repaired, err, d.Schema)
			return n
		}
	}
	return n
}

// TestRoundTripReal does the same for the tools of public servers.
func TestRoundTripReal(t *testing.T) {
	defs := append(npmTools(t), realTools(t)...)
	tools := NewTools(defs, nil)
	checked := 0
	for i, def := range defs {
		if i >= 100 && i%every(7) != 0 {
			continue
		}
		own := original(def.InputSchema)
		v := variants[i%len(variants)] // each tool in one form: all forms get hundreds
		l, err := tools.Declare(v.provider, []tool.Name{def.Name}, v.options)
		if err != nil {
			t.Fatal(err)
		}
		if own == nil || len(l.Warnings) > 0 || len(l.Declarations) == 0 {
			continue
		}
		if roundTrip(t, def.Name.String()+"/"+v.name, tools, l.Declarations[0], own) > 0 {
			checked++
		}
	}
	t.Logf("%d of %d tools checked", checked, len(defs))
}

// TestRepairKeepsValidArguments checks that valid arguments are not changed.
func TestRepairKeepsValidArguments(t *testing.T) {
	checked := 0
	for name, d := range corpus(t) {
		own := original(d.InputSchema)
		if own == nil || strings.HasPrefix(name, "keys-") {
			continue
		}
		low, err := lower(d.InputSchema, everything, false)
		if err != nil {
			continue
		}
		schema, err := parseJSON(low.schema)
		if err != nil {
			t.Fatal(err)
		}
		s := sampler{rand.New(rand.NewPCG(3, 4))}
		for range 100 {
			args := encode(s.value(schema, 0))
			if validates(own, args) != nil {
				continue
			}
			checked++
			repaired, err := Repair(d, args)
			if err != nil || !bytes.Equal(args, repaired) {
				t.Errorf("%s: Repair(%s) = %s, %v", name, args, repaired, err)
				break
			}
		}
	}
	if checked < 2000 {
		t.Errorf("only %d values checked", checked)
	}
}

// TestRealToolsAreLegal is TestCorpusIsLegal for the tools of public servers.
func TestRealToolsAreLegal(t *testing.T) {
	defs := realTools(t)
	t.Logf("%d tools", len(defs))
	checkAll(t, defs, every(11))
}
