package openai

import (
	"context"
	"encoding/json"
	"regexp"

	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"junctor/internal/llm"
	"junctor/internal/provider"
)

// plain matches the models without reasoning, which reject requests for
// encrypted reasoning.
var plain = regexp.MustCompile(`^(gpt-3|gpt-4|chatgpt-4)`)

func (m *Model) streamResponses(ctx context.Context, req llm.Request, yield func(llm.Event) bool) (map[string]any, error) {
	sent, err := m.responsesBody(req)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(sent)
	if err != nil {
		return nil, err
	}
	var params responses.ResponseNewParams
	param.SetJSON(body, &params)
	stream := m.responses.NewStreaming(ctx, params, m.requestOptions(req)...)
	defer stream.Close()

	r := responsesReader{tools: req.Tools}
	for stream.Next() {
		ev, ok, err := r.event(stream.Current())
		if err != nil {
			return sent, err
		}
		if ok && !yield(ev) {
			return sent, errBroken
		}
		if r.reply.Full() {
			return sent, errTooLong
		}
	}
	if err := stream.Err(); err != nil {
		return sent, err
	}
	if r.last == nil {
		return sent, errUnfinished
	}
	if !yield(r.end(m.by())) {
		return sent, errBroken
	}
	return sent, nil
}

func (m *Model) responsesBody(req llm.Request) (map[string]any, error) {
	body := map[string]any{"model": m.cfg.Model}
	if m.supports("store") {
		body["store"] = false // the provider need not store the conversation
	}
	if m.supports("include") && !plain.MatchString(m.cfg.Model) {
		body["include"] = []string{"reasoning.encrypted_content"}
	}
	m.settings(body, req, "max_output_tokens")
	if system := req.Prompt(); system != "" {
		body["instructions"] = system
	}
	tools, err := req.Tools.Declare(provider.OpenAIResponses)
	if err != nil {
		return nil, err
	}
	if len(tools) > 0 {
		body["tools"] = tools
		switch {
		case req.Choice == llm.None:
			body["tool_choice"] = "none"
		case req.Choice == llm.Required && req.Only != "":
			body["tool_choice"] = map[string]any{"type": "function", "name": req.Only}
		case req.Choice == llm.Required:
			body["tool_choice"] = "required"
		}
		if req.Single && m.supports("parallel_tool_calls") {
			body["parallel_tool_calls"] = false
		}
	}
	input := []any{}
	for _, msg := range req.History() {
		switch msg.Role {
		case llm.User:
			input = append(input, map[string]any{"type": "message", "role": "user", "content": responsesContent(msg)})
		case llm.Assistant:
			var items []json.RawMessage
			if native := msg.NativeFor(m.by()); native != nil && json.Unmarshal(native, &items) == nil {
				for _, it := range items {
					input = append(input, it)
				}
				continue
			}
			if text := msg.Text(); text != "" {
				input = append(input, map[string]any{"type": "message", "role": "assistant",
					"content": []any{map[string]any{"type": "output_text", "text": text}}})
			}
			for _, c := range msg.Calls() {
				input = append(input, map[string]any{"type": "function_call", "call_id": c.ID, "name": c.Name, "arguments": string(c.Arguments)})
			}
		case llm.Tool:
			for _, res := range msg.Results() {
				out, err := llm.FormatResult(provider.OpenAIResponses, res, true)
				if err != nil {
					return nil, err
				}
				input = append(input, out)
			}
		}
	}
	body["input"] = input
	return body, nil
}

func responsesContent(m llm.Message) any {
	var parts []any
	for _, p := range m.Parts {
		switch {
		case p.Text != "":
			parts = append(parts, map[string]any{"type": "input_text", "text": p.Text})
		case p.Image != nil:
			parts = append(parts, map[string]any{"type": "input_image", "image_url": dataURL(p.Image.MIME, p.Image.Data), "detail": "auto"})
		case p.File != nil:
			parts = append(parts, map[string]any{"type": "input_file", "filename": p.File.Name, "file_data": dataURL(p.File.MIME, p.File.Data)})
		}
	}
	return parts
}

// responsesReader assembles a turn from events.
type responsesReader struct {
	tools *llm.Toolset
	reply llm.Builder
	items []json.RawMessage // the output items, unchanged
	last  *responses.Response
	deny  bool
}

func (r *responsesReader) event(e responses.ResponseStreamEventUnion) (llm.Event, bool, error) {
	switch e.Type {
	case "response.output_text.delta":
		return r.reply.Text(e.Delta), e.Delta != "", nil
	case "response.refusal.delta":
		r.deny = true
		return r.reply.Text(e.Delta), e.Delta != "", nil
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return r.reply.Reasoning(e.Delta), e.Delta != "", nil
	case "response.function_call_arguments.delta":
		r.reply.Grow(len(e.Delta))
	case "response.output_item.done":
		r.items = append(r.items, json.RawMessage(e.Item.RawJSON()))
		if e.Item.Type == "function_call" {
			call := e.Item.AsFunctionCall()
			id := call.CallID
			if id == "" {
				id = llm.NewCallID()
			}
			c, faithful := r.tools.Call(id, call.Name, []byte(call.Arguments))
			return r.reply.Call(c, faithful && call.CallID != ""), true, nil
		}
	case "response.completed", "response.incomplete":
		r.last = &e.Response
	case "response.failed":
		return llm.Event{}, false, &failedError{string(e.Response.Error.Code), e.Response.Error.Message}
	case "error":
		return llm.Event{}, false, &failedError{e.Code, e.Message}
	}
	return llm.Event{}, false, nil
}

func (r *responsesReader) end(by string) llm.Event {
	u := r.last.Usage
	usage := llm.Usage{Input: int(u.InputTokens), Cached: int(u.InputTokensDetails.CachedTokens),
		Output: int(u.OutputTokens), Reasoning: int(u.OutputTokensDetails.ReasoningTokens)}
	stop, detail := llm.StopEnd, ""
	switch reason := r.last.IncompleteDetails.Reason; {
	case r.deny:
		stop, detail = llm.StopFilter, "refusal"
	case reason == "max_output_tokens":
		stop = llm.StopLength
	case reason == "content_filter":
		stop, detail = llm.StopFilter, reason
	case r.last.Status == "incomplete":
		stop, detail = llm.StopOther, reason
	}
	return r.reply.Turn(stop, detail, usage, by, r.native())
}

// native returns the output in a form that can be sent again. Reasoning that is
// not encrypted was not stored by the server, so it is omitted together with
// the ids that refer to it.
func (r *responsesReader) native() json.RawMessage {
	thought, lost := false, false
	var keep []map[string]json.RawMessage
	for _, raw := range r.items {
		var it map[string]json.RawMessage
		if json.Unmarshal(raw, &it) != nil {
			return nil
		}
		if string(it["type"]) == `"reasoning"` {
			if enc := it["encrypted_content"]; len(enc) == 0 || string(enc) == "null" || string(enc) == `""` {
				lost = true
				continue
			}
			thought = true
		}
		keep = append(keep, it)
	}
	if !thought {
		return nil // the neutral form is equivalent
	}
	for _, it := range keep {
		delete(it, "status")
		if lost {
			delete(it, "id")
		}
	}
	out, err := json.Marshal(keep)
	if err != nil {
		return nil
	}
	return out
}
