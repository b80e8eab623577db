package tool

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Limits of a signature. Parameters beyond them are only counted.
const (
	maxSignature  = 400 // bytes
	maxParameters = 40
	maxEnum       = 6
	maxEnumBytes  = 60
	maxNesting    = 4
	maxSchemas    = 300 // visited for one signature
)

// Signature returns the tool's parameters in one compact line, required ones
// first: "repo*, title*, labels?: string[]". A star marks a required parameter,
// a question mark an optional one; a parameter without a type is a string. The
// length is bounded: the line ends with the number of omitted parameters.
func (d Definition) Signature() string {
	root := parseSchema(d.InputSchema)
	w := signer{defs: root.defs(), budget: maxSignature, schemas: maxSchemas}
	return w.object(root, 0)
}

// TypeName returns the type of a property in the notation of a signature.
// References are resolved in root.
func TypeName(property, root json.RawMessage) string {
	w := signer{defs: parseSchema(root).defs(), budget: maxSignature, schemas: maxSchemas}
	return w.typeOf(property, 0)
}

// schema is the part of a JSON Schema that a signature shows.
type schema struct {
	Type       json.RawMessage
	Properties ordered
	Required   []string
	Items      json.RawMessage
	Enum       []json.RawMessage
	Const      json.RawMessage
	AnyOf      []json.RawMessage
	OneOf      []json.RawMessage
	Ref        string
	Defs       ordered
	OldDefs    ordered
}

func (s schema) defs() map[string]json.RawMessage {
	all := make(map[string]json.RawMessage, len(s.Defs)+len(s.OldDefs))
	for _, m := range s.OldDefs {
		all["#/definitions/"+m.name] = m.value
	}
	for _, m := range s.Defs {
		all["#/$defs/"+m.name] = m.value
	}
	return all
}

// parseSchema ignores members of the wrong type, because an invalid schema must
// not hide a tool's parameters.
func parseSchema(raw json.RawMessage) schema {
	var s schema
	var members ordered
	if members.UnmarshalJSON(raw) != nil {
		return s
	}
	for _, m := range members {
		switch m.name {
		case "type":
			s.Type = m.value
		case "properties":
			_ = s.Properties.UnmarshalJSON(m.value)
		case "required":
			_ = json.Unmarshal(m.value, &s.Required)
		case "items":
			s.Items = m.value
		case "enum":
			_ = json.Unmarshal(m.value, &s.Enum)
		case "const":
			s.Const = m.value
		case "anyOf":
			_ = json.Unmarshal(m.value, &s.AnyOf)
		case "oneOf":
			_ = json.Unmarshal(m.value, &s.OneOf)
		case "$ref":
			_ = json.Unmarshal(m.value, &s.Ref)
		case "$defs":
			_ = s.Defs.UnmarshalJSON(m.value)
		case "definitions":
			_ = s.OldDefs.UnmarshalJSON(m.value)
		}
	}
	return s
}

type member struct {
	name  string
	value json.RawMessage
}

// ordered is a JSON object that preserves the order of its members, because
// authors put the important parameters first.
type ordered []member

// UnmarshalJSON reads an object; anything else is an error.
func (o *ordered) UnmarshalJSON(raw []byte) error {
	*o = nil
	dec := json.NewDecoder(bytes.NewReader(raw))
	t, err := dec.Token()
	if err != nil {
		return err
	}
	if t != json.Delim('{') {
		return &json.UnmarshalTypeError{Value: "value", Field: "object"}
	}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string)
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return err
		}
		*o = append(*o, member{name, value})
	}
	return nil
}

// signer writes one signature within a budget of bytes and of work: schemas
// may refer to themselves.
type signer struct {
	defs    map[string]json.RawMessage
	budget  int
	schemas int
	inside  int // if greater than 0, objects are only named, not expanded
}

func (w *signer) object(s schema, depth int) string {
	required := make(map[string]bool, len(s.Required))
	for _, name := range s.Required {
		required[name] = true
	}
	var parts []string
	left := len(s.Properties)
	for _, wanted := range []bool{true, false} {
		for _, p := range s.Properties {
			if required[p.name] != wanted {
				continue
			}
			if len(parts) == maxParameters || w.budget <= 0 {
				break
			}
			part := w.parameter(p, wanted, depth)
			w.budget -= len(part) + 2
			parts = append(parts, part)
			left--
		}
	}
	if left > 0 {
		parts = append(parts, "… +"+strconv.Itoa(left))
	}
	return strings.Join(parts, ", ")
}

func (w *signer) parameter(p member, required bool, depth int) string {
	mark := "?"
	if required {
		mark = "*"
	}
	name := Shorten(oneLine(p.name, 256), 64)
	if t := w.typeOf(p.value, depth); t != "string" {
		return name + mark + ": " + t
	}
	return name + mark
}

// typeOf returns the type of a schema. Objects are expanded one level deep,
// deeper ones are only named, and references are followed within the document.
func (w *signer) typeOf(raw json.RawMessage, depth int) string {
	if w.schemas--; depth > maxNesting || w.schemas < 0 {
		return "any"
	}
	s := parseSchema(raw)
	for range 4 {
		target, ok := w.defs[s.Ref]
		if s.Ref == "" || !ok {
			break
		}
		s = parseSchema(target)
	}
	if s.Const != nil {
		return literals([]json.RawMessage{s.Const})
	}
	if t := literals(s.Enum); t != "" {
		return t
	}
	for _, choices := range [][]json.RawMessage{s.AnyOf, s.OneOf} {
		if len(choices) > 0 {
			return w.union(choices, depth)
		}
	}
	return w.simple(s, depth)
}

func (w *signer) simple(s schema, depth int) string {
	switch name := typeName(s.Type); {
	case name == "array" || name == "" && s.Items != nil:
		item := "any"
		if s.Items != nil {
			item = w.typeOf(s.Items, depth+1)
		}
		if strings.Contains(item, "|") {
			item = "(" + item + ")"
		}
		return item + "[]"
	case name == "object" || name == "" && len(s.Properties) > 0:
		if w.inside > 0 || len(s.Properties) == 0 {
			return "object"
		}
		w.inside++
		defer func() { w.inside-- }()
		return "{" + w.object(s, depth+1) + "}"
	case name == "":
		return "any"
	default:
		return name
	}
}

func (w *signer) union(choices []json.RawMessage, depth int) string {
	choices = slices.DeleteFunc(slices.Clone(choices), func(c json.RawMessage) bool { return string(parseSchema(c).Type) == `"null"` })
	if len(choices) == 1 { // an optional value as written by Pydantic
		return w.typeOf(choices[0], depth+1)
	}
	w.inside++ // expanding several objects would be too long
	defer func() { w.inside-- }()
	var names []string
	seen := map[string]bool{}
	for _, c := range choices {
		if len(names) == maxEnum {
			break
		}
		if name := w.typeOf(c, depth+1); !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return "any"
	}
	return strings.Join(names, "|")
}

// typeName returns the types in raw, a string or a list of strings. It omits
// null, because the parameter is already marked as optional.
func typeName(raw json.RawMessage) string {
	var word string
	if json.Unmarshal(raw, &word) == nil {
		return knownType(word)
	}
	var words []string
	if json.Unmarshal(raw, &words) != nil {
		return ""
	}
	var names []string
	for _, word := range words {
		if name := knownType(word); name != "" && name != "null" && len(names) < maxEnum {
			names = append(names, name)
		}
	}
	return strings.Join(names, "|")
}

func knownType(word string) string {
	switch word {
	case "string", "number", "integer", "boolean", "object", "array", "null":
		return word
	}
	return ""
}

// literals returns the values of an enum if they are few and short, otherwise
// "", so that the plain type is shown instead.
func literals(values []json.RawMessage) string {
	if len(values) == 0 || len(values) > maxEnum {
		return ""
	}
	words := make([]string, len(values))
	size := 0
	for i, v := range values {
		var text bytes.Buffer
		if json.Compact(&text, v) != nil || !utf8.Valid(text.Bytes()) {
			return ""
		}
		words[i] = oneLine(text.String(), maxEnumBytes+1)
		if size += len(words[i]); size > maxEnumBytes {
			return ""
		}
	}
	return strings.Join(words, "|")
}
