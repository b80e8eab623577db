// Package schema checks JSON values against JSON Schemas, 2020-12 and
// draft-07, as MCP servers write them.
//
// It promises every violation at once, each with its place in the value and
// in the schema, and it never fetches anything: a reference that leads out of
// the schema is an error of the schema.
//
// Neither schema nor value is trusted. A schema is compiled by the library,
// after a look at what that would cost; a value is checked by an evaluator of
// our own over the compiled schema, because the library's takes no context and
// has no bound: it counts its steps and keeps a bounded number of violations.
package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"golang.org/x/text/language"
	"golang.org/x/text/message"

	"junctor/internal/rawjson"
)

// Schema is a compiled JSON Schema. It is safe for concurrent use.
type Schema struct{ compiled *jsonschema.Schema }

// Violation is one way in which a value breaks a schema.
type Violation struct {
	Path    string `json:"path"`    // JSON pointer into the value; "" is the value itself
	Schema  string `json:"schema"`  // JSON pointer of the keyword in the schema
	Message string `json:"message"` // what is wrong, in words
}

// maxViolations bounds how many violations one check reports.
const maxViolations = 50

// resource is the address that a schema has while it is compiled.
const resource = "schema:///tool"

// Compile prepares a schema. One without $schema is read as 2020-12, which
// accepts what draft-07 authors write but for the words it redefined; one that
// uses an array as items, which only older drafts allow, is read as draft-07.
func Compile(raw json.RawMessage) (*Schema, error) {
	compiled, err := compile(raw)
	if err != nil {
		return nil, err
	}
	return &Schema{compiled}, nil
}

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s leads out of the schema", url)
}

// Check returns the ways in which value breaks the schema, none when it fits.
// An error means that the check was given up: ErrTooCostly, or that of ctx.
func (s *Schema) Check(ctx context.Context, value json.RawMessage) ([]Violation, error) {
	v, err := decode(value)
	if err != nil {
		return []Violation{{Message: "not valid JSON: " + err.Error()}}, nil
	}
	return check(ctx, s.compiled, v, len(value))
}

var errMoreValues = errors.New("more than one value")

var english = message.NewPrinter(language.English)

func (v Violation) where() string {
	if v.Path == "" {
		return ""
	}
	return v.Path + ": "
}

func pointer(path []string) string {
	var b strings.Builder
	for _, p := range path {
		b.WriteByte('/')
		b.WriteString(rawjson.EscapePointer(p))
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
