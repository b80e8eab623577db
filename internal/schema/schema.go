// Package schema checks JSON values against the JSON Schemas of MCP servers:
// 2020-12 and draft-07.
//
// It reports all violations together, each with its location in the value and
// in the schema. It never fetches anything: a reference to another document is
// an error of the schema.
//
// Neither schema nor value is trusted. A schema is compiled by the library,
// after its cost was estimated. A value is checked by our own evaluator of the
// compiled schema, which counts its steps and collects a bounded number of
// violations, because that of the library accepts no context and has no limits.
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

// Violation is one violation of a schema by a value.
type Violation struct {
	Path    string `json:"path"`    // JSON pointer into the value; "" is the value itself
	Schema  string `json:"schema"`  // JSON pointer of the keyword in the schema
	Message string `json:"message"` // what is wrong, in words
}

// maxViolations bounds the violations that one check reports.
const maxViolations = 50

// resource is the URL of a schema while it is compiled.
const resource = "schema:///tool"

// Compile compiles a schema. Without $schema it is treated as 2020-12, which
// accepts schemas written for draft-07 except for redefined keywords. If it has
// an array as items, which only older drafts allow, it is treated as draft-07.
func Compile(raw json.RawMessage) (*Schema, error) {
	compiled, err := compile(raw)
	if err != nil {
		return nil, err
	}
	return &Schema{compiled}, nil
}

type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	return nil, fmt.Errorf("%s points outside the schema", url)
}

// Check returns the violations of the schema by value, or none if it is valid.
// An error means that the check was aborted: ErrTooCostly, or the error of ctx.
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

// shownViolations bounds the violations in a Summary.
const shownViolations = 5

// Summary describes violations in one line for people and models.
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
