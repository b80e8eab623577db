package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

// chatWire implements OpenAI's chat completions API, which many services copy.
type chatWire struct{}

var openAIName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func (chatWire) parse(s *Server, r *http.Request, body []byte) (*Request, *Failure) {
	var in struct {
		Model    string `json:"model"`
		Stream   bool   `json:"stream"`
		Messages []struct {
			Role       string          `json:"role"`
			Content    json.RawMessage `json:"content"`
			ToolCallID string          `json:"tool_call_id"`
			ToolCalls  []struct {
				ID       string `json:"id"`
				Type     string `json:"type"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"messages"`
		Tools []struct {
			Type     string `json:"type"`
			Function struct {
				Name        string          `json:"name"`
				Description string          `json:"description"`
				Parameters  json.RawMessage `json:"parameters"`
			} `json:"function"`
		} `json:"tools"`
		ToolChoice json.RawMessage `json:"tool_choice"`
		Parallel   *bool           `json:"parallel_tool_calls"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, &Failure{Status: 400, Message: "Invalid type: " + err.Error()}
	}
	req := &Request{API: Chat, Path: r.URL.Path, Header: r.Header.Clone(), Body: body, Model: in.Model, Stream: in.Stream,
		Parallel: in.Parallel == nil || *in.Parallel, Choice: choiceOf(in.ToolChoice)}
	fail := func(format string, args ...any) (*Request, *Failure) {
		return req, &Failure{Status: 400, Message: fmt.Sprintf(format, args...)}
	}
	if in.Model == "" {
		return fail("you must provide a model parameter")
	}
	if len(in.Messages) == 0 {
		return fail("Invalid 'messages': empty array. Expected an array with minimum length 1.")
	}
	for _, t := range in.Tools {
		if t.Type != "function" || !openAIName.MatchString(t.Function.Name) {
			return fail("Invalid 'tools[%d].function.name': string does not match pattern.", len(req.Tools))
		}
		if !isObject(t.Function.Parameters) {
			return fail("Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"'.", t.Function.Name)
		}
		req.Tools = append(req.Tools, Tool{Name: t.Function.Name, Description: t.Function.Description, Schema: t.Function.Parameters})
	}
	if len(req.Tools) > 128 {
		return fail("Invalid 'tools': array too long. Expected an array with maximum length 128.")
	}
	if f := unique(req.Tools); f != nil {
		return req, f
	}
	if (in.Parallel != nil || len(in.ToolChoice) > 0) && len(in.Tools) == 0 {
		return fail("'tool_choice' and 'parallel_tool_calls' are only allowed when 'tools' are specified.")
	}
	open := map[string]string{}
	for i, m := range in.Messages {
		text, images := chatContent(m.Content)
		if m.Role != "tool" && len(open) > 0 {
			return fail("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", keys(open))
		}
		switch m.Role {
		case "system", "developer":
			req.System += text
		case "user":
			if len(m.Content) == 0 {
				return fail("Invalid value for 'messages[%d].content': expected a string, got null.", i)
			}
			req.Messages = append(req.Messages, Message{Role: "user", Text: text, Images: images})
		case "assistant":
			msg := Message{Role: "assistant", Text: text}
			for _, c := range m.ToolCalls {
				if !openAIName.MatchString(c.Function.Name) {
					return fail("Invalid 'messages[%d].tool_calls[0].function.name': string does not match pattern.", i)
				}
				if c.Type != "function" || c.ID == "" {
					return fail("Missing required parameter: 'messages[%d].tool_calls[0].id'.", i)
				}
				open[c.ID] = c.Function.Name
				msg.Calls = append(msg.Calls, Called{ID: c.ID, Name: c.Function.Name, Args: c.Function.Arguments})
			}
			if text == "" && len(msg.Calls) == 0 && string(m.Content) != `""` {
				return fail("Invalid value for 'messages[%d].content': expected a string, got null.", i)
			}
			req.Messages = append(req.Messages, msg)
		case "tool":
			name, ok := open[m.ToolCallID]
			if !ok {
				return fail("Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
			}
			if images > 0 {
				return fail("Invalid 'messages[%d]': image_url is only allowed in messages of role 'user'.", i)
			}
			delete(open, m.ToolCallID)
			req.Messages = append(req.Messages, Message{Role: "tool", Results: []Result{{ID: m.ToolCallID, Name: name, Text: text}}})
		default:
			return fail("Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", m.Role)
		}
	}
	if len(open) > 0 {
		return fail("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", keys(open))
	}
	return req, nil
}

func chatContent(raw json.RawMessage) (text string, images int) {
	if json.Unmarshal(raw, &text) == nil {
		return text, 0
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	json.Unmarshal(raw, &parts)
	for _, p := range parts {
		switch p.Type {
		case "text", "input_text", "output_text":
			text += p.Text
		case "image_url", "input_image":
			images++
		}
	}
	return text, images
}

func chatStop(a answer) string {
	switch {
	case a.stop == "length":
		return "length"
	case a.stop == "filter":
		return "content_filter"
	case len(a.calls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func chatUsage(a answer) map[string]any {
	return map[string]any{"prompt_tokens": a.in, "completion_tokens": a.out, "total_tokens": a.in + a.out,
		"prompt_tokens_details": map[string]any{"cached_tokens": 0}}
}

func (chatWire) stream(s *Server, out *events, req *Request, a answer) {
	id := s.nextID("chatcmpl-")
	chunk := func(delta map[string]any, finish any) {
		out.send("", map[string]any{"id": id, "object": "chat.completion.chunk", "created": 1, "model": req.Model, "usage": nil,
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish, "logprobs": nil}}})
	}
	chunk(map[string]any{"role": "assistant", "content": "", "refusal": nil}, nil)
	for _, p := range pieces(a.reasoning, 20) {
		chunk(map[string]any{"reasoning_content": p}, nil)
	}
	for _, p := range a.text {
		chunk(map[string]any{"content": p}, nil)
	}
	for i, c := range a.calls {
		chunk(map[string]any{"tool_calls": []any{map[string]any{"index": i, "id": c.id, "type": "function",
			"function": map[string]any{"name": c.name, "arguments": ""}}}}, nil)
		for _, p := range pieces(c.args, 7) {
			chunk(map[string]any{"tool_calls": []any{map[string]any{"index": i, "function": map[string]any{"arguments": p}}}}, nil)
		}
	}
	chunk(map[string]any{}, chatStop(a))
	var opts struct {
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	json.Unmarshal(req.Body, &opts)
	if opts.StreamOptions.IncludeUsage {
		out.send("", map[string]any{"id": id, "object": "chat.completion.chunk", "created": 1, "model": req.Model,
			"choices": []any{}, "usage": chatUsage(a)})
	}
	out.send("", "[DONE]")
}

func (chatWire) whole(s *Server, w http.ResponseWriter, req *Request, a answer) {
	msg := map[string]any{"role": "assistant", "content": a.whole(), "refusal": nil}
	if a.reasoning != "" {
		msg["reasoning_content"] = a.reasoning
	}
	var calls []any
	for _, c := range a.calls {
		calls = append(calls, map[string]any{"id": c.id, "type": "function", "function": map[string]any{"name": c.name, "arguments": c.args}})
	}
	if calls != nil {
		msg["tool_calls"] = calls
		if len(a.text) == 0 {
			msg["content"] = nil
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"id": s.nextID("chatcmpl-"), "object": "chat.completion", "created": 1, "model": req.Model,
		"choices": []any{map[string]any{"index": 0, "message": msg, "finish_reason": chatStop(a), "logprobs": nil}}, "usage": chatUsage(a)})
}

func (chatWire) fail(w http.ResponseWriter, f Failure) {
	retryAfter(w, f)
	writeJSON(w, f.Status, map[string]any{"error": openAIError(f)})
}

func (chatWire) failInStream(out *events, f Failure) {
	out.send("", map[string]any{"error": openAIError(f)})
}

func openAIError(f Failure) map[string]any {
	kind := "invalid_request_error"
	switch {
	case f.Status == 429:
		kind = "requests"
	case f.Status >= 500:
		kind = "server_error"
	}
	var code any
	if f.Code != "" {
		code = f.Code
	}
	return map[string]any{"message": message(f), "type": kind, "param": nil, "code": code}
}

func message(f Failure) string {
	if f.Message != "" {
		return f.Message
	}
	return http.StatusText(f.Status)
}

func retryAfter(w http.ResponseWriter, f Failure) {
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
}

// choiceOf parses a tool_choice: a string, or an object that names a function.
func choiceOf(raw json.RawMessage) string {
	if len(raw) == 0 {
		return "auto"
	}
	var word string
	if json.Unmarshal(raw, &word) == nil {
		return word
	}
	var named struct {
		Type     string `json:"type"`
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	json.Unmarshal(raw, &named)
	if named.Function.Name != "" {
		return named.Function.Name
	}
	if named.Name != "" {
		return named.Name
	}
	return named.Type
}

func isObject(raw json.RawMessage) bool {
	var o map[string]json.RawMessage
	return json.Unmarshal(raw, &o) == nil && o != nil
}

func unique(tools []Tool) *Failure {
	seen := map[string]bool{}
	for _, t := range tools {
		full := t.Namespace + "\x00" + t.Name
		if seen[full] {
			return &Failure{Status: 400, Message: "Tool names must be unique: " + t.Name}
		}
		seen[full] = true
	}
	return nil
}

func keys(m map[string]string) string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	return strings.Join(out, ", ")
}
