package discovery

import (
	"encoding/json"
	"strings"

	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// answer returns a tool result with v as compact JSON text.
func answer(v any) json.RawMessage { return textResult(marshal(v), false) }

func textResult(text json.RawMessage, isError bool) json.RawMessage {
	result := contentResult(textBlock(string(text)))
	if isError {
		return append(result[:len(result)-1], `,"isError":true}`...)
	}
	return result
}

// textBlock returns text as a content block.
func textBlock(text string) json.RawMessage {
	return append(append([]byte(`{"type":"text","text":`), marshal(text)...), '}')
}

// contentResult returns a tool result with blocks.
func contentResult(blocks ...json.RawMessage) json.RawMessage {
	return append(appendList([]byte(`{"content":`), blocks), '}')
}

// appendList appends a JSON array.
func appendList(dst []byte, items []json.RawMessage) []byte {
	dst = append(dst, '[')
	for _, item := range items {
		dst = rawjson.AppendComma(dst)
		dst = append(dst, item...)
	}
	return append(dst, ']')
}

// errorResult returns an error as a tool result for an agent: the tool, the
// reason, and the error's details, such as the violated schema or similar
// names.
func errorResult(err error, name tool.Name) json.RawMessage {
	e := tool.AsError(err)
	body := map[string]any{}
	var details map[string]json.RawMessage
	if e.Details != nil && json.Unmarshal(marshal(e.Details), &details) == nil {
		for key, value := range details {
			if key == "reason" && strings.Contains(e.Msg, rawjson.FieldString(value)) {
				continue // repeated text costs tokens
			}
			body[key] = value
		}
	}
	body["code"], body["message"] = e.Kind, e.Msg
	if name.Server != "" {
		body["server"] = name.Server
	}
	if name.Tool != "" {
		body["tool"] = name.Tool
	}
	if e.RetryAfter > 0 {
		body["retryAfterSeconds"] = int(e.RetryAfter.Seconds() + 0.999)
	}
	return textResult(marshal(struct {
		Success bool           `json:"success"`
		Error   map[string]any `json:"error"`
	}{false, body}), true)
}
