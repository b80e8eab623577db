package openapi

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"junctor/internal/rawjson"
)

// value is an argument as parameter styles handle it: one string, a list of
// strings, or an object of strings. More deeply nested values are strings of
// JSON.
type value struct {
	one  string
	list []string
	keys []string // of an object, parallel to list
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

// scalar returns the value of a JSON string, and other values as JSON.
func scalar(raw json.RawMessage) string {
	if len(raw) > 0 && raw[0] == '"' {
		return rawjson.FieldString(raw)
	}
	return strings.TrimSpace(string(raw))
}

// pairs joins the keys and values of an object.
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

// joined joins the values (and keys, for an object) with a separator.
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

// inPath returns a path parameter. The value cannot leave its path segment.
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

// inQuery returns a query parameter as name=value pairs joined by &.
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

// appendDeepObject appends an object as name[key]=value, nested ones as
// name[a][b]=value.
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

// inHeader returns a header parameter.
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

// escapeValue escapes all characters that are not unreserved.
func escapeValue(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}

// escapeReserved keeps reserved characters, except those that would end the
// value or the query.
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
