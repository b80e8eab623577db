package openapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"junctor/internal/rawjson"
)

// value is an argument as the styles of parameters see it: one text, a list
// of them, or an object of them. Values nested deeper are written as JSON.
type value struct {
	one  string
	list []string
	keys []string // of an object, beside list
	kind byte     // 's', 'a' or 'o'
}

func parseValue(raw json.RawMessage) value {
	switch {
	case len(raw) > 0 && raw[0] == '[':
		v := value{kind: 'a'}
		for e := range rawjson.Elements(raw) {
			v.list = append(v.list, scalar(e))
		}
		return v
	case len(raw) > 0 && raw[0] == '{':
		v := value{kind: 'o'}
		for name, e := range rawjson.Members(raw) {
			v.keys, v.list = append(v.keys, name), append(v.list, scalar(e))
		}
		return v
	}
	return value{kind: 's', one: scalar(raw)}
}

// scalar is a string without its quotes, and everything else as JSON.
func scalar(raw json.RawMessage) string {
	if len(raw) > 0 && raw[0] == '"' {
		return rawjson.FieldString(raw)
	}
	return strings.TrimSpace(string(raw))
}

// pairs joins the names and values of an object.
func (v value) pairs(equals, separator string, escape func(string) string) string {
	var b strings.Builder
	for i, k := range v.keys {
		if i > 0 {
			b.WriteString(separator)
		}
		b.WriteString(escape(k) + equals + escape(v.list[i]))
	}
	return b.String()
}

// joined writes the values (and names, for an object) with a separator.
func (v value) joined(separator string, escape func(string) string) string {
	switch v.kind {
	case 's':
		return escape(v.one)
	case 'o':
		return v.pairs(separator, separator, escape)
	}
	out := make([]string, len(v.list))
	for i, s := range v.list {
		out[i] = escape(s)
	}
	return strings.Join(out, separator)
}

// inPath writes a path parameter. A value cannot leave its segment.
func (p parameter) inPath(raw json.RawMessage) (string, error) {
	v := parseValue(raw)
	if p.json {
		v = value{kind: 's', one: string(raw)}
	}
	var out string
	switch p.style {
	case "label":
		out = "." + v.joined(map[bool]string{true: ".", false: ","}[p.explode && v.kind == 'a'], escapeValue)
		if v.kind == 'o' && p.explode {
			out = "." + v.pairs("=", ".", escapeValue)
		}
	case "matrix":
		out = p.matrix(v)
	default:
		if v.kind == 'o' && p.explode {
			out = v.pairs("=", ",", escapeValue)
		} else {
			out = v.joined(",", escapeValue)
		}
	}
	if out == "" || out == "." || out == ".." {
		return "", fmt.Errorf("argument %q: %q cannot be a part of the path", p.argument, scalar(raw))
	}
	return out, nil
}

func (p parameter) matrix(v value) string {
	name := ";" + escapeValue(p.name) + "="
	switch {
	case v.kind == 'a' && p.explode:
		out := ""
		for _, s := range v.list {
			out += name + escapeValue(s)
		}
		return out
	case v.kind == 'o' && p.explode:
		return ";" + v.pairs("=", ";", escapeValue)
	}
	return name + v.joined(",", escapeValue)
}

// inQuery writes a query parameter, as name=value pairs joined by &.
func (p parameter) inQuery(raw json.RawMessage) string {
	escape := escapeValue
	if p.reserved {
		escape = escapeReserved
	}
	name := escapeValue(p.name) + "="
	if p.json {
		return name + escape(string(raw))
	}
	v := parseValue(raw)
	switch {
	case p.style == "deepObject" && v.kind == 'o':
		return strings.Join(appendDeepObject(nil, escapeValue(p.name), raw, escape, 0), "&")
	case v.kind == 'a' && p.explode:
		out := make([]string, len(v.list))
		for i, s := range v.list {
			out[i] = name + escape(s)
		}
		return strings.Join(out, "&")
	case v.kind == 'o' && p.explode && p.style == "form":
		return v.pairs("=", "&", escape)
	}
	separator := map[string]string{"spaceDelimited": "%20", "pipeDelimited": "%7C", "tabDelimited": "%09"}[p.style]
	return name + v.joined(cmp.Or(separator, ","), escape)
}

// appendDeepObject writes an object as name[key]=value, nested ones as name[a][b]=value.
func appendDeepObject(out []string, name string, raw json.RawMessage, escape func(string) string, depth int) []string {
	switch {
	case depth < maxRefChain && len(raw) > 0 && raw[0] == '{':
		for key, value := range rawjson.Members(raw) {
			out = appendDeepObject(out, name+"%5B"+escapeValue(key)+"%5D", value, escape, depth+1)
		}
	case depth < maxRefChain && len(raw) > 0 && raw[0] == '[':
		for value := range rawjson.Elements(raw) {
			out = appendDeepObject(out, name, value, escape, depth+1)
		}
	default:
		out = append(out, name+"="+escape(scalar(raw)))
	}
	return out
}

// inHeader writes a header parameter.
func (p parameter) inHeader(raw json.RawMessage) (string, error) {
	out := string(raw)
	if !p.json {
		v := parseValue(raw)
		same := func(s string) string { return s }
		if out = v.joined(",", same); v.kind == 'o' && p.explode {
			out = v.pairs("=", ",", same)
		}
	}
	if strings.ContainsAny(out, "\r\n\x00") {
		return "", fmt.Errorf("argument %q: a header cannot contain a line break", p.argument)
	}
	return out, nil
}

// escapeValue escapes everything but unreserved characters.
func escapeValue(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}

// escapeReserved leaves reserved characters as they are, except those that
// would end the value or the query.
func escapeReserved(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; strings.IndexByte(":/?@!$'()*,;", c) >= 0 {
			b.WriteByte(c)
		} else {
			b.WriteString(escapeValue(s[i : i+1]))
		}
	}
	return b.String()
}
