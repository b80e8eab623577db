package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/tailscale/hujson"
)

// fieldDocs returns the comments of the Config structs, by package, type and
// field.
var fieldDocs = sync.OnceValue(func() map[string]string {
	docs := map[string]string{}
	seen := map[reflect.Type]bool{}
	var visit func(reflect.Type)
	visit = func(rt reflect.Type) {
		for rt.Kind() == reflect.Pointer || rt.Kind() == reflect.Slice || rt.Kind() == reflect.Map {
			rt = rt.Elem()
		}
		if rt.Kind() != reflect.Struct || seen[rt] {
			return
		}
		seen[rt] = true
		comments := structComments(rt)
		for i := range rt.NumField() {
			sf := rt.Field(i)
			if sf.Anonymous || jsonName(sf) != "" {
				visit(sf.Type)
			}
			if jsonName(sf) != "" {
				docs[docKey(rt, sf)] = comments[sf.Name]
			}
		}
	}
	visit(reflect.TypeFor[Config]())
	return docs
})

// TestFieldDocs checks that every setting has a comment that is a sentence.
func TestFieldDocs(t *testing.T) {
	if len(fieldDocs()) < 50 {
		t.Errorf("only %d settings found", len(fieldDocs()))
	}
	for key, doc := range fieldDocs() {
		if !strings.HasSuffix(doc, ".") {
			t.Errorf("%s has no comment that is a sentence: %q", key, doc)
		}
	}
}

// structComments reads the comments of a struct's fields from its source. It
// panics when the source cannot be read.
func structComments(rt reflect.Type) map[string]string {
	files, err := filepath.Glob(filepath.Join("..", strings.TrimPrefix(rt.PkgPath(), "junctor/internal/"), "*.go"))
	if err != nil {
		panic(err)
	}
	comments := map[string]string{}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil {
			panic(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok || spec.Name.Name != rt.Name() {
				return true
			}
			if st, ok := spec.Type.(*ast.StructType); ok {
				for _, fl := range st.Fields.List {
					for _, name := range fl.Names {
						comments[name.Name] = strings.Join(strings.Fields(fl.Doc.Text()), " ")
					}
				}
			}
			return false
		})
	}
	return comments
}

// golden compares with a file and rewrites it with -update.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil || string(want) != got {
		t.Errorf("%s is not what it should be (%v); run: go test ./internal/config -update", path, err)
	}
}

const schemaFile = "../../docs/junctor.schema.json"

// TestSchema checks that the published schema matches the structs and that it
// accepts every example that loads.
func TestSchema(t *testing.T) {
	text := generateSchema()
	golden(t, schemaFile, string(text))

	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("junctor.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("junctor.json")
	if err != nil {
		t.Fatal(err)
	}
	paths, _ := filepath.Glob("testdata/load/*.txt")
	for _, path := range paths {
		a := readArchive(t, path)
		for name, text := range a.files {
			if !strings.HasSuffix(name, ".json") {
				continue
			}
			std, err := hujson.Standardize([]byte(text))
			if err != nil {
				continue
			}
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader(std))
			if err != nil {
				t.Fatal(path, err)
			}
			err = schema.Validate(v)
			loads := !strings.HasPrefix(a.files["want"], "ERROR")
			// The settings of VS Code and Zed contain far more than servers.
			foreign := name == "settings.json"
			if loads && !foreign && err != nil {
				t.Errorf("%s loads, but the schema refuses it: %v", path, err)
			}
			// A schema cannot check variables, other files, or names that
			// become equal.
			beyond := slices.Contains([]string{"vscode-inputs.txt", "broken-dotenv.txt", "broken-names.txt"}, filepath.Base(path))
			if !loads && err == nil && !beyond {
				t.Errorf("%s does not load, but the schema accepts it", path)
			}
		}
	}

	// The schema rejects unknown keys, invalid names and invalid values.
	for _, bad := range []string{
		`{"mcpServers":{"a":{"comand":"x"}}}`, `{"mcpServers":{"§":{"command":"x"}}}`, `{"listen":5}`, `{"circuit":{"threshold":-1}}`,
		`{"discovery":{"mode":"other"}}`, `{"mcpServers":{"a":{"command":"x","timeoutMs":"soon"}}}`, `5`, `[{"command":"x"}]`,
	} {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(bad))
		if err != nil {
			t.Fatal(err)
		}
		if schema.Validate(v) == nil {
			t.Errorf("the schema accepts %s", bad)
		}
	}
}

// TestSchemaKeysAreLoaded checks that the loader accepts every key of the
// schema.
func TestSchemaKeysAreLoaded(t *testing.T) {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Defs       struct {
			Server struct {
				Properties map[string]json.RawMessage `json:"properties"`
			} `json:"server"`
		} `json:"$defs"`
	}
	if err := json.Unmarshal(generateSchema(), &s); err != nil {
		t.Fatal(err)
	}
	unknown := func(text string) bool {
		_, _, err := Parse("x", []byte(text), Options{})
		return err != nil && strings.Contains(err.Error(), "is not a known key")
	}
	for key := range s.Properties {
		if unknown(fmt.Sprintf("{%q: 5}", key)) && key != "mcp" { // only a key if it has servers
			t.Errorf("the loader does not know %s", key)
		}
	}
	for key := range s.Defs.Server.Properties {
		if unknown(fmt.Sprintf(`{"mcpServers":{"a":{%q: 5}}}`, key)) {
			t.Errorf("the loader does not know mcpServers.a.%s", key)
		}
	}
	if !unknown(`{"x": 1}`) || !unknown(`{"mcpServers":{"a":{"x":1}}}`) {
		t.Error("the test itself finds nothing unknown")
	}
}

const docFile = "../../docs/configuration.md"

// TestReference checks that the generated part of the documentation matches the
// structs and that its examples load.
func TestReference(t *testing.T) {
	data, err := os.ReadFile(docFile)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "<!-- reference: made by go test ./internal/config -run TestReference -update -->\n", "<!-- end of reference -->\n"
	head, rest, ok1 := strings.Cut(string(data), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatal("the marks of the reference are missing")
	}
	golden(t, docFile, head+begin+"\n"+generateReference()+"\n"+end+tail)

	examples := regexp.MustCompile("(?s)```jsonc?\n(.*?)```").FindAllStringSubmatch(string(data), -1)
	if len(examples) < 5 {
		t.Errorf("found %d examples", len(examples))
	}
	vars := map[string]string{"GITHUB_TOKEN": "x", "BRAVE_API_KEY": "y", "TIMEOUT": "5"}
	lookup := func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
	for _, ex := range examples {
		if _, _, err := Parse("example", []byte(ex[1]), Options{LookupEnv: lookup}); err != nil {
			t.Errorf("an example does not load: %v\n%s", err, ex[1])
		}
	}
}

// TestEveryFieldHasFileForm checks that the decoder supports the type of every
// setting.
func TestEveryFieldHasFileForm(t *testing.T) {
	var walk func(fields []field)
	walk = func(fields []field) {
		for _, f := range fields {
			d := &decoder{report: func(*node, string) {}, from: map[string]*node{}}
			d.decode(&node{kind: number, text: "7"}, reflect.New(f.typ).Elem(), f.key) // panics if there is none
			if f.typ.Kind() == reflect.Int64 && f.typeName() != "whole number" {
				t.Errorf("the reference says that %s is a %s", f.key, f.typeName())
			}
			walk(f.fields)
		}
	}
	walk(describeConfig())
	c, _, err := Parse("x", []byte(`{"auth":{"keys":[{"name":"a","key":"0123456789abcdef","tokensPerDay":5000000000}],
		"jwt":{"issuer":"https://login.example.com","audience":"https://a.example.com","rules":[{"tokensPerDay":7}]}}}`), Options{})
	if err != nil || c.Auth.Keys[0].TokensPerDay != 5_000_000_000 || c.Auth.JWT.Rules[0].TokensPerDay != 7 {
		t.Errorf("auth is %+v, %v", c.Auth, err)
	}
}
