package mcp

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"junctor/internal/rawjson"
)

// HeaderParam is an argument of a tool that HTTP requests repeat in the
// header Mcp-Param-<Header>.
type HeaderParam struct {
	Path   []string
	Header string
}

// maxSchemaDepth bounds the depth at which x-mcp-header annotations are read.
const maxSchemaDepth = 64

// HeaderParams returns the x-mcp-header annotations of an input schema. If one
// violates MCP it returns an error, and the tool must not be listed over HTTP.
func HeaderParams(schema json.RawMessage) ([]HeaderParam, error) {
	return appendHeaderParams(nil, schema, nil, map[string]bool{})
}

func appendHeaderParams(found []HeaderParam, schema json.RawMessage, path []string, seen map[string]bool) ([]HeaderParam, error) {
	if len(path) > maxSchemaDepth {
		return found, nil
	}
	for name, property := range rawjson.Members(rawjson.Field(schema, "properties")) {
		at := append(path[:len(path):len(path)], name)
		if mark := rawjson.Field(property, "x-mcp-header"); mark != nil {
			header, ok := rawjson.Unquote(mark)
			where := strings.Join(at, ".")
			switch {
			case !ok || header == "":
				return nil, fmt.Errorf("property %q: x-mcp-header must be a non-empty string", where)
			case strings.IndexFunc(header, func(r rune) bool { return !tokenRune(r) }) >= 0:
				return nil, fmt.Errorf("property %q: x-mcp-header %q is not a valid header name", where, header)
			case seen[strings.ToLower(header)]:
				return nil, fmt.Errorf("property %q: x-mcp-header %q is used twice", where, header)
			}
			switch kind := rawjson.FieldString(property, "type"); kind {
			case "string", "integer", "boolean":
			default:
				return nil, fmt.Errorf("property %q: x-mcp-header needs the type string, integer or boolean, not %q", where, kind)
			}
			seen[strings.ToLower(header)] = true
			found = append(found, HeaderParam{Path: at, Header: header})
		}
		var err error
		if found, err = appendHeaderParams(found, property, at, seen); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// tokenRune reports whether r is allowed in the name of an HTTP header.
func tokenRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// HeaderText returns an argument as text; ok is false if it is missing, null, or
// of a type that is not allowed in a header.
func HeaderText(raw json.RawMessage) (s string, ok bool) {
	if len(raw) == 0 {
		return "", false
	}
	switch raw[0] {
	case '"':
		return rawjson.Unquote(raw)
	case 't', 'f':
		return string(raw), true
	case 'n', '{', '[':
		return "", false
	}
	const safe = 1<<53 - 1 // the largest integer that JavaScript represents exactly
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || f != float64(int64(f)) {
			return "", false
		}
		n = int64(f)
	}
	if n > safe || n < -safe {
		return "", false
	}
	return strconv.FormatInt(n, 10), true
}

const (
	base64Open  = "=?base64?"
	base64Close = "?="
)

// HeaderValue returns text as the value of an HTTP header. It encodes text that is
// not a valid value as MCP specifies.
func HeaderValue(s string) string {
	plain := !(strings.HasPrefix(s, base64Open) && strings.HasSuffix(s, base64Close))
	for i := 0; plain && i < len(s); i++ {
		c := s[i]
		plain = ' ' < c && c < 0x7f || (c == ' ' || c == '\t') && i > 0 && i < len(s)-1
	}
	if plain {
		return s
	}
	return base64Open + base64.StdEncoding.EncodeToString([]byte(s)) + base64Close
}

// ParseHeaderValue reverses HeaderValue; ok is false if the encoding is invalid.
func ParseHeaderValue(s string) (value string, ok bool) {
	inner, found := strings.CutPrefix(s, base64Open)
	if !found || !strings.HasSuffix(inner, base64Close) {
		return s, true
	}
	b, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(inner, base64Close))
	if err != nil {
		return "", false
	}
	return string(b), true
}
