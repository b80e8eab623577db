package openapi

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"junctor/internal/rawjson"
)

// metaLinks is the key in _meta for the links of a response.
const metaLinks = "junctor/links"

// result converts a response to the result of the call.
func (o *operation) result(resp *http.Response, content []byte) json.RawMessage {
	failed := resp.StatusCode >= 400
	var out struct {
		Content    []any           `json:"content"`
		Structured json.RawMessage `json:"structuredContent,omitempty"`
		IsError    bool            `json:"isError,omitempty"`
		Meta       map[string]any  `json:"_meta,omitempty"`
	}
	mediaType := essence(resp.Header.Get("Content-Type"))
	valid := (isJSON(mediaType) || mediaType == "") && len(content) > 0 && rawjson.Check(content, maxDepth) == nil
	switch {
	case failed:
		out.IsError = true
		out.Content = []any{textBlock(failure(resp.StatusCode, mediaType, content, valid))}
	case valid:
		out.Content = []any{textBlock(string(content))}
		out.Structured = o.structuredContent(content)
	default:
		out.Content = []any{block(resp, mediaType, content)}
		if o.structured {
			out.Structured = json.RawMessage(`{}`)
		}
	}
	if links := linkHeader(resp.Header.Values("Link")); len(links) > 0 {
		out.Meta = map[string]any{metaLinks: links}
	}
	encoded, err := json.Marshal(out)
	if err != nil { // all values can be marshalled
		return json.RawMessage(`{"content":[],"isError":true}`)
	}
	return encoded
}

// structuredContent returns the JSON of a response as an object.
func (o *operation) structuredContent(content []byte) json.RawMessage {
	content = bytes.TrimSpace(content)
	if content[0] == '{' && !o.wrapped {
		return content
	}
	return append(append([]byte(`{"result":`), content...), '}')
}

func textBlock(s string) map[string]any {
	return map[string]any{"type": "text", "text": strings.ToValidUTF8(s, "\ufffd")}
}

// block returns the content block for a response that is not JSON.
func block(resp *http.Response, mediaType string, content []byte) map[string]any {
	encoded := func() string { return base64.StdEncoding.EncodeToString(content) }
	switch {
	case len(content) == 0:
		return textBlock(status(resp.StatusCode))
	case strings.HasPrefix(mediaType, "image/") && mediaType != "image/svg+xml":
		return map[string]any{"type": "image", "data": encoded(), "mimeType": mediaType}
	case strings.HasPrefix(mediaType, "audio/"):
		return map[string]any{"type": "audio", "data": encoded(), "mimeType": mediaType}
	case isText(mediaType) || mediaType == "" && utf8.Valid(content):
		return textBlock(string(content))
	}
	uri := *resp.Request.URL
	uri.RawQuery, uri.User = "", nil // may contain an API key
	return map[string]any{"type": "resource", "resource": map[string]any{"uri": uri.String(), "mimeType": cmp.Or(mediaType, "application/octet-stream"), "blob": encoded()}}
}

func isText(mediaType string) bool {
	return strings.HasPrefix(mediaType, "text/") || strings.HasSuffix(mediaType, "+xml") || isJSON(mediaType) ||
		mediaType == "application/xml" || mediaType == "application/yaml" || mediaType == "application/x-yaml" ||
		mediaType == "application/javascript" || mediaType == "application/x-ndjson"
}

func status(code int) string {
	return strings.TrimSpace(fmt.Sprintf("%d %s", code, http.StatusText(code)))
}

// failure describes a response with status 400 or above: the status, followed
// by the fields of a problem (RFC 9457) or the body.
func failure(code int, mediaType string, content []byte, valid bool) string {
	out := status(code)
	if mediaType == "application/problem+json" && valid {
		for _, key := range []string{"title", "detail", "instance", "type"} {
			if v := rawjson.FieldString(content, key); v != "" && v != "about:blank" && v != http.StatusText(code) {
				out += "\n" + key + ": " + v
			}
		}
		for key, v := range rawjson.Members(content) {
			switch key {
			case "title", "detail", "instance", "type", "status":
			default:
				out += "\n" + key + ": " + scalar(v)
			}
		}
		return out
	}
	if len(content) == 0 {
		return out
	}
	if !isText(mediaType) && mediaType != "" || !utf8.Valid(content) {
		return fmt.Sprintf("%s\n(%d bytes of %s)", out, len(content), mediaType)
	}
	return out + "\n" + string(content)
}

// linkHeader returns the targets of Link headers by relation, such as next or
// prev.
func linkHeader(values []string) map[string]string {
	links := map[string]string{}
	for _, v := range values {
		for v != "" && len(links) < 20 {
			_, after, found := strings.Cut(v, "<")
			if !found {
				break
			}
			target, rest, found := strings.Cut(after, ">")
			if !found {
				break
			}
			params, next, _ := strings.Cut(rest, ",")
			for param := range strings.SplitSeq(params, ";") {
				name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
				if strings.EqualFold(name, "rel") {
					for rel := range strings.FieldsSeq(strings.Trim(value, `"`)) {
						links[rel] = target
					}
				}
			}
			v = next
		}
	}
	return links
}
