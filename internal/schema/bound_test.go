//go:build !race

// These tests check large and costly schemas in one goroutine, where the race
// detector has nothing to find and makes them ten times as slow. make test runs
// them without it, in its suite quality.

package schema

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// ladder returns n levels of definitions, each of which applies the next one
// twice.
func ladder(keyword string, n int, leaf string) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/l0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"l%d":{%q:[{"$ref":"#/$defs/l%d"},{"$ref":"#/$defs/l%d"}]},`, i, keyword, i+1, i+1)
	}
	fmt.Fprintf(&b, `"l%d":%s}}`, n, leaf)
	return b.String()
}

// hostile returns schemas and values that must be checked in bounded time and
// memory.
func hostile() map[string]struct{ schema, value string } {
	long := strings.Repeat("k", 4000)
	nest := func(n int, open, inner, end string) string {
		return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
	}
	return map[string]struct{ schema, value string }{
		"anyOf ladder":         {ladder("anyOf", 30, `{"type":"string"}`), `{}`},
		"allOf ladder":         {ladder("allOf", 30, `{"type":"object"}`), `{}`},
		"allOf ladder, broken": {ladder("allOf", 30, `{"type":"string"}`), `{}`},
		"oneOf ladder":         {ladder("oneOf", 30, `{"type":"string"}`), `{}`},
		"not ladder":           {`{"not":` + ladderInline("not", 12) + `}`, `{}`},
		"if ladder":            {ladderIf(30), `{}`},
		"reference to itself":  {`{"$ref":"#"}`, `{}`},
		"self through allOf":   {`{"allOf":[{"$ref":"#"},{"$ref":"#"}]}`, `{}`},
		"self through not":     {`{"not":{"$ref":"#"}}`, `{}`},
		"self, unevaluated":    {`{"anyOf":[{"$ref":"#"},{"$ref":"#"}],"unevaluatedProperties":false}`, `{"a":1}`},
		"2 to the value's depth": {`{"anyOf":[{"properties":{"a":{"$ref":"#"}},"required":["x"]},{"properties":{"a":{"$ref":"#"}},"required":["y"]}]}`,
			nest(200, `{"a":`, `1`, `}`)},
		"2 to the depth, dynamic": {`{"$dynamicAnchor":"n","allOf":[{"properties":{"a":{"$dynamicRef":"#n"}}},{"properties":{"a":{"$dynamicRef":"#n"}}}]}`,
			nest(200, `{"a":`, `1`, `}`)},
		"many patterns":        {`{"patternProperties":{` + strings.TrimSuffix(repeatf(500, `"^(a|b|c)*%d$":{"type":"string"},`), ",") + `}}`, `{` + strings.TrimSuffix(repeatf(3000, `"aaaaaaaaaaaaaaaaaaaaaaaaa%d":1,`), ",") + `}`},
		"a slow pattern":       {`{"pattern":"(x+x+)+y(a?){500}"}`, `"` + strings.Repeat("x", 1<<20) + `"`},
		"a huge enum":          {`{"items":{"enum":[` + strings.TrimSuffix(repeatf(50_000, `"value%d",`), ",") + `]}}`, `[` + strings.TrimSuffix(strings.Repeat(`"value!",`, 5000), ",") + `]`},
		"enum of long strings": {ladder("anyOf", 20, `{"enum":["`+strings.Repeat("x", 100_000)+`"]}`), `{}`},
		"huge exponents":       {`{"items":{"minimum":0,"multipleOf":3}}`, `[` + strings.TrimSuffix(strings.Repeat("1e999999,", 100_000), ",") + `]`},
		"huge exponents, type": {`{"items":{"type":"integer"}}`, `[` + strings.TrimSuffix(strings.Repeat("1e99999999999999999999999,", 50_000), ",") + `]`},
		"a number of digits":   {`{"minimum":0,"type":"integer","enum":[1,2,3]}`, strings.Repeat("7", 1<<20)},
		"unique items":         {`{"uniqueItems":true,"contains":{"uniqueItems":true}}`, `[` + strings.TrimSuffix(repeatf(50_000, `[%d],`), ",") + `]`},
		"unique, nested":       {`{"uniqueItems":true,"items":{"$ref":"#"}}`, nest(200, `[`, `1`, `,2]`)},
		"long keys":            {`{"additionalProperties":{"type":"string"}}`, `{` + strings.TrimSuffix(repeatf(100, `"`+strings.Repeat("k", 10_000)+`%d":1,`), ",") + `}`},
		"long paths":           {nest(120, `{"properties":{"`+long+`":`, `{"properties":{`+strings.TrimSuffix(repeatf(30_000, `"p%d":{},`), ",")+`}}`, `}}`), `{}`},
		"large repetitions":    {`{"properties":{` + strings.TrimSuffix(repeatf(200, `"p%d":{"pattern":"(?:`+strings.Repeat("a", 3000)+`){1000}"},`), ",") + `}}`, `{}`},
		"numbers in schema":    {`{"properties":{` + strings.TrimSuffix(repeatf(20_000, `"p%d":{"minimum":1e999999},`), ",") + `}}`, `{}`},
		"wide":                 {`{"anyOf":[` + strings.TrimSuffix(repeatf(5000, `{"required":["a%d"]},`), ",") + `]}`, `{}`},
		"wide, many values":    {`{"items":{"anyOf":[` + strings.TrimSuffix(repeatf(5000, `{"required":["a%d"]},`), ",") + `]}}`, `[` + strings.TrimSuffix(strings.Repeat(`{},`, 5000), ",") + `]`},
		"all required":         {`{"items":{"required":[` + strings.TrimSuffix(repeatf(50_000, `"a%d",`), ",") + `]}}`, `[` + strings.TrimSuffix(strings.Repeat(`{},`, 5000), ",") + `]`},
		"property names":       {`{"propertyNames":{"$ref":"#/$defs/l0"},"$defs":` + ladder("anyOf", 25, `{"type":"null"}`)[len(`{"$ref":"#/$defs/l0","$defs":`):], `{"a":1}`},
		"dependent schemas":    {`{"dependentSchemas":{"a":{"$ref":"#"},"b":{"$ref":"#"}}}`, `{"a":1,"b":1}`},
	}
}

func ladderInline(keyword string, n int) string {
	if n == 0 {
		return `{"type":"string"}`
	}
	return fmt.Sprintf(`{%q:%s}`, keyword, ladderInline(keyword, n-1))
}

func ladderIf(n int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/l0","$defs":{`)
	for i := range n {
		fmt.Fprintf(&b, `"l%d":{"if":{"$ref":"#/$defs/l%d"},"then":{"$ref":"#/$defs/l%d"},"else":{"$ref":"#/$defs/l%d"}},`, i, i+1, i+1, i+1)
	}
	fmt.Fprintf(&b, `"l%d":{"type":"string"}}}`, n)
	return b.String()
}

func repeatf(n int, format string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.ReplaceAll(format, "%d", fmt.Sprint(i)))
	}
	return b.String()
}

// maxAllocated is the total that compiling and checking may allocate, including
// garbage.
const maxAllocated = 300 << 20

func TestHostileSchemasAreBounded(t *testing.T) {
	for name, tt := range hostile() {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			outcome := "refused by Compile"
			if s, err := Compile(json.RawMessage(tt.schema)); err == nil {
				found, err := s.Check(t.Context(), json.RawMessage(tt.value))
				outcome = fmt.Sprintf("%d violations, %v", len(found), err)
				if err != nil && !errors.Is(err, ErrTooCostly) {
					t.Errorf("error = %v", err)
				}
			} else if len(err.Error()) > 1_000 {
				t.Errorf("an error of %d bytes", len(err.Error()))
			}
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > maxAllocated {
				t.Errorf("%s, after %d MB were allocated", outcome, n>>20)
			} else {
				t.Logf("%s, %d MB allocated", outcome, n>>20)
			}
		})
	}
}

func TestExponentialSchemasAreTooCostly(t *testing.T) {
	for keyword, leaf := range map[string]string{"anyOf": `{"required":["a"]}`, "allOf": `{"type":"object"}`, "oneOf": `{"required":["a"]}`} {
		s, err := Compile(json.RawMessage(ladder(keyword, 30, leaf)))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Check(t.Context(), json.RawMessage(`{}`)); !errors.Is(err, ErrTooCostly) {
			t.Errorf("%s: error = %v, want ErrTooCostly", keyword, err)
		}
	}
}

func TestCheckEndsWithItsContext(t *testing.T) {
	s, err := Compile(json.RawMessage(ladder("allOf", 30, `{"type":"object"}`)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Check(ctx, json.RawMessage(`{}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v, want that of the context", err)
	}
}

// TestBoundGrowsWithValue: the bound grows with the value, so that large arguments
// to an ordinary schema pass.
func TestBoundGrowsWithValue(t *testing.T) {
	s, err := Compile(json.RawMessage(`{"type":"object","properties":{"rows":{"type":"array","items":{"type":"object","properties":{"id":{"type":"integer","minimum":0},"name":{"type":"string","maxLength":100,"pattern":"^[a-z]+$"},"tags":{"anyOf":[{"type":"null"},{"type":"array","items":{"enum":["a","b","c"]}}]}},"required":["id","name"],"additionalProperties":false}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	value := `{"rows":[` + strings.TrimSuffix(repeatf(100_000, `{"id":%d,"name":"alice","tags":["a","c"]},`), ",") + `]}`
	if found := mustCheck(t, s, value); len(found) != 0 {
		t.Errorf("violations: %v", found)
	}
}

// library checks the value with the library.
func library(raw, value string) (fits, ok bool) {
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(raw))
	if err != nil {
		return false, false
	}
	var in inspection
	if in.walk(doc, 0, 0, false) != nil {
		return false, false
	}
	c := jsonschema.NewCompiler()
	if in.tuples {
		c.DefaultDraft(jsonschema.Draft7)
	}
	c.UseLoader(noLoader{})
	if c.AddResource(resource, doc) != nil {
		return false, false
	}
	s, err := c.Compile(resource)
	if err != nil {
		return false, false
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(value))
	if err != nil {
		return false, false
	}
	return s.Validate(v) == nil, true
}

// TestAgreesWithTheLibrary compares the evaluator with that of the library on
// random schemas and values.
func TestAgreesWithTheLibrary(t *testing.T) {
	agreed, valid, loops := 0, 0, 0
	for seed := range uint64(2_000) {
		r := rand.New(rand.NewPCG(seed, 7))
		raw, value := mustJSON(randomSchema(r, 4)), mustJSON(randomValue(r, 3))
		if r.IntN(3) == 0 {
			raw = `{"$schema":"http://json-schema.org/draft-07/schema#",` + strings.TrimPrefix(raw, "{")
		}
		want, ok := library(raw, value)
		if !ok {
			continue
		}
		s, err := Compile(json.RawMessage(raw))
		if err != nil {
			t.Fatalf("seed %d: Compile(%s): %v", seed, raw, err)
		}
		found, err := s.Check(t.Context(), json.RawMessage(value))
		if errors.Is(err, ErrTooCostly) {
			loops++
			continue // a schema that refers to itself endlessly, which the library handles differently
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if got := len(found) == 0; got != want {
			t.Fatalf("seed %d: fits = %v (%v), the library says %v\nschema %s\nvalue %s", seed, got, found, want, raw, value)
		}
		agreed++
		if want {
			valid++
		}
	}
	t.Logf("agreed on %d pairs, %d of them valid; %d loops", agreed, valid, loops)
	if agreed < 1_500 || loops > agreed/50 || valid < agreed/10 || valid > agreed*9/10 {
		t.Error("the random pairs say little")
	}
}

func mustJSON(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return strings.TrimSpace(b.String())
}

var names = []string{"a", "b", "c", "ab"}

func randomValue(r *rand.Rand, depth int) any {
	n := 7
	if depth == 0 {
		n = 5
	}
	switch r.IntN(n) {
	case 0:
		return json.Number([]string{"0", "1", "2", "3", "1.0", "1e1", "10", "-1", "1.5", "0.3", "12345678901234567890"}[r.IntN(11)])
	case 1:
		return []string{"", "a", "b", "ab", "äö", "2020-01-01"}[r.IntN(6)]
	case 2:
		return r.IntN(2) == 0
	case 3:
		return nil
	case 4:
		return "b"
	case 5:
		list := make([]any, r.IntN(4))
		for i := range list {
			list[i] = randomValue(r, depth-1)
		}
		return list
	}
	m := map[string]any{}
	for range r.IntN(4) {
		m[names[r.IntN(len(names))]] = randomValue(r, depth-1)
	}
	return m
}

func randomSchema(r *rand.Rand, depth int) map[string]any {
	s := map[string]any{}
	if depth == 4 {
		s["$defs"] = map[string]any{"x": randomSchema(r, 2), "y": randomSchema(r, 2)}
	}
	sub := func() any {
		if r.IntN(8) == 0 {
			return r.IntN(4) != 0
		}
		return randomSchema(r, depth-1)
	}
	list := func() []any { return []any{sub(), sub()}[:1+r.IntN(2)] }
	number := func() json.Number { return json.Number([]string{"0", "1", "1.5", "2", "3"}[r.IntN(5)]) }
	for range 1 + r.IntN(3) {
		k := r.IntN(34)
		if depth == 0 {
			k = r.IntN(16)
		}
		switch k {
		case 0, 1:
			s["type"] = []string{"object", "array", "string", "number", "integer", "boolean", "null"}[r.IntN(7)]
		case 2:
			s["type"] = []any{"object", "integer", "string"}[r.IntN(3):]
		case 3:
			s["const"] = randomValue(r, 1)
		case 4:
			s["enum"] = []any{randomValue(r, 1), randomValue(r, 1), randomValue(r, 0)}
		case 5:
			s["minimum"] = number()
		case 6:
			s["exclusiveMaximum"] = number()
		case 7:
			s["multipleOf"] = json.Number([]string{"0.1", "1", "2", "1.5"}[r.IntN(4)])
		case 8:
			s["minLength"] = r.IntN(3)
		case 9:
			s["pattern"] = []string{"^a", "b$", ".", "^$"}[r.IntN(4)]
		case 10:
			s["required"] = names[:1+r.IntN(2)]
		case 11:
			s["minProperties"], s["maxProperties"] = r.IntN(2), 1+r.IntN(3)
		case 12:
			s["minItems"], s["maxItems"] = r.IntN(2), 1+r.IntN(3)
		case 13:
			s["uniqueItems"] = true
		case 14:
			s["format"] = []string{"date", "regex", "uri"}[r.IntN(3)]
		case 15:
			s["dependentRequired"] = map[string]any{"a": []string{"b"}}
		case 16, 17, 18:
			s["properties"] = map[string]any{"a": sub(), "b": sub()}
		case 19:
			s["patternProperties"] = map[string]any{"^a": sub(), "b": sub()}
		case 20:
			s["additionalProperties"] = sub()
		case 21:
			s["propertyNames"] = sub()
		case 22:
			s["dependentSchemas"] = map[string]any{"a": sub()}
		case 23:
			s["items"] = sub()
		case 24:
			s["prefixItems"] = list()
		case 25:
			s["contains"] = sub()
			if r.IntN(2) == 0 {
				s["minContains"], s["maxContains"] = r.IntN(2), 1+r.IntN(2)
			}
		case 26:
			s["allOf"] = list()
		case 27:
			s["anyOf"] = list()
		case 28:
			s["oneOf"] = list()
		case 29:
			s["not"] = sub()
		case 30:
			s["if"], s["then"], s["else"] = sub(), sub(), sub()
		case 31:
			s["$ref"] = "#/$defs/" + []string{"x", "y"}[r.IntN(2)]
		case 32:
			s["unevaluatedProperties"] = sub()
		case 33:
			s["unevaluatedItems"] = sub()
		}
	}
	return s
}

// FuzzBound checks that for any schema and value the check terminates and every
// violation can be shown.
func FuzzBound(f *testing.F) {
	for _, tt := range hostile() {
		if len(tt.schema)+len(tt.value) < 20_000 {
			f.Add(tt.schema, tt.value)
		}
	}
	f.Fuzz(func(t *testing.T, raw, value string) {
		s, err := Compile(json.RawMessage(raw))
		if err != nil {
			return
		}
		found, err := s.Check(t.Context(), json.RawMessage(value))
		if err != nil && !errors.Is(err, ErrTooCostly) {
			t.Fatalf("error = %v", err)
		}
		if len(found) > maxViolations {
			t.Fatalf("%d violations", len(found))
		}
		for _, v := range found {
			if v.Message == "" || len(v.Message) > maxMessage+10 {
				t.Errorf("message of %d bytes", len(v.Message))
			}
		}
	})
}
