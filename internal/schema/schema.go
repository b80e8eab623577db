// Package schema checks JSON values against JSON Schemas, 2020-12 and
// draft-07, as MCP servers write them.
//
// It promises every violation at once, each with its place in the value and
// in the schema, and it never fetches anything: a reference that leads out of
// the schema is an error of the schema.
package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

// Schema is a compiled JSON Schema. It is safe for concurrent use.
type Schema struct{ compiled *jsonschema.Schema }

// Violation is one way in which a value breaks a schema.
type Violation struct {
	Path    string `json:"path"`    // JSON pointer into the value; "" is the value itself
	Schema  string `json:"schema"`  // JSON pointer of the keyword in the schema
	Message string `json:"message"` // what is wrong, in words
}

// MaxViolations bounds how many violations one check reports.
const MaxViolations = 50

// resource is the address that a schema has while it is compiled.
const resource = "schema:///tool"

// Compile prepares a schema. One without $schema is read as 2020-12, which
// accepts what draft-07 authors write but for the words it redefined.
func Compile(raw json.RawMessage) (*Schema, error) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, fmt.Errorf("schema is not JSON: %w", err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if tuples(doc) {
		c.DefaultDraft(jsonschema.Draft7)
	}
	c.UseLoader(noLoader{})
	if err := c.AddResource(resource, doc); err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	compiled, err := c.Compile(resource)
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	return &Schema{compiled}, nil
}

// tuples reports whether a schema without $schema uses an array as items,
// which only the drafts before 2020-12 allow.
func tuples(doc any) bool {
	switch v := doc.(type) {
	case map[string]any:
		if _, ok := v["$schema"]; ok {
			return false
		}
		if _, ok := v["items"].([]any); ok {
			return true
		}
		for key, sub := range v {
			switch key {
			case "enum", "const", "default", "examples":
			default:
				if tuples(sub) {
					return true
				}
			}
		}
	case []any:
		for _, sub := range v {
			if tuples(sub) {
				return true
			}
		}
	}
	return false
}

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s leads out of the schema", url)
}

// Check returns the ways in which value breaks the schema, none when it fits.
func (s *Schema) Check(value json.RawMessage) []Violation {
	dec := json.NewDecoder(bytes.NewReader(value))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return []Violation{{Message: "not valid JSON: " + err.Error()}}
	}
	if _, err := dec.Token(); err != io.EOF {
		return []Violation{{Message: "not valid JSON: more than one value"}}
	}
	err := s.compiled.Validate(v)
	if err == nil {
		return nil
	}
	invalid, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return []Violation{{Message: "cannot be checked: " + err.Error()}}
	}
	return collect(nil, invalid)
}

var english = message.NewPrinter(language.English)

// collect appends the leaves of the tree of causes: the inner nodes only say
// that something below them is wrong.
func collect(out []Violation, e *jsonschema.ValidationError) []Violation {
	if len(out) >= MaxViolations {
		return out
	}
	if len(e.Causes) == 0 {
		return append(out, violation(e))
	}
	if alternatives(e) {
		v := violation(e)
		var ways []string
		for _, cause := range e.Causes {
			for _, leaf := range collect(nil, cause) {
				ways = append(ways, leaf.where()+leaf.Message)
			}
		}
		v.Message = "fits none of the alternatives: " + strings.Join(ways, "; ")
		if len(v.Message) > 500 {
			v.Message = strings.ToValidUTF8(v.Message[:500], "") + "…"
		}
		return append(out, v)
	}
	for _, cause := range e.Causes {
		out = collect(out, cause)
	}
	return out
}

func alternatives(e *jsonschema.ValidationError) bool {
	switch k := e.ErrorKind.(type) {
	case *kind.AnyOf:
		return true
	case *kind.OneOf:
		return len(k.Subschemas) == 0
	}
	return false
}

func (v Violation) where() string {
	if v.Path == "" {
		return ""
	}
	return v.Path + ": "
}

func violation(e *jsonschema.ValidationError) Violation {
	at := strings.TrimPrefix(strings.TrimPrefix(e.SchemaURL, resource), "#")
	return Violation{
		Path:    pointer(e.InstanceLocation),
		Schema:  at + pointer(e.ErrorKind.KeywordPath()),
		Message: e.ErrorKind.LocalizedString(english),
	}
}

func pointer(path []string) string {
	var b strings.Builder
	for _, p := range path {
		b.WriteByte('/')
		b.WriteString(strings.NewReplacer("~", "~0", "/", "~1").Replace(p))
	}
	return b.String()
}

// shownViolations bounds how many violations Summary spells out.
const shownViolations = 5

// Summary puts violations into one line for people and models.
func Summary(violations []Violation) string {
	var b strings.Builder
	for i, v := range violations {
		if i == shownViolations {
			fmt.Fprintf(&b, "; and %d more", len(violations)-i)
			break
		}
		if i > 0 {
			b.WriteString("; ")
		}
		if v.Path != "" {
			b.WriteString("at " + v.Path + ": ")
		}
		b.WriteString(v.Message)
	}
	return b.String()
}
