package openapi

import (
	"encoding/json"
	"strings"

	"junctor/internal/rawjson"
)

// response is the documented success response of an operation.
type response struct {
	description string
	accept      string // the value of the Accept header
	schema      json.RawMessage
	wrapped     bool // the result is under "result", because it is not an object
}

// response reads the success response: 200, 201, another 2xx, 2XX or default.
func (r reader) response(s source) response {
	raw, doc := successOf(s)
	out := response{description: firstLine(rawjson.FieldString(raw, "description")), accept: "application/json, */*;q=0.5"}
	if generic[strings.ToLower(strings.Trim(out.description, ". "))] {
		out.description = ""
	}
	var schema json.RawMessage
	if doc == nil {
		return out
	}
	if doc.dialect == swagger2 {
		schema = rawjson.Field(raw, "schema")
	} else {
		var types []string
		for mediaType, content := range rawjson.Members(rawjson.Field(raw, "content")) {
			if isJSON(mediaType) && schema == nil {
				schema = rawjson.Field(content, "schema")
				types = append([]string{mediaType}, types...)
			} else {
				types = append(types, mediaType)
			}
		}
		if len(types) > 0 {
			out.accept = strings.Join(append(types, "*/*;q=0.1"), ", ")
		}
	}
	if len(schema) == 0 {
		return out
	}
	if out.description == "" {
		out.description = nameOf(doc, schema)
	}
	text, err := within(maxOutputSchema, true, func(b *schemas) (json.RawMessage, error) {
		return b.outputSchema(doc, schema)
	})
	if err == nil {
		out.schema = text
		out.wrapped = !isObject(doc, schema, 0)
	}
	return out
}

func successOf(s source) (json.RawMessage, *document) {
	var found json.RawMessage
	best := len(successCodes)
	for code, raw := range rawjson.Members(rawjson.Field(s.op, "responses")) {
		for i, fits := range successCodes {
			if i < best && fits(strings.ToUpper(code)) {
				found, best = raw, i
			}
		}
	}
	if found == nil {
		return nil, nil
	}
	raw, doc, err := s.doc.resolve(found)
	if err != nil {
		return nil, nil
	}
	return raw, doc
}

var successCodes = []func(string) bool{
	func(c string) bool { return c == "200" },
	func(c string) bool { return c == "201" },
	func(c string) bool { return len(c) == 3 && c[0] == '2' && c != "204" },
	func(c string) bool { return c == "204" },
	func(c string) bool { return c == "DEFAULT" },
}

// outputSchema returns the schema of the structured result. MCP requires an
// object, so other values are wrapped in "result".
func (s *schemas) outputSchema(d *document, raw json.RawMessage) (json.RawMessage, error) {
	text, err := s.convert(d, raw)
	if err != nil {
		return nil, err
	}
	object := isObject(d, raw, 0)
	var dst []byte
	switch {
	case object && rawjson.FieldString(raw, "$ref") == "" && len(text) > 2:
		if rawjson.FieldString(text, "type") != "object" {
			text = rawjson.SetField(text, json.RawMessage(`"object"`), "type")
		}
		dst = text[:len(text)-1]
	case object:
		dst = append([]byte(`{"type":"object","allOf":[`), text...)
		dst = append(dst, ']')
	default:
		dst = append([]byte(`{"type":"object","properties":{"result":`), text...)
		dst = append(dst, '}')
	}
	dst = s.appendDefs(dst)
	return append(dst, '}'), nil
}

// isObject reports whether a schema clearly describes an object.
func isObject(d *document, raw json.RawMessage, depth int) bool {
	schema, doc, err := d.resolve(raw)
	if err != nil || isTrue(rawjson.Field(schema, "nullable")) {
		return false
	}
	for part := range rawjson.Elements(rawjson.Field(schema, "allOf")) {
		if depth < maxRefChain && isObject(doc, part, depth+1) {
			return true
		}
	}
	kind := rawjson.Field(schema, "type")
	return string(kind) == `"object"` || len(kind) == 0 && len(rawjson.Field(schema, "properties")) > 0
}

// generic are descriptions of responses without information.
var generic = map[string]bool{
	"response": true, "ok": true, "success": true, "successful operation": true, "successful response": true,
	"default response": true, "created": true, "no content": true, "successful": true, "success response": true, "200": true,
}

// nameOf returns the name of what a schema describes: its title or the name in
// the reference.
func nameOf(d *document, raw json.RawMessage) string {
	schema, doc, err := d.resolve(raw)
	if err != nil {
		return ""
	}
	if rawjson.FieldString(schema, "type") == "array" {
		if name := nameOf(doc, rawjson.Field(schema, "items")); name != "" && !strings.HasPrefix(name, "list of ") {
			return "list of " + name
		}
		return ""
	}
	if title := firstLine(rawjson.FieldString(schema, "title")); title != "" {
		return title
	}
	ref := rawjson.FieldString(raw, "$ref")
	return rawjson.UnescapePointer(ref[strings.LastIndexByte(ref, '/')+1:])
}
