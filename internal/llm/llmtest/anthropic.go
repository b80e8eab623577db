package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
)

// anthropicWire implements Anthropic's messages API.
type anthropicWire struct{}

var (
	anthropicName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	anthropicKey  = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
)

type anthropicBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	Content   json.RawMessage `json:"content"`
	Signature string          `json:"signature"`
}

func anthropicBlocks(raw json.RawMessage) ([]anthropicBlock, bool) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []anthropicBlock{{Type: "text", Text: text}}, true
	}
	var blocks []anthropicBlock
	return blocks, json.Unmarshal(raw, &blocks) == nil
}

func (anthropicWire) parse(s *Server, r *http.Request, body []byte) (*Request, *Failure) {
	var in struct {
		Model     string          `json:"model"`
		Stream    bool            `json:"stream"`
		MaxTokens *int            `json:"max_tokens"`
		System    json.RawMessage `json:"system"`
		Messages  []struct {
			Role    string          `json:"role"`
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Type        string          `json:"type"`
			Name        string          `json:"name"`
			Description string          `json:"description"`
			InputSchema json.RawMessage `json:"input_schema"`
		} `json:"tools"`
		ToolChoice *struct {
			Type    string `json:"type"`
			Name    string `json:"name"`
			NoParal bool   `json:"disable_parallel_tool_use"`
		} `json:"tool_choice"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, &Failure{Status: 400, Message: err.Error()}
	}
	req := &Request{API: Anthropic, Path: r.URL.Path, Header: r.Header.Clone(), Body: body, Model: in.Model, Stream: in.Stream, Choice: "auto", Parallel: true}
	if c := in.ToolChoice; c != nil {
		req.Choice, req.Parallel = c.Type, !c.NoParal
		switch c.Type {
		case "any":
			req.Choice = "required"
		case "tool":
			req.Choice = c.Name
		}
	}
	fail := func(format string, args ...any) (*Request, *Failure) {
		return req, &Failure{Status: 400, Message: fmt.Sprintf(format, args...)}
	}
	if r.Header.Get("Anthropic-Version") == "" {
		return fail("anthropic-version: header is required")
	}
	if in.MaxTokens == nil {
		return fail("max_tokens: Field required")
	}
	if in.Model == "" {
		return fail("model: Field required")
	}
	if len(in.Messages) == 0 {
		return fail("messages: at least one message is required")
	}
	if system, ok := anthropicBlocks(in.System); ok {
		for _, b := range system {
			req.System += b.Text
		}
	}
	for i, t := range in.Tools {
		if t.Type != "" && t.Type != "custom" {
			continue // a tool of the service itself
		}
		if !anthropicName.MatchString(t.Name) {
			return fail("tools.%d.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", i)
		}
		var schema struct {
			Type       string                     `json:"type"`
			Properties map[string]json.RawMessage `json:"properties"`
			OneOf      json.RawMessage            `json:"oneOf"`
			AnyOf      json.RawMessage            `json:"anyOf"`
			AllOf      json.RawMessage            `json:"allOf"`
		}
		if json.Unmarshal(t.InputSchema, &schema) != nil || schema.Type != "object" {
			return fail("tools.%d.custom.input_schema.type: Field required", i)
		}
		if schema.OneOf != nil || schema.AnyOf != nil || schema.AllOf != nil {
			return fail("tools.%d.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level", i)
		}
		for k := range schema.Properties {
			if !anthropicKey.MatchString(k) {
				return fail("tools.%d.custom.input_schema.properties: Property keys should match pattern '^[a-zA-Z0-9_.-]{1,64}$'", i)
			}
		}
		req.Tools = append(req.Tools, Tool{Name: t.Name, Description: t.Description, Schema: t.InputSchema})
	}
	if f := unique(req.Tools); f != nil {
		return req, f
	}
	open := map[string]string{}
	for i, m := range in.Messages {
		blocks, ok := anthropicBlocks(m.Content)
		if !ok || len(blocks) == 0 {
			return fail("messages.%d: all messages must have non-empty content", i)
		}
		msg := Message{Role: m.Role}
		if m.Role != "user" && m.Role != "assistant" {
			return fail("messages: Unexpected role %q. Allowed roles are \"user\" or \"assistant\".", m.Role)
		}
		if m.Role == "user" && i == 0 && blocks[0].Type == "tool_result" {
			return fail("messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: %s.", blocks[0].ToolUseID)
		}
		for j, b := range blocks {
			switch b.Type {
			case "text":
				if b.Text == "" {
					return fail("messages: text content blocks must be non-empty")
				}
				msg.Text += b.Text
			case "image":
				msg.Images++
			case "thinking":
				if !s.wasIssued(b.Signature) {
					return fail("messages.%d.content.%d: Invalid `signature` in `thinking` block", i, j)
				}
			case "tool_use":
				if m.Role != "assistant" || !anthropicName.MatchString(b.Name) || !isObject(b.Input) || b.ID == "" {
					return fail("messages.%d.content.%d.tool_use: invalid block", i, j)
				}
				open[b.ID] = b.Name
				msg.Calls = append(msg.Calls, Called{ID: b.ID, Name: b.Name, Args: string(b.Input)})
			case "tool_result":
				name, ok := open[b.ToolUseID]
				if !ok || m.Role != "user" {
					return fail("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", i, j, b.ToolUseID)
				}
				delete(open, b.ToolUseID)
				res := Result{ID: b.ToolUseID, Name: name, IsError: b.IsError}
				inner, _ := anthropicBlocks(b.Content)
				for _, c := range inner {
					res.Text += c.Text
					if c.Type == "image" {
						res.Images++
					}
				}
				msg.Results = append(msg.Results, res)
			}
		}
		if m.Role == "user" && len(open) > 0 {
			return fail("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", i-1, keys(open))
		}
		req.Messages = append(req.Messages, msg)
	}
	if len(open) > 0 {
		return fail("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s.", len(in.Messages)-1, keys(open))
	}
	if req.Messages[0].Role != "user" {
		return fail("messages: first message must use the \"user\" role")
	}
	return req, nil
}

func anthropicStop(a answer) string {
	switch {
	case a.stop == "length":
		return "max_tokens"
	case a.stop == "filter":
		return "refusal"
	case len(a.calls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

func (anthropicWire) stream(s *Server, out *events, req *Request, a answer) {
	send := func(kind string, fields map[string]any) {
		fields["type"] = kind
		out.send(kind, fields)
	}
	send("message_start", map[string]any{"message": map[string]any{
		"id": s.nextID("msg_"), "type": "message", "role": "assistant", "model": req.Model, "content": []any{},
		"stop_reason": nil, "stop_sequence": nil, "usage": map[string]any{"input_tokens": a.in, "output_tokens": 1}}})
	send("ping", map[string]any{})
	index := 0
	block := func(start map[string]any, deltas ...map[string]any) {
		send("content_block_start", map[string]any{"index": index, "content_block": start})
		for _, d := range deltas {
			send("content_block_delta", map[string]any{"index": index, "delta": d})
		}
		send("content_block_stop", map[string]any{"index": index})
		index++
	}
	if a.reasoning != "" {
		var deltas []map[string]any
		for _, p := range pieces(a.reasoning, 20) {
			deltas = append(deltas, map[string]any{"type": "thinking_delta", "thinking": p})
		}
		deltas = append(deltas, map[string]any{"type": "signature_delta", "signature": s.issue("Claude")})
		block(map[string]any{"type": "thinking", "thinking": "", "signature": ""}, deltas...)
	}
	if len(a.text) > 0 {
		var deltas []map[string]any
		for _, p := range a.text {
			deltas = append(deltas, map[string]any{"type": "text_delta", "text": p})
		}
		block(map[string]any{"type": "text", "text": ""}, deltas...)
	}
	for _, c := range a.calls {
		deltas := []map[string]any{{"type": "input_json_delta", "partial_json": ""}}
		for _, p := range pieces(c.args, 7) {
			deltas = append(deltas, map[string]any{"type": "input_json_delta", "partial_json": p})
		}
		block(map[string]any{"type": "tool_use", "id": "toolu_" + c.id, "name": c.name, "input": map[string]any{}}, deltas...)
	}
	send("message_delta", map[string]any{"delta": map[string]any{"stop_reason": anthropicStop(a), "stop_sequence": nil},
		"usage": map[string]any{"output_tokens": a.out}})
	send("message_stop", map[string]any{})
}

func (anthropicWire) whole(s *Server, w http.ResponseWriter, req *Request, a answer) {
	content := []any{}
	if a.reasoning != "" {
		content = append(content, map[string]any{"type": "thinking", "thinking": a.reasoning, "signature": s.issue("Claude")})
	}
	if len(a.text) > 0 {
		content = append(content, map[string]any{"type": "text", "text": a.whole()})
	}
	for _, c := range a.calls {
		var input any = json.RawMessage(c.args)
		if c.malformed {
			input = map[string]any{}
		}
		content = append(content, map[string]any{"type": "tool_use", "id": "toolu_" + c.id, "name": c.name, "input": input})
	}
	writeJSON(w, http.StatusOK, map[string]any{"id": s.nextID("msg_"), "type": "message", "role": "assistant", "model": req.Model,
		"content": content, "stop_reason": anthropicStop(a), "stop_sequence": nil,
		"usage": map[string]any{"input_tokens": a.in, "output_tokens": a.out}})
}

func anthropicError(f Failure) map[string]any {
	kind := f.Code
	switch {
	case f.Status == 400:
		kind = "invalid_request_error"
	case f.Status == 401:
		kind = "authentication_error"
	case f.Status == 403:
		kind = "permission_error"
	case f.Status == 404:
		kind = "not_found_error"
	case f.Status == 413:
		kind = "request_too_large"
	case f.Status == 429:
		kind = "rate_limit_error"
	case f.Status == 529:
		kind = "overloaded_error"
	case kind == "":
		kind = "api_error"
	}
	return map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": message(f)}, "request_id": "req_1"}
}

func (anthropicWire) fail(w http.ResponseWriter, f Failure) {
	retryAfter(w, f)
	writeJSON(w, f.Status, anthropicError(f))
}

func (anthropicWire) failInStream(out *events, f Failure) { out.send("error", anthropicError(f)) }
