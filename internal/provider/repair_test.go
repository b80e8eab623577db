package provider

import (
	"encoding/json"
	"strings"
	"testing"

	"junctor/internal/tool"
)

// def makes a tool definition.
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

func TestRepair(t *testing.T) {
	for name, tt := range map[string]struct {
		schema, in, want string
		kind             tool.Kind
	}{
		"fits already":             {`{"properties":{"a":{"type":"string"}}}`, `{ "a" : "x" }`, `{ "a" : "x" }`, ""},
		"big integers keep digits": {`{"properties":{"a":{"type":"integer"},"b":{"type":"integer"}}}`, `{"a":12345678901234567890,"b":"7"}`, `{"a":12345678901234567890,"b":7}`, ""},
		"nothing":                  {`{}`, ``, `{}`, ""},
		"null":                     {`{}`, `null`, `{}`, ""},
		"empty string":             {`{}`, `""`, `{}`, ""},
		"string":                   {`{"properties":{"a":{"type":"integer"}}}`, `"{\"a\":1}"`, `{"a":1}`, ""},
		"string in a string":       {`{}`, `"\"{\\\"a\\\":1}\""`, `{"a":1}`, ""},
		"string too deep":          {`{}`, `"\"\\\"\\\\\\\"{}\\\\\\\"\\\"\""`, ``, tool.InvalidArguments},
		"not JSON":                 {`{}`, `{"a":`, ``, tool.InvalidArguments},
		"text":                     {`{}`, `"hello"`, ``, tool.InvalidArguments},
		"array":                    {`{}`, `[1]`, ``, tool.InvalidArguments},
		"number":                   {`{}`, `5`, ``, tool.InvalidArguments},
		"two values":               {`{}`, `{} {}`, ``, tool.InvalidArguments},

		"number as text":            {`{"properties":{"n":{"type":"number"}}}`, `{"n":" 1.5 "}`, `{"n":1.5}`, ""},
		"integer as text":           {`{"properties":{"n":{"type":"integer"}}}`, `{"n":"42"}`, `{"n":42}`, ""},
		"integer as decimal":        {`{"properties":{"n":{"type":"integer"}}}`, `{"n":3.0}`, `{"n":3}`, ""},
		"integer with exponent":     {`{"properties":{"n":{"type":"integer"}}}`, `{"n":1e3}`, `{"n":1000}`, ""},
		"integer from 3.0 as text":  {`{"properties":{"n":{"type":"integer"}}}`, `{"n":"3.0"}`, `{"n":3}`, ""},
		"fraction stays":            {`{"properties":{"n":{"type":"integer"}}}`, `{"n":1.5}`, `{"n":1.5}`, ""},
		"text that is no number":    {`{"properties":{"n":{"type":"integer"}}}`, `{"n":"many"}`, `{"n":"many"}`, ""},
		"boolean as text":           {`{"properties":{"b":{"type":"boolean"},"c":{"type":"boolean"}}}`, `{"b":"True","c":"false"}`, `{"b":true,"c":false}`, ""},
		"boolean as number":         {`{"properties":{"b":{"type":"boolean"}}}`, `{"b":1}`, `{"b":true}`, ""},
		"number where text":         {`{"properties":{"s":{"type":"string"}}}`, `{"s":12345678901234567890}`, `{"s":"12345678901234567890"}`, ""},
		"boolean where text":        {`{"properties":{"s":{"type":["string","null"]}}}`, `{"s":true}`, `{"s":"true"}`, ""},
		"object where text":         {`{"properties":{"s":{"type":"string"}}}`, `{"s":{"a":[1]}}`, `{"s":"{\"a\":[1]}"}`, ""},
		"array where text":          {`{"properties":{"s":{"type":"string"}}}`, `{"s":[1,2]}`, `{"s":"[1,2]"}`, ""},
		"text stays where it may":   {`{"properties":{"s":{"type":["string","integer"]}}}`, `{"s":"5"}`, `{"s":"5"}`, ""},
		"text stays where any may":  {`{"properties":{"s":{}}}`, `{"s":"{\"a\":1}"}`, `{"s":"{\"a\":1}"}`, ""},
		"null as text":              {`{"properties":{"n":{"type":["integer","null"]}},"required":["n"]}`, `{"n":"null"}`, `{"n":null}`, ""},
		"object as text":            {`{"properties":{"o":{"type":"object","properties":{"n":{"type":"integer"}}}}}`, `{"o":"{\"n\":\"5\"}"}`, `{"o":{"n":5}}`, ""},
		"array as text":             {`{"properties":{"l":{"type":"array","items":{"type":"integer"}}}}`, `{"l":"[1,\"2\"]"}`, `{"l":[1,2]}`, ""},
		"items of an array":         {`{"properties":{"l":{"type":"array","items":{"type":"object","properties":{"n":{"type":"number"}}}}}}`, `{"l":[{"n":"1"},"{\"n\":2}"]}`, `{"l":[{"n":1},{"n":2}]}`, ""},
		"tuple":                     {`{"properties":{"l":{"type":"array","prefixItems":[{"type":"string"},{"type":"integer"}]}}}`, `{"l":["1","2","3"]}`, `{"l":["1",2,"3"]}`, ""},
		"map values":                {`{"properties":{"m":{"type":"object","additionalProperties":{"type":"integer"}}}}`, `{"m":{"x":"1"}}`, `{"m":{"x":1}}`, ""},
		"pattern properties":        {`{"properties":{"m":{"type":"object","patternProperties":{"^n":{"type":"integer"}}}}}`, `{"m":{"n1":"1","o":"1"}}`, `{"m":{"n1":1,"o":"1"}}`, ""},
		"through a reference":       {`{"properties":{"p":{"$ref":"#/$defs/P"}},"$defs":{"P":{"type":"object","properties":{"n":{"type":"integer"}}}}}`, `{"p":"{\"n\":\"1\"}"}`, `{"p":{"n":1}}`, ""},
		"through recursion":         {`{"properties":{"n":{"type":"integer"},"next":{"$ref":"#"}}}`, `{"next":{"next":{"n":"3"}}}`, `{"next":{"next":{"n":3}}}`, ""},
		"through allOf":             {`{"allOf":[{"properties":{"n":{"type":"integer"}}},{"properties":{"m":{"type":"boolean"}}}]}`, `{"n":"1","m":"true"}`, `{"n":1,"m":true}`, ""},
		"enum of numbers":           {`{"properties":{"e":{"enum":[1,2.5,"x"]}}}`, `{"e":"2.5"}`, `{"e":2.5}`, ""},
		"enum of booleans":          {`{"properties":{"e":{"const":true}}}`, `{"e":"true"}`, `{"e":true}`, ""},
		"enum of objects":           {`{"properties":{"e":{"enum":[{"k":1},[2]]}}}`, `{"e":"{\"k\":1}"}`, `{"e":{"k":1}}`, ""},
		"enum with null as text":    {`{"properties":{"e":{"enum":["a",null]}}}`, `{"e":"null"}`, `{"e":null}`, ""},
		"enum value as it is":       {`{"properties":{"e":{"enum":["1",1]}}}`, `{"e":"1"}`, `{"e":"1"}`, ""},
		"enum with no such value":   {`{"properties":{"e":{"enum":[1,2]}}}`, `{"e":"9"}`, `{"e":"9"}`, ""},
		"number for a text enum":    {`{"properties":{"e":{"enum":["1","2"]}}}`, `{"e":2}`, `{"e":"2"}`, ""},
		"optional null is left out": {`{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"required":["b"]}`, `{"a":null,"b":"x"}`, `{"b":"x"}`, ""},
		"required null stays":       {`{"properties":{"a":{"type":"string"}},"required":["a"]}`, `{"a":null}`, `{"a":null}`, ""},
		"allowed null stays":        {`{"properties":{"a":{"type":["string","null"]}}}`, `{"a":null}`, `{"a":null}`, ""},
		"unknown key stays":         {`{"properties":{"a":{"type":"string"}}}`, `{"z":"1"}`, `{"z":"1"}`, ""},

		"choice it fits":              {`{"properties":{"v":{"anyOf":[{"type":"integer"},{"type":"string"}]}}}`, `{"v":"5"}`, `{"v":"5"}`, ""},
		"choice after repairer":       {`{"properties":{"v":{"oneOf":[{"type":"integer"},{"type":"null"}]}}}`, `{"v":"5"}`, `{"v":5}`, ""},
		"choice of objects":           {`{"properties":{"v":{"anyOf":[{"type":"object","properties":{"k":{"const":"a"},"n":{"type":"string"}},"required":["k"]},{"type":"object","properties":{"k":{"const":"b"},"n":{"type":"integer"}},"required":["k"]}]}}}`, `{"v":{"k":"b","n":"1"}}`, `{"v":{"k":"b","n":1}}`, ""},
		"choice of objects in text":   {`{"properties":{"v":{"anyOf":[{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]},{"type":"null"}]}}}`, `{"v":"{\"n\":\"1\"}"}`, `{"v":{"n":1}}`, ""},
		"choice at the root":          {`{"anyOf":[{"properties":{"id":{"type":"integer"}},"required":["id"]},{"properties":{"name":{"type":"string"}},"required":["name"]}]}`, `{"id":"7"}`, `{"id":7}`, ""},
		"choice by bounds":            {`{"properties":{"v":{"anyOf":[{"type":"integer","maximum":5},{"type":"array","items":{"type":"integer"},"minItems":2}]}}}`, `{"v":["1","2"]}`, `{"v":[1,2]}`, ""},
		"choice that nothing fits":    {`{"properties":{"v":{"anyOf":[{"type":"integer"},{"type":"boolean"}]}}}`, `{"v":"maybe"}`, `{"v":"maybe"}`, ""},
		"closed branch tells apart":   {`{"properties":{"v":{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false},{"type":"object","properties":{"b":{"type":"integer"}}}]}}}`, `{"v":{"b":"2"}}`, `{"v":{"b":2}}`, ""},
		"key made legal":              {`{"properties":{"filter[x]":{"type":"integer"}}}`, `{"` + dottedKey("filter[x]") + `":"1"}`, `{"filter[x]":1}`, ""},
		"key made plain":              {`{"properties":{"x-y":{"type":"integer"}}}`, `{"` + plainKey("x-y") + `":1}`, `{"x-y":1}`, ""},
		"required key made legal":     {`{"required":["a b"]}`, `{"` + dottedKey("a b") + `":1}`, `{"a b":1}`, ""},
		"own key wins":                {`{"properties":{"a[b]":{"type":"string"},"a_b_":{"type":"string"}}}`, `{"a_b_":"1","a[b]":"2"}`, `{"a_b_":"1","a[b]":"2"}`, ""},
		"schema that is no JSON":      {`{"properties":{"a":{"type":"integer"}},"x":1e999}`, `{"a":"1"}`, `{"a":1}`, ""},
		"forbidden property":          {`{"properties":{"a":false}}`, `{"a":"1"}`, `{"a":"1"}`, ""},
		"nothing to read from a list": {`{"properties":{"a":{"type":"array"}}}`, `{"a":"x,y"}`, `{"a":"x,y"}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Repair(def(t, "s", "t", tt.schema), json.RawMessage(tt.in))
			if tool.KindOf(err) != tt.kind {
				t.Fatalf("Repair(%s) error = %v, want kind %q", tt.in, err, tt.kind)
			}
			if string(got) != tt.want {
				t.Errorf("Repair(%s) = %s, want %s", tt.in, got, tt.want)
			}
		})
	}
}

// TestRepairIsBounded checks that values and schemas designed to be expensive
// are handled in bounded time.
func TestRepairIsBounded(t *testing.T) {
	deep := strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200)
	d := def(t, "s", "t", `{"properties":{"a":{"$ref":"#"}},"anyOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}},"required":["b"]}]}`)
	got, err := Repair(d, json.RawMessage(deep))
	if err != nil || string(got) != deep {
		t.Errorf("Repair = %.60s…, %v", got, err)
	}
	tooDeep := strings.Repeat("[", 1000) + strings.Repeat("]", 1000)
	if _, err := Repair(d, json.RawMessage(`{"a":`+tooDeep+`}`)); tool.KindOf(err) != tool.InvalidArguments {
		t.Errorf("Repair of 1000 levels: %v", err)
	}
}

func FuzzRepair(f *testing.F) {
	for _, d := range corpus(f) {
		f.Add([]byte(d.InputSchema), []byte(`{"a":"1","n":"2","x":{"y":[1,"2",null]}}`))
	}
	f.Fuzz(func(t *testing.T, schema, args []byte) {
		got, err := Repair(tool.Definition{InputSchema: schema}, args)
		if err == nil && !json.Valid(got) {
			t.Errorf("Repair(%q) = %q", args, got)
		}
	})
}
