package schema

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

func mustCheck(t testing.TB, s *Schema, value string) []Violation {
	t.Helper()
	found, err := s.Check(t.Context(), json.RawMessage(value))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestCheck(t *testing.T) {
	for name, tt := range map[string]struct {
		schema, value string
		want          []string // "path schema" of each violation
	}{
		"fits":               {`{"type":"object","properties":{"a":{"type":"string"}}}`, `{"a":"x"}`, nil},
		"wrong type":         {`{"type":"object","properties":{"a":{"type":"string"}}}`, `{"a":1}`, []string{"/a /properties/a/type"}},
		"two at once":        {`{"type":"object","properties":{"a":{"type":"string"}},"required":["b"]}`, `{"a":1}`, []string{" /required", "/a /properties/a/type"}},
		"additional":         {`{"type":"object","properties":{},"additionalProperties":false}`, `{"x":1}`, []string{" /additionalProperties"}},
		"draft-07 tuple":     {`{"type":"object","properties":{"a":{"items":[{"type":"string"}]}}}`, `{"a":[1]}`, []string{"/a/0 /properties/a/items/0/type"}},
		"draft-07 named":     {`{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"items":[{"type":"string"}],"additionalItems":false}}}`, `{"a":["x",2]}`, []string{"/a /properties/a/additionalItems"}},
		"2020-12 prefix":     {`{"$schema":"https://json-schema.org/draft/2020-12/schema","properties":{"a":{"prefixItems":[{"type":"string"}]}}}`, `{"a":[1]}`, []string{"/a/0 /properties/a/prefixItems/0/type"}},
		"20-digit integer":   {`{"properties":{"n":{"type":"integer","maximum":12345678901234567890}}}`, `{"n":12345678901234567891}`, []string{"/n /properties/n/maximum"}},
		"ref":                {`{"$defs":{"s":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/s"}}}`, `{"a":1}`, []string{"/a /$defs/s/type"}},
		"escaped pointer":    {`{"properties":{"a/b":{"type":"string"}}}`, `{"a/b":1}`, []string{"/a~1b /properties/a~1b/type"}},
		"alternatives":       {`{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`, `{"a":1}`, []string{"/a /properties/a/anyOf"}},
		"one of":             {`{"properties":{"a":{"oneOf":[{"type":"string"},{"required":["b"],"type":"object"}]}}}`, `{"a":{}}`, []string{"/a /properties/a/oneOf"}},
		"all of":             {`{"allOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`, []string{" /allOf/0/required", " /allOf/1/required"}},
		"enum called items":  {`{"properties":{"a":{"enum":[{"items":[1]}]}}}`, `{"a":2}`, []string{"/a /properties/a/enum"}},
		"not JSON":           {`{}`, `{`, []string{" "}},
		"more than one":      {`{}`, `{} {}`, []string{" "}},
		"boolean schema":     {`{"properties":{"a":false}}`, `{"a":1}`, []string{"/a /properties/a"}},
		"recursive is bound": {`{"properties":{"child":{"$ref":"#"}},"required":["id"]}`, `{"id":1,"child":{}}`, []string{"/child /required"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Compile(json.RawMessage(tt.schema))
			if err != nil {
				t.Fatalf("Compile: %v", err)
			}
			var got []string
			for _, v := range mustCheck(t, s, tt.value) {
				if v.Message == "" {
					t.Errorf("violation at %q has no message", v.Path)
				}
				got = append(got, v.Path+" "+v.Schema)
			}
			if fmt.Sprint(got) != fmt.Sprint(tt.want) {
				t.Errorf("Check(%s) = %q, want %q", tt.value, got, tt.want)
			}
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ schema, want string }{
		"not JSON":      {`{`, "not JSON"},
		"bad keyword":   {`{"type":7}`, "schema"},
		"undefined ref": {`{"$ref":"#/$defs/nowhere"}`, "nowhere"},
		"outside ref":   {`{"$ref":"https://example.com/s.json"}`, "points outside the schema"},
		"file ref":      {`{"$ref":"file:///etc/passwd"}`, "points outside the schema"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Compile(json.RawMessage(tt.schema))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Compile(%s) error = %v, want one that says %q", tt.schema, err, tt.want)
			}
		})
	}
}

func TestCheckIsBounded(t *testing.T) {
	s, err := Compile(json.RawMessage(`{"items":{"type":"string"}}`))
	if err != nil {
		t.Fatal(err)
	}
	value := "[" + strings.TrimSuffix(strings.Repeat("1,", 10_000), ",") + "]"
	if got := len(mustCheck(t, s, value)); got != maxViolations {
		t.Errorf("%d violations reported, want %d", got, maxViolations)
	}
	long, err := Compile(json.RawMessage(`{"anyOf":[{"items":{"type":"string"}},{"type":"null"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	vs := mustCheck(t, long, value)
	if len(vs) != 1 || len(vs[0].Message) > 600 {
		t.Errorf("alternatives reported as %d violations, the first of %d bytes", len(vs), len(vs[0].Message))
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(`{"type":"object"}`, `{"a":1}`)
	f.Add(`{"anyOf":[{"const":1},{"items":[{}]}]}`, `[1]`)
	f.Fuzz(func(t *testing.T, schema, value string) {
		if s, err := Compile(json.RawMessage(schema)); err == nil {
			_, _ = s.Check(t.Context(), json.RawMessage(value))
		}
	})
}

func TestSummary(t *testing.T) {
	for name, tt := range map[string]struct {
		in   []Violation
		want string
	}{
		"none":     {nil, ""},
		"root":     {[]Violation{{Message: "is no object"}}, "is no object"},
		"two":      {[]Violation{{Path: "/a", Message: "is missing"}, {Path: "/b/0", Message: "is text"}}, "at /a: is missing; at /b/0: is text"},
		"and more": {slices.Repeat([]Violation{{Message: "x"}}, 7), "x; x; x; x; x; and 2 more"},
	} {
		if got := Summary(tt.in); got != tt.want {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
	}
}
