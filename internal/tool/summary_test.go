package tool

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestSummary(t *testing.T) {
	for name, tt := range map[string]struct {
		def  Definition
		max  int
		want string
	}{
		"first sentence":      {Definition{Description: "Create an issue. Needs write access."}, 100, "Create an issue"},
		"question":            {Definition{Description: "Which one? Tells it."}, 100, "Which one?"},
		"abbreviation":        {Definition{Description: "Read a file (e.g. README) from v1.2 etc. Git too."}, 100, "Read a file (e.g. README) from v1.2 etc. Git too"},
		"abbreviated capital": {Definition{Description: "Find users, e.g. Ann. Slow."}, 100, "Find users, e.g. Ann"},
		"lines":               {Definition{Description: "  Read\n a\tfile  \n\nMore about it"}, 100, "Read a file"},
		"markdown heading":    {Definition{Description: "## Search\n\nFinds things."}, 100, "Search"},
		"hidden characters":   {Definition{Description: "Re\u200bad\u202e a\x00 file\U000E0041\U000E0042."}, 100, "Read a file"},
		"broken encoding":     {Definition{Description: "Read\xff it"}, 100, "Read it"},
		"cut at a word":       {Definition{Description: "Create a very long issue in a repository"}, 20, "Create a very long…"},
		"cut in a word":       {Definition{Description: "Aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}, 10, "Aaaaaaaaa…"},
		"cut between words":   {Definition{Description: "abcd efgh ijkl"}, 10, "abcd efgh…"},
		"no limit":            {Definition{Description: "Create a thing"}, 0, "Create a thing"},
		"title":               {Definition{Title: "Create issue"}, 100, "Create issue"},
		"name":                {Definition{Name: Name{"github", "create_issue/v2.x-y"}}, 100, "create issue v2 x y"},
		"nothing":             {Definition{}, 100, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tt.def.Summary(tt.max); got != tt.want {
				t.Errorf("Summary(%d) = %q, want %q", tt.max, got, tt.want)
			}
		})
	}
}

func FuzzSummary(f *testing.F) {
	f.Add("Create an issue. Then more.", "title", "name", 20)
	f.Add("\u200b\xff", "", "a_b", 2)
	f.Fuzz(func(t *testing.T, description, title, name string, max int) {
		max %= 500
		got := Definition{Description: description, Title: title, Name: Name{"s", name}}.Summary(max)
		if !utf8.ValidString(got) {
			t.Errorf("%q is not valid UTF-8", got)
		}
		if max >= 2 && utf8.RuneCountInString(got) > max {
			t.Errorf("%q is longer than %d", got, max)
		}
		if strings.ContainsFunc(got, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) {
			t.Errorf("%q has characters that nobody sees", got)
		}
	})
}

func TestSignature(t *testing.T) {
	for name, tt := range map[string]struct{ schema, want string }{
		"order and marks": {`{"type":"object","properties":{
			"labels":{"type":"array","items":{"type":"string"}},"repo":{"type":"string"},"title":{"type":"string"}},
			"required":["title","repo"]}`, "repo*, title*, labels?: string[]"},
		"empty":             {`{"type":"object"}`, ""},
		"not an object":     {`[1,2`, ""},
		"simple types":      {`{"properties":{"a":{"type":"integer"},"b":{"type":"boolean"},"c":{"type":"number"},"d":{}}}`, "a?: integer, b?: boolean, c?: number, d?: any"},
		"enum":              {`{"properties":{"state":{"type":"string","enum":["open","closed"]}}}`, `state?: "open"|"closed"`},
		"long enum":         {`{"properties":{"s":{"type":"string","enum":["1","2","3","4","5","6","7"]}}}`, "s?"},
		"wide enum":         {`{"properties":{"s":{"type":"string","enum":["` + strings.Repeat("x", 80) + `"]}}}`, "s?"},
		"const":             {`{"properties":{"kind":{"const":"issue"}}}`, `kind?: "issue"`},
		"nullable":          {`{"properties":{"a":{"type":["string","null"]},"b":{"type":["string","integer"]},"c":{"anyOf":[{"type":"integer"},{"type":"null"}]}}}`, "a?, b?: string|integer, c?: integer"},
		"only null":         {`{"properties":{"a":{"oneOf":[{"type":"null"}]}}}`, "a?: any"},
		"union array":       {`{"properties":{"a":{"type":"array","items":{"oneOf":[{"type":"string"},{"type":"number"}]}}}}`, "a?: (string|number)[]"},
		"array of what":     {`{"properties":{"a":{"type":"array"},"b":{"items":{"type":"string"}}}}`, "a?: any[], b?: string[]"},
		"nested object":     {`{"properties":{"at":{"type":"object","properties":{"x":{"type":"number"},"deep":{"properties":{"z":{}}}},"required":["x"]}},"required":["at"]}`, "at*: {x*: number, deep?: object}"},
		"list of objects":   {`{"properties":{"edits":{"type":"array","items":{"type":"object","properties":{"old":{"type":"string"},"at":{"type":"object","properties":{"x":{}}}},"required":["old"]}}},"required":["edits"]}`, "edits*: {old*, at?: object}[]"},
		"choice of objects": {`{"properties":{"o":{"anyOf":[{"type":"object","properties":{"x":{}}},{"type":"string"}]}}}`, "o?: object|string"},
		"optional object":   {`{"$defs":{"P":{"type":"object","properties":{"x":{"type":"number"}}}},"properties":{"p":{"anyOf":[{"$ref":"#/$defs/P"},{"type":"null"}]}}}`, "p?: {x?: number}"},
		"free object":       {`{"properties":{"o":{"type":"object"}}}`, "o?: object"},
		"reference":         {`{"properties":{"p":{"$ref":"#/$defs/P"},"q":{"$ref":"#/definitions/Q"},"r":{"$ref":"http://x"}},"$defs":{"P":{"type":"integer"}},"definitions":{"Q":{"$ref":"#/$defs/P"}}}`, "p?: integer, q?: integer, r?: any"},
		"self reference":    {`{"properties":{"n":{"$ref":"#/$defs/N"}},"$defs":{"N":{"anyOf":[{"$ref":"#/$defs/N"},{"type":"array","items":{"$ref":"#/$defs/N"}}]}}}`, ""},
		"odd members":       {`{"properties":{"a":{"type":5,"enum":3,"anyOf":{}},"b":7},"required":"a","$defs":[]}`, "a?: any, b?: any"},
		"unknown type":      {`{"properties":{"a":{"type":"file"}}}`, "a?: any"},
	} {
		t.Run(name, func(t *testing.T) {
			got := Definition{InputSchema: []byte(tt.schema)}.Signature()
			if tt.want == "" && name == "self reference" {
				if !strings.HasPrefix(got, "n?: ") || len(got) > 2000 {
					t.Errorf("Signature() = %q", got)
				}
				return
			}
			if got != tt.want {
				t.Errorf("Signature() = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestSignatureIsBounded(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"properties":{`)
	for i := range 1000 {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(`"parameter_` + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + strings.Repeat("y", i/26) + `":{"type":"integer"}`)
	}
	b.WriteString(`},"required":["parameter_a"]}`)
	got := Definition{InputSchema: []byte(b.String())}.Signature()
	if len(got) > maxSignature+200 || !strings.HasPrefix(got, "parameter_a*: integer, ") || !strings.Contains(got, "… +9") {
		t.Errorf("Signature() of 1000 parameters = %q", got)
	}
}

func FuzzSignature(f *testing.F) {
	f.Add([]byte(`{"properties":{"a":{"type":"array","items":{"$ref":"#/$defs/X"}}},"required":["a"],"$defs":{"X":{"anyOf":[{"$ref":"#/$defs/X"}]}}}`))
	f.Fuzz(func(t *testing.T, schema []byte) {
		got := Definition{InputSchema: schema}.Signature()
		if len(got) > 20*maxSignature {
			t.Errorf("signature of %d bytes", len(got))
		}
		if strings.ContainsFunc(got, unicode.IsControl) {
			t.Errorf("%q has control characters", got)
		}
	})
}

func TestTypeName(t *testing.T) {
	root := []byte(`{"$defs":{"P":{"type":"integer"}}}`)
	if got := TypeName([]byte(`{"type":"array","items":{"$ref":"#/$defs/P"}}`), root); got != "integer[]" {
		t.Errorf("TypeName = %q", got)
	}
	if got := OneLine(" a\n b\u200b\n\nc"); got != "a b" {
		t.Errorf("OneLine = %q", got)
	}
}
