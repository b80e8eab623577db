package openapi

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"junctor/internal/rawjson"
)

// swaggerBody adds the body parameter of a Swagger 2.0 operation.
func (in *inputs) swaggerBody(p rawParameter) {
	in.body = &body{mediaType: "application/json", required: isTrue(rawjson.Field(p.raw, "required"))}
	in.addBody(property{
		doc: p.doc, schema: rawjson.Field(p.raw, "schema"), description: rawjson.FieldString(p.raw, "description"), required: in.body.required,
	}, nil)
}

// swaggerForm adds the form parameters of a Swagger 2.0 operation.
func (in *inputs) swaggerForm(s source, form []rawParameter) {
	mediaType := "application/x-www-form-urlencoded"
	consumes := rawjson.Field(s.op, "consumes")
	if len(consumes) == 0 {
		consumes = rawjson.Field(s.doc.raw, "consumes")
	}
	for t := range rawjson.Elements(consumes) {
		if isForm(rawjson.FieldString(t)) {
			mediaType = rawjson.FieldString(t)
			break
		}
	}
	in.body = &body{required: true}
	for _, p := range form {
		f := field{name: rawjson.FieldString(p.raw, "name")}
		f.style = parameter{name: f.name, in: "query"}
		f.style.style, f.style.explode = collection(rawjson.FieldString(p.raw, "collectionFormat"), "query")
		if f.binary = rawjson.FieldString(p.raw, "type") == "file"; f.binary {
			mediaType = "multipart/form-data"
		}
		f.argument = in.add("body", property{
			doc: p.doc, schema: p.raw, description: rawjson.FieldString(p.raw, "description"), required: isTrue(rawjson.Field(p.raw, "required")),
		}, f.name)
		in.body.fields = append(in.body.fields, f)
	}
	in.body.mediaType = mediaType
}

// baseOf returns the service's address as written in the document. It may be
// relative to the document's URL.
func baseOf(d *document) string {
	if d.dialect != swagger2 {
		return serverURL(rawjson.Field(d.raw, "servers"))
	}
	host, base := rawjson.FieldString(d.raw, "host"), rawjson.FieldString(d.raw, "basePath")
	if host == "" {
		return base
	}
	scheme := "https"
	var schemes []string
	if json.Unmarshal(rawjson.Field(d.raw, "schemes"), &schemes) == nil && len(schemes) > 0 && !slices.ContainsFunc(schemes, func(s string) bool { return strings.EqualFold(s, "https") }) {
		scheme = schemes[0]
	}
	return (&url.URL{Scheme: scheme, Host: host, Path: "/" + strings.TrimPrefix(base, "/")}).String()
}
