package provider

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	generativelanguagepb "cloud.google.com/go/ai/generativelanguage/apiv1beta/generativelanguagepb"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"google.golang.org/protobuf/encoding/protojson"

	"junctor/internal/tool"
)

var (
	legalNameRE  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,62}$`)
	legalKeyRE   = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)
	plainKeyRE   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`)
	wholeSchemas = wordSet(`title format pattern minLength maxLength minimum maximum exclusiveMinimum exclusiveMaximum
		multipleOf minItems maxItems uniqueItems contains prefixItems additionalProperties patternProperties propertyNames
		minProperties maxProperties dependentSchemas default examples deprecated readOnly writeOnly oneOf allOf anyOf not
		if then else contentEncoding contentMediaType type description enum properties required items`)
)

// checkDeclaration returns an error for a declaration that the provider would
// reject, according to its documentation and to reports of users.
func checkDeclaration(variant string, d Declaration) error {
	if !legalNameRE.MatchString(d.Name) {
		return fmt.Errorf("name %q", d.Name)
	}
	if strings.TrimSpace(d.Description) == "" {
		return errors.New("no description")
	}
	if !json.Valid(d.JSON) {
		return fmt.Errorf("not JSON: %s", d.JSON)
	}
	v, err := parseJSON(d.Schema)
	if err != nil {
		return err
	}
	schema := v.(*object)
	c := schemaCheck{variant: variant}
	switch variant {
	case "gemini":
		c.allowed = wordSet("$id $defs $ref $anchor type format title description enum items prefixItems minItems maxItems minimum maximum anyOf oneOf properties additionalProperties required propertyOrdering")
	case "gemini-openapi":
		if empty, _ := schema.get("properties"); len(empty.(*object).keys) == 0 {
			if bytes.Contains(d.JSON, []byte(`"parameters"`)) {
				return errors.New("parameters without properties")
			}
			return nil
		}
		c.allowed = wordSet("type format title description nullable enum items minItems maxItems properties required minProperties maxProperties minimum maximum minLength maxLength pattern anyOf propertyOrdering default")
		c.keys = plainKeyRE
	case "ollama":
		c.allowed = wordSet("type items description enum properties required anyOf")
	case "openai-strict":
		c.allowed = wordSet("type description enum properties required additionalProperties anyOf items format pattern minimum maximum exclusiveMinimum exclusiveMaximum multipleOf minItems maxItems")
	case "anthropic", "bedrock":
		c.allowed, c.keys = wholeSchemas, legalKeyRE
	default:
		c.allowed = wholeSchemas
	}
	if root, _ := schema.get("type"); !strings.EqualFold(fmt.Sprint(root), "object") {
		return fmt.Errorf("root type %v", root)
	}
	for _, k := range []string{"anyOf", "oneOf", "allOf", "enum", "$ref"} {
		if _, ok := schema.get(k); ok {
			return fmt.Errorf("%s at the root", k)
		}
	}
	if strings.HasPrefix(variant, "openai") || variant == "xai" {
		if _, ok := schema.get("not"); ok {
			return errors.New("not at the root")
		}
	}
	if err := c.check(schema, "", 0); err != nil {
		return err
	}
	if variant == "gemini-openapi" {
		return nil
	}
	return compiles(d.Schema)
}

// compiles checks a schema against the metaschema of 2020-12.
func compiles(raw json.RawMessage) error {
	_, err := validator(raw)
	return err
}

func validator(raw json.RawMessage) (*jsonschema.Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("mem:///schema.json", doc); err != nil {
		return nil, err
	}
	return compiler.Compile("mem:///schema.json")
}

type schemaCheck struct {
	variant string
	allowed words
	keys    *regexp.Regexp
}

func (c schemaCheck) check(o *object, path string, tests int) error {
	fail := func(format string, args ...any) error {
		return fmt.Errorf("at %q: %s (in %s)", path, fmt.Sprintf(format, args...), tool.Shorten(string(encode(o)), 300))
	}
	for _, k := range o.keys {
		if !c.allowed[k] {
			return fail("keyword %s", k)
		}
	}
	is := func(name string) bool {
		switch t := o.vals["type"].(type) {
		case string:
			return strings.EqualFold(t, name)
		case []any:
			return slices.Contains(t, any(name))
		}
		return false
	}
	props, _ := o.vals["properties"].(*object)
	if tests == 0 && is("object") && props == nil {
		return fail("object without properties")
	}
	if _, ok := o.get("items"); tests == 0 && is("array") && !ok {
		return fail("array without items")
	}
	if enum, ok := o.get("enum"); ok && len(enum.([]any)) == 0 {
		return fail("empty enum")
	}
	if req, ok := o.get("required"); ok && tests == 0 {
		for _, k := range stringsIn(req) {
			if _, ok := props.get(k); !ok {
				return fail("requires %q, which it does not declare", k)
			}
		}
	}
	if anyOf, ok := o.get("anyOf"); ok && len(anyOf.([]any)) == 0 {
		return fail("empty anyOf")
	}
	if c.variant == "gemini-openapi" {
		if err := c.openapi(o, props, is); err != nil {
			return fail("%v", err)
		}
	}
	if c.variant == "openai-strict" && is("object") {
		required := stringsIn(o.vals["required"])
		if o.vals["additionalProperties"] != false || len(required) != len(props.keys) {
			return fail("not strict")
		}
	}
	if props != nil {
		for _, k := range props.keys {
			if c.keys != nil && !c.keys.MatchString(k) {
				return fail("key %q", k)
			}
			if err := c.check(props.vals[k].(*object), join(path, k), tests); err != nil {
				return err
			}
		}
	}
	for _, k := range o.keys {
		in := tests
		switch k {
		case "not", "if", "then", "else", "contains", "propertyNames":
			in++
			fallthrough
		case "items", "additionalProperties":
			if sub, ok := o.vals[k].(*object); ok {
				if err := c.check(sub, path+"/"+k, in); err != nil {
					return err
				}
			} else if k == "items" {
				return fail("items is %v", o.vals[k])
			}
		case "anyOf", "oneOf", "allOf", "prefixItems":
			for _, sub := range o.vals[k].([]any) {
				if err := c.check(sub.(*object), path+"/"+k, tests); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// openapi checks rules of Gemini's Schema message that its types do not
// express.
func (c schemaCheck) openapi(o, props *object, is func(string) bool) error {
	if _, ok := o.get("anyOf"); ok {
		if len(o.keys) != 1 {
			return errors.New("fields beside anyOf")
		}
		return nil
	}
	t, ok := o.vals["type"].(string)
	if !ok || t != strings.ToUpper(t) {
		return fmt.Errorf("type %v", o.vals["type"])
	}
	if _, ok := o.get("enum"); ok && !is("string") {
		return errors.New("enum of " + t)
	}
	for _, v := range stringsIn(o.vals["enum"]) {
		if v == "" {
			return errors.New("empty string in enum")
		}
	}
	if is("object") && len(props.keys) == 0 {
		return errors.New("object without properties")
	}
	if f := o.text("format"); f != "" && is("string") && f != "enum" && f != "date-time" {
		return errors.New("format " + f)
	}
	return nil
}

// checkGemini parses a declaration into the API's own message type.
func checkGemini(d Declaration) error {
	body := []byte(`{"model":"models/m","contents":[],"tools":[{"function_declarations":[` + string(d.JSON) + `]}]}`)
	return protojson.Unmarshal(body, &generativelanguagepb.GenerateContentRequest{})
}

// checkAll checks every form of every definition, or every stride-th of them.
func checkAll(t *testing.T, defs []tool.Definition, stride int) {
	t.Helper()
	tools := NewTools(defs, nil)
	for i, v := range variants {
		for j, concise := range []bool{false, true} {
			o := v.options
			o.Concise = concise
			for k, d := range defs {
				if (i*2+j+k)%stride != 0 {
					continue
				}
				l, err := tools.Declare(v.provider, []tool.Name{d.Name}, o)
				if err != nil {
					t.Fatal(err)
				}
				if !json.Valid(l.Body()) {
					t.Errorf("%s: body is not JSON: %s", v.name, l.Body())
				}
				if len(l.Declarations) == 0 && (len(l.Warnings) != 1 || l.Warnings[0].Code != LeftOut) {
					t.Errorf("%s: %s is left out without a word: %+v", v.name, d.Name, l.Warnings)
				}
				for _, decl := range l.Declarations {
					if err := checkDeclaration(v.name, decl); err != nil {
						t.Errorf("%s refuses %s: %v", v.name, d.Name, err)
					}
					if v.provider == Gemini {
						if err := checkGemini(decl); err != nil {
							t.Errorf("%s: the API's message refuses %s: %v\n%s", v.name, d.Name, err, decl.JSON)
						}
					}
				}
			}
		}
	}
}

// TestCorpusIsLegal checks that no provider rejects a declaration of a
// difficult schema.
func TestCorpusIsLegal(t *testing.T) {
	for name, d := range corpus(t) {
		t.Run(name, func(t *testing.T) { checkAll(t, []tool.Definition{d}, 1) })
	}
}

// npmTools returns the recorded definitions of the npm servers that other tests
// run.
func npmTools(t testing.TB) []tool.Definition {
	t.Helper()
	files, err := filepath.Glob("testdata/servers/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no definitions in testdata/servers: %v", err)
	}
	var defs []tool.Definition
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var list struct{ Tools []json.RawMessage }
		if err := json.Unmarshal(raw, &list); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, raw := range list.Tools {
			d, err := tool.ParseDefinition("npm-"+strings.TrimSuffix(filepath.Base(file), ".json"), raw)
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			defs = append(defs, d)
		}
	}
	return defs
}

// TestServersFromNPMAreLegal checks all tools of npmTools in every form.
func TestServersFromNPMAreLegal(t *testing.T) {
	defs := npmTools(t)
	checkAll(t, defs, 1)
	for _, v := range variants {
		l, err := NewTools(defs, nil).Declare(v.provider, nil, v.options)
		if err != nil || len(l.Declarations) != len(defs) {
			t.Errorf("%s: %d of %d tools declared, %v", v.name, len(l.Declarations), len(defs), err)
		}
	}
}

// realTools returns definitions of real servers. It skips the test if the files
// are not available.
func realTools(t testing.TB) []tool.Definition {
	t.Helper()
	var defs []tool.Definition
	for _, file := range []string{"../../../shared/search-eval/dev/tools.jsonl", "../../../shared/search-eval/dev/mcpproxy45/tools.jsonl"} {
		f, err := os.Open(file)
		if errors.Is(err, fs.ErrNotExist) {
			t.Skipf("%s is not here", file)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		seen := map[tool.Name]bool{}
		lines := bufio.NewScanner(f)
		lines.Buffer(nil, 1<<24)
		for lines.Scan() {
			var line struct {
				Server, Tool, Description string
				InputSchema               json.RawMessage
			}
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
				t.Fatal(err)
			}
			if len(line.InputSchema) < 2 || line.InputSchema[0] != '{' {
				continue
			}
			raw, _ := json.Marshal(map[string]any{"name": line.Tool, "description": line.Description, "inputSchema": line.InputSchema})
			d, err := tool.ParseDefinition(line.Server, raw)
			if err != nil {
				t.Fatal(err)
			}
			if !seen[d.Name] {
				seen[d.Name] = true
				defs = append(defs, d)
			}
		}
	}
	return defs
}
