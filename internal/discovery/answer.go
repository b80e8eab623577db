package discovery

import (
	"encoding/json"
	"strings"

	"junctor/internal/tool"
)

// answer returns a tool result with v as compact JSON.
func answer(v any) json.RawMessage { return textResult(marshal(v), false) }

func textResult(text json.RawMessage, isError bool) json.RawMessage {
	block := append([]byte(`{"content":[{"type":"text","text":`), marshal(string(text))...)
	if isError {
		return append(block, `}],"isError":true}`...)
	}
	return append(block, `}]}`...)
}

// failure returns an error as a tool result for an agent: the tool, the reason,
// and the error's details, such as the violated schema or similar names.
func failure(err error, name tool.Name) json.RawMessage {
	e := tool.AsError(err)
	body := map[string]any{}
	var details map[string]json.RawMessage
	if e.Details != nil && json.Unmarshal(marshal(e.Details), &details) == nil {
		for key, value := range details {
			if key == "reason" && strings.Contains(e.Msg, text(value)) {
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
