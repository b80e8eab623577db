package openapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"junctor/internal/rawjson"
)

// Limits of the schemas of one tool, in bytes. A larger schema is rebuilt with
// fewer levels of references; schemas below those levels accept any value.
const (
	maxInputSchema  = 64 << 10
	maxOutputSchema = 8 << 10
)

var errTooLarge = errors.New("schema too large")

// schemas builds self-contained JSON Schemas for one tool: referenced schemas
// are copied to $defs.
type schemas struct {
	output bool // for results; descriptive only, see keyword
	levels int  // of references; schemas below accept any value
	limit  int  // bytes
	size   int
	names  map[string]string // file and reference → name under $defs
	defs   []definition
}

type definition struct {
	name string
	text json.RawMessage
}

// pending is a referenced schema that has yet to be copied.
type pending struct {
	doc   *document
	raw   json.RawMessage
	name  string
	level int
}

// within calls build with as many levels of references as fit into limit.
func within(limit int, output bool, build func(*schemas) (json.RawMessage, error)) (json.RawMessage, error) {
	for _, levels := range []int{maxDepth, 4, 2, 1, 0} {
		s := &schemas{output: output, levels: levels, limit: limit, names: map[string]string{}}
		text, err := build(s)
		if !errors.Is(err, errTooLarge) {
			return text, err
		}
	}
	return nil, errTooLarge
}

// copier copies one schema and queues the references in it.
type copier struct {
	*schemas
	doc   *document
	level int
	queue *[]pending
}

// convert returns the schema in JSON Schema 2020-12. Referenced schemas are
// added to the definitions.
func (s *schemas) convert(d *document, raw json.RawMessage) (json.RawMessage, error) {
	var queue []pending
	text, err := copier{s, d, 0, &queue}.schema(nil, raw, 0)
	for err == nil && len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		var def json.RawMessage
		if def, err = (copier{s, next.doc, next.level, &queue}).schema(nil, next.raw, 0); err == nil {
			s.defs = append(s.defs, definition{next.name, def})
		}
	}
	return text, err
}

// appendDefs writes the member $defs if there are definitions.
func (s *schemas) appendDefs(dst []byte) []byte {
	if len(s.defs) == 0 {
		return dst
	}
	dst = append(dst, `,"$defs":{`...)
	for _, d := range s.defs {
		dst = append(rawjson.AppendQuoted(rawjson.AppendComma(dst), d.name), ':')
		dst = append(dst, d.text...)
	}
	return append(dst, '}')
}

func (c copier) schema(dst []byte, raw json.RawMessage, depth int) ([]byte, error) {
	switch {
	case depth > maxDepth:
		return nil, fmt.Errorf("a schema is nested deeper than %d levels", maxDepth)
	case string(raw) == "true" || string(raw) == "false":
		return append(dst, raw...), nil
	case len(raw) == 0 || raw[0] != '{':
		return append(dst, `{}`...), nil
	}
	before := len(dst)
	var err error
	if ref := rawjson.FieldString(raw, "$ref"); ref != "" {
		dst, err = c.reference(dst, ref, raw, depth)
	} else {
		dst, err = c.object(dst, raw, depth)
	}
	if err != nil {
		return nil, err
	}
	if depth == 0 { // includes nested schemas
		if c.size += len(dst) - before; c.size > c.limit {
			return nil, errTooLarge
		}
	} else if len(dst) > c.limit {
		return nil, errTooLarge
	}
	return dst, nil
}

// reference writes a reference into $defs, with its description. In results, a
// nested value that is a reference may also be null.
func (c copier) reference(dst []byte, ref string, raw json.RawMessage, depth int) ([]byte, error) {
	target, doc, err := c.doc.lookup(ref)
	if err != nil {
		return nil, err
	}
	null := c.output && depth > 0 && c.level < c.levels
	if null {
		dst = append(dst, `{"anyOf":[`...)
	}
	dst = append(dst, '{')
	if c.level < c.levels {
		key := doc.file + "#" + ref[strings.IndexByte(ref, '#')+1:]
		if !strings.Contains(ref, "#") {
			key = doc.file + "#"
		}
		name, known := c.names[key]
		if !known {
			name = c.defName(ref)
			c.names[key] = name
			*c.queue = append(*c.queue, pending{doc, target, name, c.level + 1})
		}
		dst = append(dst, `"$ref":`...)
		dst = rawjson.AppendQuoted(dst, "#/$defs/"+name)
	}
	if text := rawjson.Field(raw, "description"); len(text) > 0 && text[0] == '"' {
		dst = append(append(rawjson.AppendComma(dst), `"description":`...), text...)
	}
	dst = append(dst, '}')
	if null {
		dst = append(dst, `,{"type":"null"}]}`...)
	}
	return dst, nil
}

// defName returns the last part of the reference, made unique.
func (c copier) defName(ref string) string {
	base := sanitize(rawjson.UnescapePointer(ref[strings.LastIndexByte(ref, '/')+1:]), 64)
	name := base
	for n := 2; slices.Contains(slices.Collect(maps.Values(c.names)), name); n++ {
		name = fmt.Sprintf("%s_%d", base, n)
	}
	return name
}

// object writes a schema that is an object without a reference.
func (c copier) object(dst []byte, raw json.RawMessage, depth int) ([]byte, error) {
	nullable := c.doc.dialect != openapi31 && (isTrue(rawjson.Field(raw, "nullable")) || isTrue(rawjson.Field(raw, "x-nullable")))
	kind := rawjson.Field(raw, "type")
	wrap := nullable && len(kind) == 0
	if wrap {
		dst = append(dst, `{"anyOf":[`...)
	}
	hidden := c.hidden(raw)
	dst = append(dst, '{')
	var err error
	for key, value := range rawjson.Members(raw) {
		before := len(dst)
		dst = rawjson.AppendComma(dst)
		mark := len(dst)
		if dst, err = c.keyword(dst, key, value, keywordContext{raw, nullable, hidden, depth}); err != nil {
			return nil, err
		}
		if len(dst) == mark {
			dst = dst[:before]
		}
	}
	dst = append(dst, '}')
	if wrap {
		dst = append(dst, `,{"type":"null"}]}`...)
	}
	return dst, nil
}

type keywordContext struct {
	schema   json.RawMessage
	nullable bool
	hidden   []string // properties that do not apply to this direction
	depth    int
}

// keyword writes one keyword of a schema, or nothing if it has no meaning in
// JSON Schema. For results only descriptive keywords are kept: services
// deviate from their documents, and clients reject a result that does not
// match its schema.
func (c copier) keyword(dst []byte, key string, value json.RawMessage, at keywordContext) ([]byte, error) {
	name := func() []byte { return append(rawjson.AppendQuoted(dst, key), ':') }
	plain := func() ([]byte, error) { return append(name(), value...), nil }
	switch key {
	case "properties", "patternProperties", "$defs", "definitions", "dependentSchemas":
		return c.members(name(), value, at)
	case "items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames",
		"unevaluatedItems", "unevaluatedProperties", "additionalItems", "contentSchema":
		if c.output && string(value) == "false" {
			return dst, nil
		}
		if len(value) > 0 && value[0] == '[' { // items before 2020-12
			return c.list(append(dst, `"prefixItems":`...), value, at.depth)
		}
		return c.schema(name(), value, at.depth+1)
	case "allOf", "anyOf", "oneOf", "prefixItems":
		if c.output && key == "oneOf" { // null may match several
			key = "anyOf"
		}
		return c.list(name(), value, at.depth)
	case "type":
		return c.types(name(), value, at), nil
	case "required":
		if c.output {
			return dst, nil
		}
		return requiredWithout(dst, value, at.hidden), nil
	case "enum":
		if value[0] != '[' {
			return dst, nil
		}
		if !at.nullable && (!c.output || at.depth == 0) {
			return plain()
		}
		dst = append(name(), '[')
		null := false
		for e := range rawjson.Elements(value) {
			dst = append(rawjson.AppendComma(dst), e...)
			null = null || rawjson.IsNull(e)
		}
		if !null {
			dst = append(rawjson.AppendComma(dst), "null"...)
		}
		return append(dst, ']'), nil
	case "exclusiveMinimum", "exclusiveMaximum":
		if isTrue(value) {
			bound := rawjson.Field(at.schema, strings.ToLower(strings.TrimPrefix(key, "exclusive")))
			if len(bound) == 0 || c.output {
				return dst, nil
			}
			return append(name(), bound...), nil
		}
		if string(value) == "false" || c.output {
			return dst, nil
		}
		return plain()
	case "minimum", "maximum":
		if c.output || isTrue(rawjson.Field(at.schema, "exclusive"+strings.ToUpper(key[:1])+key[1:])) {
			return dst, nil
		}
		return plain()
	case "example":
		if c.output || len(rawjson.Field(at.schema, "examples")) > 0 {
			return dst, nil
		}
		dst = append(append(dst, `"examples":[`...), value...)
		return append(dst, ']'), nil
	case "format":
		if f := rawjson.FieldString(value); f == "binary" || f == "byte" {
			return append(dst, `"contentEncoding":"base64"`...), nil
		} else if c.output {
			return dst, nil
		}
		return plain()
	case "title", "description", "const", "default", "deprecated", "contentEncoding", "contentMediaType":
		return plain()
	case "pattern", "minLength", "maxLength", "multipleOf", "minItems", "maxItems", "uniqueItems", "minContains",
		"maxContains", "minProperties", "maxProperties", "dependentRequired", "examples":
		if c.output || (key == "examples" && value[0] != '[') {
			return dst, nil
		}
		return plain()
	}
	return dst, nil // discriminator, xml, nullable, $schema, x-…
}

// types writes the type of a schema. In results, nested values may also be
// null.
func (c copier) types(dst []byte, value json.RawMessage, at keywordContext) []byte {
	if string(value) == `"file"` { // Swagger 2.0
		return append(dst, `"string","contentEncoding":"base64"`...)
	}
	if (at.nullable || (c.output && at.depth > 0)) && len(value) > 0 && value[0] == '"' && string(value) != `"null"` {
		dst = append(append(dst, '['), value...)
		return append(dst, `,"null"]`...)
	}
	return append(dst, value...)
}

// members writes an object whose values are schemas.
func (c copier) members(dst []byte, value json.RawMessage, at keywordContext) ([]byte, error) {
	dst = append(dst, '{')
	var err error
	for name, schema := range rawjson.Members(value) {
		if slices.Contains(at.hidden, name) {
			continue
		}
		dst = rawjson.AppendComma(dst)
		dst = append(rawjson.AppendQuoted(dst, name), ':')
		if dst, err = c.schema(dst, schema, at.depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

func (c copier) list(dst []byte, value json.RawMessage, depth int) ([]byte, error) {
	dst = append(dst, '[')
	var err error
	for schema := range rawjson.Elements(value) {
		dst = rawjson.AppendComma(dst)
		if dst, err = c.schema(dst, schema, depth+1); err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

// hidden returns the properties that do not apply to this direction: readOnly
// ones are not sent, and writeOnly ones are not returned.
func (c copier) hidden(schema json.RawMessage) []string {
	key := "readOnly"
	if c.output {
		key = "writeOnly"
	}
	var out []string
	for name, property := range rawjson.Members(rawjson.Field(schema, "properties")) {
		if isTrue(rawjson.Field(property, key)) {
			out = append(out, name)
		}
	}
	return out
}

func requiredWithout(dst []byte, list json.RawMessage, hidden []string) []byte {
	if len(list) == 0 || list[0] != '[' { // in Swagger parameters it is a bool
		return dst
	}
	start := len(dst)
	dst = append(dst, `"required":[`...)
	empty := len(dst)
	for name := range rawjson.Elements(list) {
		if slices.Contains(hidden, rawjson.FieldString(name)) {
			continue
		}
		dst = rawjson.AppendComma(dst)
		dst = append(dst, name...)
	}
	if len(dst) == empty {
		return dst[:start]
	}
	return append(dst, ']')
}

func isTrue(raw json.RawMessage) bool { return string(raw) == "true" }
