package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"junctor/internal/rawjson"
)

// definitionOf parses a document and returns the definition of one tool.
func definitionOf(t *testing.T, document, tool string) json.RawMessage {
	t.Helper()
	s, err := Parse([]byte(document), Source{Folder: t.TempDir()}, "https://service.example", Filter{})
	if err != nil {
		t.Fatal(err)
	}
	o := s.byName[tool]
	if o == nil {
		t.Fatalf("no tool %q in %v; skipped %v", tool, s.Tools(), s.Skipped)
	}
	for _, key := range []string{"inputSchema", "outputSchema"} {
		if raw := rawjson.Field(o.definition, key); len(raw) > 0 {
			compile(t, raw)
		}
	}
	return o.definition
}

func compile(t *testing.T, raw json.RawMessage) *jsonschema.Schema {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource("schema.json", value); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return s
}

func accepts(t *testing.T, s *jsonschema.Schema, value string) bool {
	t.Helper()
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(value))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v) == nil
}

const petstore = `
openapi: 3.0.3
info: {title: Pets, version: "1.0"}
paths:
  /pets/{petId}:
    parameters:
      - {name: petId, in: path, required: true, schema: {type: integer, format: int64}}
    get:
      operationId: pets/get one
      summary: Get a pet
      deprecated: true
      responses:
        "200": {description: OK, content: {application/json: {schema: {$ref: "#/components/schemas/Pet"}}}}
    put:
      summary: Replace a pet
      requestBody:
        required: true
        content: {application/json: {schema: {$ref: "#/components/schemas/Pet"}}}
      responses: {"204": {description: Done}}
    delete:
      operationId: removePet
      x-mcp: {name: remove_pet, description: Remove a pet for good}
      responses: {"204": {description: Done}}
    patch:
      operationId: hidden
      x-mcp: false
      responses: {}
  /pets:
    get:
      operationId: listPets
      parameters:
        - {name: "filter[name]", in: query, schema: {type: string}}
        - {name: limit, in: query, schema: {type: integer, minimum: 0, exclusiveMinimum: true}}
      responses:
        "200": {description: A list, content: {application/json: {schema: {type: array, items: {$ref: "#/components/schemas/Pet"}}}}}
components:
  schemas:
    Pet:
      type: object
      required: [id, name]
      properties:
        id: {type: integer, readOnly: true}
        name: {type: string, nullable: true, enum: [Rex, Tom]}
        parent: {$ref: "#/components/schemas/Pet"}
        owner: {allOf: [{$ref: "#/components/schemas/Owner"}], nullable: true}
        secret: {type: string, writeOnly: true}
    Owner: {type: object, properties: {name: {type: string}}, additionalProperties: false, required: [name]}
`

func TestToolsOfOperations(t *testing.T) {
	get := definitionOf(t, petstore, "pets_get_one")
	for _, want := range []string{`"title":"Get a pet"`, `Deprecated.`, `Returns: Pet.`, `"readOnlyHint":true`} {
		if !strings.Contains(string(get), want) {
			t.Errorf("no %s in %s", want, get)
		}
	}
	output := compile(t, rawjson.Field(get, "outputSchema"))
	for value, want := range map[string]bool{
		`{"id":1,"name":"Rex","parent":{"name":null,"parent":null},"owner":{"name":"x","more":1}}`: true,
		`{"id":1,"name":"Rex","owner":null}`: true,
		`{}`:                                 true, // the schema only describes: clients reject results that do not match it
		`{"id":"one"}`:                       false,
		`[]`:                                 false,
	} {
		if accepts(t, output, value) != want {
			t.Errorf("output %s: accepted is not %v", value, want)
		}
	}
	put := definitionOf(t, petstore, "put_pets_petId")
	input := compile(t, rawjson.Field(put, "inputSchema"))
	for value, want := range map[string]bool{
		`{"petId":1,"name":"Tom"}`:                           true,
		`{"petId":1,"name":null,"owner":null}`:               true,
		`{"petId":1,"name":"Tom","parent":{"name":"Rex"}}`:   true,
		`{"petId":1,"name":"Tom","owner":{"name":"a"}}`:      true,
		`{"petId":1,"name":"Tom","owner":{"more":"a"}}`:      false,
		`{"petId":1,"name":"Max"}`:                           false,
		`{"petId":1}`:                                        false,
		`{"name":"Tom"}`:                                     false,
		`{"petId":1,"name":"Tom","id":7}`:                    false, // read-only
		`{"petId":1,"name":"Tom","secret":"s","nonsense":1}`: false,
	} {
		if accepts(t, input, value) != want {
			t.Errorf("input %s: accepted is not %v", value, want)
		}
	}
	if remove := string(definitionOf(t, petstore, "remove_pet")); !strings.Contains(remove, "for good") ||
		!strings.Contains(remove, `"destructiveHint":true,"idempotentHint":true`) {
		t.Error(remove)
	}
	list := definitionOf(t, petstore, "listPets")
	if !accepts(t, compile(t, rawjson.Field(list, "outputSchema")), `{"result":[{"id":1},null]}`) {
		t.Errorf("the list is not under result: %s", list)
	}
	limits := compile(t, rawjson.Field(list, "inputSchema"))
	if !accepts(t, limits, `{"filter_name":"x","limit":1}`) || accepts(t, limits, `{"limit":0}`) {
		t.Errorf("%s", rawjson.Field(list, "inputSchema"))
	}
	s, err := Parse([]byte(petstore), Source{Folder: t.TempDir()}, "https://service.example", Filter{Include: []string{"GET /pets/**", "listPets"}, Exclude: []string{"list*"}})
	if err != nil || strings.Join(s.Tools(), " ") != "pets_get_one" {
		t.Errorf("selected %v, %v", s.Tools(), err)
	}
}

// A nullable enumeration includes null, whatever its values are called. An
// enum that is not a list is omitted, so that the definition remains valid
// JSON.
func TestNullableEnumerations(t *testing.T) {
	for enum, want := range map[string]string{
		`["a", "b"]`:           `{"type":["string","null"],"enum":["a","b",null]}`,
		`["nullable", "text"]`: `{"type":["string","null"],"enum":["nullable","text",null]}`,
		`["a", null]`:          `{"type":["string","null"],"enum":["a",null]}`,
		`[ ]`:                  `{"type":["string","null"],"enum":[null]}`,
		`"a"`:                  `{"type":["string","null"]}`,
	} {
		doc := `{"openapi":"3.0.0","info":{"title":"t"},"servers":[{"url":"https://h.example.com"}],"paths":{"/p":{"get":{"operationId":"p",
			"parameters":[{"name":"q","in":"query","schema":{"nullable":true,"type":"string","enum":` + enum + `}}],"responses":{}}}}}`
		if got := rawjson.Field(definitionOf(t, doc, "p"), "inputSchema", "properties", "q"); string(got) != want {
			t.Errorf("%s: %s, want %s", enum, got, want)
		}
	}
}

func TestSwagger2(t *testing.T) {
	s, err := Parse([]byte(`{"swagger":"2.0","info":{"title":"Old","version":"1"},"host":"old.example","basePath":"/api","schemes":["https","http"],
		"consumes":["application/x-www-form-urlencoded"],
		"paths":{"/items":{"get":{"operationId":"list","parameters":[{"name":"ids","in":"query","type":"array","items":{"type":"integer"},"collectionFormat":"pipes"},{"$ref":"#/parameters/page"}],
			"responses":{"200":{"description":"ok","schema":{"$ref":"#/definitions/Item"}}}},
		"post":{"operationId":"add","parameters":[{"name":"item","in":"body","required":true,"schema":{"$ref":"#/definitions/Item"}}],"responses":{}},
		"put":{"operationId":"upload","parameters":[{"name":"file","in":"formData","type":"file","required":true},{"name":"note","in":"formData","type":"string"}],"responses":{}}}},
		"parameters":{"page":{"name":"page","in":"query","type":"integer"}},
		"securityDefinitions":{"key":{"type":"apiKey","in":"query","name":"k"}},
		"definitions":{"Item":{"type":"object","required":["name"],"properties":{"name":{"type":"string","x-nullable":true}}}}}`), Source{Folder: t.TempDir()}, "", Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Base.String(); got != "https://old.example/api" {
		t.Errorf("base %s", got)
	}
	r, err := s.byName["list"].request(t.Context(), s.Base, json.RawMessage(`{"ids":[1,2],"page":3}`))
	if err != nil || r.URL.String() != "https://old.example/api/items?ids=1%7C2&page=3" {
		t.Errorf("%v, %v", r.URL, err)
	}
	for name, want := range map[string]string{"add": `"required":["name"]`, "upload": `"file":{`} {
		d := s.byName[name].definition
		compile(t, rawjson.Field(d, "inputSchema"))
		if !strings.Contains(string(d), want) {
			t.Errorf("%s: no %s in %s", name, want, d)
		}
	}
	if s.byName["upload"].body.mediaType != "multipart/form-data" || s.schemes["key"].name != "k" {
		t.Errorf("%+v %+v", s.byName["upload"].body, s.schemes)
	}
}

func TestFilesBesideTheDocument(t *testing.T) {
	outer := t.TempDir()
	folder := filepath.Join(outer, "api")
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(outer, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("api/schemas/pet.yaml", "Pet: {type: object, properties: {owner: {$ref: 'more.yaml#/Owner'}}}")
	write("api/schemas/more.yaml", "Owner: {type: string}")
	write("secret.yaml", "Owner: {type: string}")
	document := `{"openapi":"3.1.0","servers":[{"url":"http://x.example"}],"paths":{"/a":{"post":{"operationId":"a","requestBody":{"content":{"application/json":{"schema":{"$ref":"%s"}}}},"responses":{}}}}}`
	s, err := Parse(fmt.Appendf(nil, document, "schemas/pet.yaml#/Pet"), Source{Folder: folder}, "", Filter{})
	if err != nil {
		t.Fatal(err)
	}
	if d := string(s.byName["a"].definition); !strings.Contains(d, `"owner":{"$ref":"#/$defs/Owner"}`) || !strings.Contains(d, `"$defs":{"Owner":{"type":"string"}}`) {
		t.Error(d)
	}
	for _, ref := range []string{"../secret.yaml#/Owner", "/etc/passwd", "http://evil.example/x.json", "file:///etc/passwd"} {
		if _, err := Parse(fmt.Appendf(nil, document, ref), Source{Folder: folder}, "", Filter{}); err == nil {
			t.Errorf("%s is followed", ref)
		}
	}
	if _, err := Parse(fmt.Appendf(nil, document, "schemas/pet.yaml#/Pet"), Source{URL: "http://x.example/o.json"}, "", Filter{}); err == nil {
		t.Error("a fetched document reads files")
	}
}

// TestHostileDocuments checks that hostile documents are rejected or lead to
// small tools, in finite time.
func TestHostileDocuments(t *testing.T) {
	head := `{"openapi":"3.1.0","servers":[{"url":"http://x.example"}],`
	operation := `"paths":{"/a":{"post":{"operationId":"a","requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/A"}}}},"responses":{}}}},`
	laughs := "openapi: 3.1.0\npaths: {}\nx0: &x0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n"
	for i := 1; i < 12; i++ {
		laughs += fmt.Sprintf("x%d: &x%d [*x%d, *x%d, *x%d, *x%d, *x%d, *x%d, *x%d, *x%d, *x%d]\n", i, i, i-1, i-1, i-1, i-1, i-1, i-1, i-1, i-1, i-1)
	}
	wide := strings.Repeat(`{"$ref":"#/components/schemas/B"},`, 40_000)
	for name, c := range map[string]struct{ document, err string }{
		"empty":           {"", "empty"},
		"not a document":  {`{"a":1}`, "not an OpenAPI document"},
		"a list":          {`- a`, "not an object"},
		"old version":     {`{"openapi":"4.0.0"}`, "not supported"},
		"no operations":   {head + `"paths":{}}`, "no operation"},
		"too large":       {head + `"x":"` + strings.Repeat("x", maxDocumentBytes) + `"}`, "larger than 32 MB"},
		"deep":            {head + `"x":` + strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000) + `}`, "deep"},
		"billion laughs":  {laughs, ""}, // the size limit or the YAML library's limit
		"endless alias":   {"openapi: 3.1.0\npaths: &a {b: *a}\n", ""},
		"reference cycle": {head + operation + `"components":{"schemas":{"A":{"$ref":"#/components/schemas/B"},"B":{"$ref":"#/components/schemas/A"}}}}`, "ok"},
		"self reference":  {head + operation + `"components":{"schemas":{"A":{"type":"object","properties":{"a":{"$ref":"#/components/schemas/A"}}}}}}`, "ok"},
		"wide":            {head + operation + `"components":{"schemas":{"A":{"type":"object","properties":{"a":{"anyOf":[` + wide + `true]}}},"B":{"type":"string"}}}}`, "schema too large"},
		"missing":         {head + operation + `"components":{}}`, "the document does not contain it"},
		"path cycle":      {head + `"paths":{"/a":{"$ref":"#/paths/~1a"}}}`, "the references are circular"},
		"no base":         {`{"openapi":"3.1.0",` + operation + `"components":{"schemas":{"A":{}}}}`, "set baseUrl"},
		"variable base":   {`{"openapi":"3.1.0","servers":[{"url":"https://x.example/{v}"}],` + operation + `"components":{"schemas":{"A":{}}}}`, "set baseUrl"},
		"file scheme":     {`{"openapi":"3.1.0","servers":[{"url":"file:///etc"}],` + operation + `"components":{"schemas":{"A":{}}}}`, "set baseUrl"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Parse([]byte(c.document), Source{Folder: t.TempDir()}, "", Filter{})
			switch {
			case c.err == "ok":
				if err != nil || len(s.byName["a"].definition) > 1000 {
					t.Error(err)
				}
			case err == nil || !strings.Contains(err.Error(), c.err):
				t.Errorf("error %v, want one with %q", err, c.err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(petstore))
	f.Add([]byte(`{"swagger":"2.0","host":"a","paths":{"/a":{"get":{"parameters":[{"in":"formData"}]}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(data, Source{}, "http://x.example", Filter{})
		if err != nil {
			return
		}
		for _, o := range s.operations {
			if !json.Valid(o.definition) {
				t.Fatalf("%s", o.definition)
			}
		}
	})
}
