package openapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/textproto"
	"slices"
	"strings"

	"junctor/internal/rawjson"
)

// inputs collects the arguments of a tool. The parameters and the body of an
// operation are combined into one flat object.
type inputs struct {
	parameters []parameter
	body       *body
	properties []property
	taken      map[string]bool
}

// property is one argument of the tool.
type property struct {
	argument    string
	doc         *document
	schema      json.RawMessage
	description string // replaces the schema's description
	required    bool
}

// add adds an argument named after a parameter or a member of the body. If the
// name is taken, it is prefixed with its location in the request.
func (in *inputs) add(place string, p property, name string) string {
	base := sanitize(name, 60)
	argument := base
	if in.taken[argument] {
		argument = sanitize(place+"_"+base, 64)
	}
	for n := 2; in.taken[argument]; n++ {
		argument = fmt.Sprintf("%s_%d", base, n)
	}
	in.taken[argument] = true
	p.argument = argument
	in.properties = append(in.properties, p)
	return argument
}

// inputs reads the parameters and the body of an operation.
func (r reader) inputs(s source) (*inputs, error) {
	in := &inputs{taken: map[string]bool{}}
	list, err := parameters(s)
	if err != nil {
		return nil, err
	}
	var form []rawParameter
	for _, p := range list {
		switch where := rawjson.FieldString(p.raw, "in"); where {
		case "path", "query", "header", "cookie":
			in.parameter(p, where)
		case "body": // Swagger 2.0
			in.swaggerBody(p)
		case "formData":
			form = append(form, p)
		default:
			return nil, fmt.Errorf("parameter %q has the unsupported location %q", rawjson.FieldString(p.raw, "name"), where)
		}
	}
	if len(form) > 0 {
		in.swaggerForm(s, form)
	}
	if raw := rawjson.Field(s.op, "requestBody"); len(raw) > 0 {
		raw, doc, err := s.doc.resolve(raw)
		if err != nil {
			return nil, err
		}
		if err := in.requestBody(doc, raw); err != nil {
			return nil, err
		}
	}
	return in, nil
}

type rawParameter struct {
	doc *document
	raw json.RawMessage
}

// parameters returns the parameters of the operation and those of its path
// that the operation does not override.
func parameters(s source) ([]rawParameter, error) {
	var out []rawParameter
	seen := map[string]bool{}
	for _, list := range []json.RawMessage{rawjson.Field(s.op, "parameters"), rawjson.Field(s.item, "parameters")} {
		for raw := range rawjson.Elements(list) {
			p, doc, err := s.doc.resolve(raw)
			if err != nil {
				return nil, err
			}
			key := rawjson.FieldString(p, "in") + " " + rawjson.FieldString(p, "name")
			if !seen[key] {
				seen[key] = true
				out = append(out, rawParameter{doc, p})
			}
		}
	}
	// path parameters first, because they identify the resource
	slices.SortStableFunc(out, func(a, b rawParameter) int { return rank(a) - rank(b) })
	return out, nil
}

func rank(p rawParameter) int {
	return slices.Index([]string{"path", "query", "header", "cookie"}, rawjson.FieldString(p.raw, "in")) & 0xff
}

// ignoredHeaders are set by the HTTP client or the credentials.
var ignoredHeaders = []string{
	"Accept", "Authorization", "Connection", "Content-Length", "Content-Type", "Cookie", "Expect", "Host",
	"Keep-Alive", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
}

func (in *inputs) parameter(raw rawParameter, where string) {
	p := parameter{
		name: rawjson.FieldString(raw.raw, "name"), in: where, style: rawjson.FieldString(raw.raw, "style"),
		reserved: isTrue(rawjson.Field(raw.raw, "allowReserved")),
		required: where == "path" || isTrue(rawjson.Field(raw.raw, "required")),
	}
	if where == "header" && slices.Contains(ignoredHeaders, textproto.CanonicalMIMEHeaderKey(p.name)) {
		return
	}
	schema := rawjson.Field(raw.raw, "schema")
	if content := rawjson.Field(raw.raw, "content"); len(content) > 0 {
		for mediaType, c := range rawjson.Members(content) {
			schema, p.json = rawjson.Field(c, "schema"), isJSON(mediaType)
			break
		}
	}
	if raw.doc.dialect == swagger2 {
		schema = raw.raw // type, items, enum and so on are members of the parameter itself
		p.style, p.explode = collection(rawjson.FieldString(raw.raw, "collectionFormat"), where)
	} else {
		p.style = cmp.Or(p.style, map[string]string{"path": "simple", "header": "simple"}[where], "form")
		p.explode = p.style == "form" || p.style == "cookie" || p.style == "deepObject"
		if e := rawjson.Field(raw.raw, "explode"); len(e) > 0 {
			p.explode = isTrue(e)
		}
	}
	p.argument = in.add(where, property{
		doc: raw.doc, schema: schema, description: rawjson.FieldString(raw.raw, "description"), required: p.required,
	}, p.name)
	in.parameters = append(in.parameters, p)
}

// collection translates Swagger's collection formats to styles.
func collection(format, where string) (style string, explode bool) {
	switch {
	case format == "ssv":
		return "spaceDelimited", false
	case format == "pipes":
		return "pipeDelimited", false
	case format == "tsv":
		return "tabDelimited", false
	case format == "multi":
		return "form", true
	case where == "path" || where == "header":
		return "simple", false
	}
	return "form", false
}

// matchPath returns an error if a template in the path has no parameter.
func (in *inputs) matchPath(path string) error {
	for rest := path; ; {
		_, after, found := strings.Cut(rest, "{")
		if !found {
			return nil
		}
		name, tail, closed := strings.Cut(after, "}")
		if !closed {
			return errors.New("the path has an unclosed {")
		}
		if !slices.ContainsFunc(in.parameters, func(p parameter) bool { return p.in == "path" && p.name == name }) {
			return fmt.Errorf("the path parameter %q is not declared", name)
		}
		rest = tail
	}
}

// bodyTypes match the supported media types of request bodies, the preferred
// first.
var bodyTypes = []func(string) bool{
	isJSON,
	func(t string) bool { return essence(t) == "application/x-www-form-urlencoded" },
	func(t string) bool { return essence(t) == "multipart/form-data" },
	func(t string) bool { return strings.HasPrefix(t, "text/") },
	func(string) bool { return true },
}

func (in *inputs) requestBody(d *document, raw json.RawMessage) error {
	for _, fits := range bodyTypes {
		for mediaType, content := range rawjson.Members(rawjson.Field(raw, "content")) {
			if !fits(mediaType) {
				continue
			}
			in.body = &body{mediaType: mediaType, required: isTrue(rawjson.Field(raw, "required"))}
			p := property{doc: d, schema: rawjson.Field(content, "schema"), description: rawjson.FieldString(raw, "description"), required: in.body.required}
			in.addBody(p, rawjson.Field(content, "encoding"))
			return nil
		}
	}
	return nil
}

// addBody adds an argument for each member of the body if it is a plain
// object, otherwise one for the whole body.
func (in *inputs) addBody(p property, encoding json.RawMessage) {
	b := in.body
	fields := isJSON(b.mediaType) || isForm(b.mediaType)
	members, ok := []property(nil), false
	if fields {
		members, ok = flatten(p.doc, p.schema, 0)
	}
	if !ok || len(members) == 0 {
		if !fields && !strings.HasPrefix(b.mediaType, "text/") {
			p.schema, p.description = json.RawMessage(`{"type":"string","contentEncoding":"base64"}`), strings.TrimSpace(p.description+" The content, in base64.")
		}
		b.argument = in.add("body", p, "body")
		return
	}
	for _, m := range members {
		name := m.argument
		m.required = m.required && b.required
		f := field{name: name, style: parameter{name: name, in: "query", style: "form", explode: true}}
		if isForm(b.mediaType) {
			f.encoding(m, rawjson.Field(encoding, name))
		}
		f.argument = in.add("body", m, name)
		b.fields = append(b.fields, f)
	}
}

// encoding reads the encoding of a form field.
func (f *field) encoding(m property, raw json.RawMessage) {
	f.mediaType = rawjson.FieldString(raw, "contentType")
	if style := rawjson.FieldString(raw, "style"); style != "" {
		f.style.style, f.style.explode = style, style == "form"
	}
	if e := rawjson.Field(raw, "explode"); len(e) > 0 {
		f.style.explode = isTrue(e)
	}
	schema, _, err := m.doc.resolve(m.schema)
	if err != nil {
		return
	}
	if items := rawjson.Field(schema, "items"); len(items) > 0 {
		schema = items
	}
	format := rawjson.FieldString(schema, "format")
	f.binary = format == "binary" || format == "byte" || rawjson.FieldString(schema, "type") == "file" ||
		rawjson.FieldString(schema, "contentMediaType") == "application/octet-stream"
}

// flatten returns the members of a plain object: one with properties, or an
// allOf of such objects. Alternatives and maps are not plain objects.
func flatten(d *document, raw json.RawMessage, depth int) ([]property, bool) {
	schema, doc, err := d.resolve(raw)
	if err != nil || depth > maxRefChain || len(schema) == 0 || schema[0] != '{' {
		return nil, false
	}
	for _, key := range []string{"oneOf", "anyOf", "not", "if", "patternProperties", "discriminator"} {
		if len(rawjson.Field(schema, key)) > 0 {
			return nil, false
		}
	}
	if extra := rawjson.Field(schema, "additionalProperties"); len(extra) > 0 && extra[0] == '{' && len(extra) > 2 {
		return nil, false
	}
	var out []property
	for part := range rawjson.Elements(rawjson.Field(schema, "allOf")) {
		members, ok := flatten(doc, part, depth+1)
		if !ok {
			return nil, false
		}
		out = merge(out, members)
	}
	var required []string
	for name := range rawjson.Elements(rawjson.Field(schema, "required")) {
		required = append(required, rawjson.FieldString(name))
	}
	var own []property
	for name, p := range rawjson.Members(rawjson.Field(schema, "properties")) {
		if !isTrue(rawjson.Field(p, "readOnly")) {
			own = append(own, property{argument: name, doc: doc, schema: p, required: slices.Contains(required, name)})
		}
	}
	out = merge(out, own)
	for i := range out { // "required" next to allOf may name members of its parts
		out[i].required = out[i].required || slices.Contains(required, out[i].argument)
	}
	return out, true
}

// merge adds members to a list; a member with the same name is replaced.
func merge(list, more []property) []property {
	for _, m := range more {
		if i := slices.IndexFunc(list, func(p property) bool { return p.argument == m.argument }); i >= 0 {
			list[i] = m
		} else {
			list = append(list, m)
		}
	}
	return list
}

// schema returns the input schema of the tool.
func (in *inputs) schema(s *schemas) (json.RawMessage, error) {
	dst := []byte(`{"type":"object","properties":{`)
	var required []byte
	for _, p := range in.properties {
		text, err := s.convert(p.doc, p.schema)
		if err != nil {
			return nil, err
		}
		if p.description != "" && text[0] == '{' {
			quoted := rawjson.AppendQuoted(nil, cut(strings.TrimSpace(p.description), maxDescription))
			text = rawjson.SetField(text, quoted, "description")
		}
		dst = rawjson.AppendComma(dst)
		dst = append(rawjson.AppendQuoted(dst, p.argument), ':')
		dst = append(dst, text...)
		if p.required {
			required = rawjson.AppendQuoted(append(required, ','), p.argument)
		}
	}
	dst = append(dst, '}')
	if len(required) > 0 {
		dst = append(append(dst, `,"required":[`...), required[1:]...)
		dst = append(dst, ']')
	}
	dst = append(dst, `,"additionalProperties":false`...)
	dst = s.appendDefs(dst)
	return append(dst, '}'), nil
}

// essence returns a media type without parameters, in lower case.
func essence(mediaType string) string {
	t, _, _ := strings.Cut(mediaType, ";")
	return strings.ToLower(strings.TrimSpace(t))
}

func isJSON(mediaType string) bool {
	t := essence(mediaType)
	return t == "application/json" || strings.HasSuffix(t, "+json") || t == "text/json"
}

func isForm(mediaType string) bool {
	t := essence(mediaType)
	return t == "application/x-www-form-urlencoded" || t == "multipart/form-data"
}
