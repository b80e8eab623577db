package llmtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

// responsesWire implements OpenAI's responses API without server-side state:
// the client sends the whole history.
type responsesWire struct{}

type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      *bool           `json:"strict"`
	Tools       []responsesTool `json:"tools"`
}

func (responsesWire) parse(s *Server, r *http.Request, body []byte) (*Request, *Failure) {
	var in struct {
		Model        string          `json:"model"`
		Stream       bool            `json:"stream"`
		Instructions string          `json:"instructions"`
		Input        json.RawMessage `json:"input"`
		Tools        []responsesTool `json:"tools"`
		ToolChoice   json.RawMessage `json:"tool_choice"`
		Parallel     *bool           `json:"parallel_tool_calls"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, &Failure{Status: 400, Message: "Invalid type: " + err.Error()}
	}
	req := &Request{API: Responses, Path: r.URL.Path, Header: r.Header.Clone(), Body: body, Model: in.Model, Stream: in.Stream,
		System: in.Instructions, Parallel: in.Parallel == nil || *in.Parallel, Choice: choiceOf(in.ToolChoice)}
	fail := func(format string, args ...any) (*Request, *Failure) {
		return req, &Failure{Status: 400, Message: fmt.Sprintf(format, args...)}
	}
	if in.Model == "" {
		return fail("Missing required parameter: 'model'.")
	}
	var add func(namespace string, tools []responsesTool) *Failure
	add = func(namespace string, tools []responsesTool) *Failure {
		for i, t := range tools {
			switch t.Type {
			case "namespace":
				if f := add(t.Name, t.Tools); f != nil {
					return f
				}
			case "function":
				if !openAIName.MatchString(t.Name) {
					return &Failure{Status: 400, Message: fmt.Sprintf("Invalid 'tools[%d].name': string does not match pattern.", i)}
				}
				if !isObject(t.Parameters) && namespace == "" {
					return &Failure{Status: 400, Message: fmt.Sprintf("Invalid schema for function '%s'.", t.Name)}
				}
				req.Tools = append(req.Tools, Tool{Namespace: namespace, Name: t.Name, Description: t.Description, Schema: t.Parameters})
			}
		}
		return nil
	}
	if f := add("", in.Tools); f != nil {
		return req, f
	}
	if f := unique(req.Tools); f != nil {
		return req, f
	}
	var text string
	if json.Unmarshal(in.Input, &text) == nil {
		req.Messages = append(req.Messages, Message{Role: "user", Text: text})
		return req, nil
	}
	var items []struct {
		Type      string          `json:"type"`
		Role      string          `json:"role"`
		Content   json.RawMessage `json:"content"`
		ID        string          `json:"id"`
		CallID    string          `json:"call_id"`
		Name      string          `json:"name"`
		Arguments string          `json:"arguments"`
		Output    json.RawMessage `json:"output"`
		Encrypted string          `json:"encrypted_content"`
	}
	if err := json.Unmarshal(in.Input, &items); err != nil || len(items) == 0 {
		return fail("Invalid type for 'input': expected one of a string or array of input items.")
	}
	open, names := map[string]string{}, map[string]string{}
	for i, it := range items {
		switch it.Type {
		case "", "message":
			text, images := chatContent(it.Content)
			switch it.Role {
			case "system", "developer":
				req.System += text
			case "user", "assistant":
				req.Messages = append(req.Messages, Message{Role: it.Role, Text: text, Images: images})
			default:
				return fail("Invalid value: '%s' for input[%d].role.", it.Role, i)
			}
		case "reasoning":
			if it.Encrypted == "" {
				return fail("Item with id '%s' not found. Items are not persisted when `store` is set to false.", it.ID)
			}
			if !s.wasIssued(it.Encrypted) {
				return fail("The encrypted content for item %s could not be verified.", it.ID)
			}
			if i+1 == len(items) || !slices.Contains([]string{"message", "function_call", "reasoning"}, items[i+1].Type) {
				return fail("Item '%s' of type 'reasoning' was provided without its required following item.", it.ID)
			}
		case "function_call":
			if it.CallID == "" || !openAIName.MatchString(it.Name) {
				return fail("Invalid 'input[%d]': bad function_call.", i)
			}
			open[it.CallID], names[it.CallID] = it.Name, it.Name
			called := Called{ID: it.CallID, Name: it.Name, Args: it.Arguments}
			if n := len(req.Messages); n > 0 && req.Messages[n-1].Role == "assistant" {
				req.Messages[n-1].Calls = append(req.Messages[n-1].Calls, called)
			} else {
				req.Messages = append(req.Messages, Message{Role: "assistant", Calls: []Called{called}})
			}
		case "function_call_output":
			if _, ok := open[it.CallID]; !ok {
				return fail("No tool call found for function call output with call_id %s.", it.CallID)
			}
			delete(open, it.CallID)
			text, images := chatContent(it.Output)
			req.Messages = append(req.Messages, Message{Role: "tool", Results: []Result{{ID: it.CallID, Name: names[it.CallID], Text: text, Images: images}}})
		}
	}
	if len(open) > 0 {
		return fail("No tool output found for function call %s.", keys(open))
	}
	return req, nil
}

func responsesOutput(s *Server, req *Request, a answer) (items []map[string]any, status string) {
	status = "completed"
	if a.stop == "length" || a.stop == "filter" {
		status = "incomplete"
	}
	if a.reasoning != "" {
		it := map[string]any{"id": s.nextID("rs_"), "type": "reasoning", "summary": []any{map[string]any{"type": "summary_text", "text": a.reasoning}}}
		var in struct {
			Include []string `json:"include"`
		}
		json.Unmarshal(req.Body, &in)
		if slices.Contains(in.Include, "reasoning.encrypted_content") {
			it["encrypted_content"] = s.issue("OpenAI")
		}
		items = append(items, it)
	}
	if len(a.text) > 0 {
		items = append(items, map[string]any{"id": s.nextID("msg_"), "type": "message", "role": "assistant", "status": status,
			"content": []any{map[string]any{"type": "output_text", "text": a.whole(), "annotations": []any{}, "logprobs": []any{}}}})
	}
	for _, c := range a.calls {
		it := map[string]any{"id": s.nextID("fc_"), "type": "function_call", "status": "completed", "call_id": c.id, "name": c.name, "arguments": c.args}
		if c.namespace != "" {
			it["namespace"] = c.namespace
		}
		items = append(items, it)
	}
	return items, status
}

func responsesObject(id string, req *Request, a answer, status string, output []map[string]any) map[string]any {
	if output == nil {
		output = []map[string]any{}
	}
	o := map[string]any{"id": id, "object": "response", "created_at": 1, "status": status, "model": req.Model, "output": output,
		"error": nil, "incomplete_details": nil, "instructions": nil, "metadata": map[string]any{}, "parallel_tool_calls": true,
		"temperature": 1, "tool_choice": "auto", "tools": []any{}, "top_p": 1, "usage": nil}
	switch status {
	case "incomplete":
		reason := "max_output_tokens"
		if a.stop == "filter" {
			reason = "content_filter"
		}
		o["incomplete_details"] = map[string]any{"reason": reason}
		fallthrough
	case "completed":
		o["usage"] = map[string]any{"input_tokens": a.in, "output_tokens": a.out, "total_tokens": a.in + a.out,
			"input_tokens_details": map[string]any{"cached_tokens": 0}, "output_tokens_details": map[string]any{"reasoning_tokens": 0}}
	}
	return o
}

func (responsesWire) stream(s *Server, out *events, req *Request, a answer) {
	seq := 0
	send := func(kind string, fields map[string]any) {
		fields["type"], fields["sequence_number"] = kind, seq
		seq++
		out.send(kind, fields)
	}
	id := s.nextID("resp_")
	items, status := responsesOutput(s, req, a)
	send("response.created", map[string]any{"response": responsesObject(id, req, a, "in_progress", nil)})
	send("response.in_progress", map[string]any{"response": responsesObject(id, req, a, "in_progress", nil)})
	for i, it := range items {
		at := func(more map[string]any) map[string]any {
			more["item_id"], more["output_index"] = it["id"], i
			return more
		}
		switch it["type"] {
		case "reasoning":
			send("response.output_item.added", map[string]any{"output_index": i, "item": map[string]any{"id": it["id"], "type": "reasoning", "summary": []any{}}})
			send("response.reasoning_summary_part.added", at(map[string]any{"summary_index": 0, "part": map[string]any{"type": "summary_text", "text": ""}}))
			for _, p := range pieces(a.reasoning, 20) {
				send("response.reasoning_summary_text.delta", at(map[string]any{"summary_index": 0, "delta": p}))
			}
			send("response.reasoning_summary_text.done", at(map[string]any{"summary_index": 0, "text": a.reasoning}))
			send("response.reasoning_summary_part.done", at(map[string]any{"summary_index": 0, "part": map[string]any{"type": "summary_text", "text": a.reasoning}}))
		case "message":
			send("response.output_item.added", map[string]any{"output_index": i, "item": map[string]any{"id": it["id"], "type": "message", "role": "assistant", "status": "in_progress", "content": []any{}}})
			send("response.content_part.added", at(map[string]any{"content_index": 0, "part": map[string]any{"type": "output_text", "text": "", "annotations": []any{}, "logprobs": []any{}}}))
			for _, p := range a.text {
				send("response.output_text.delta", at(map[string]any{"content_index": 0, "delta": p, "logprobs": []any{}}))
			}
			send("response.output_text.done", at(map[string]any{"content_index": 0, "text": a.whole(), "logprobs": []any{}}))
			send("response.content_part.done", at(map[string]any{"content_index": 0, "part": it["content"].([]any)[0]}))
		case "function_call":
			added := map[string]any{"id": it["id"], "type": "function_call", "status": "in_progress", "call_id": it["call_id"], "name": it["name"], "arguments": ""}
			if it["namespace"] != nil {
				added["namespace"] = it["namespace"]
			}
			send("response.output_item.added", map[string]any{"output_index": i, "item": added})
			for _, p := range pieces(it["arguments"].(string), 7) {
				send("response.function_call_arguments.delta", at(map[string]any{"delta": p}))
			}
			send("response.function_call_arguments.done", at(map[string]any{"arguments": it["arguments"], "name": it["name"]}))
		}
		send("response.output_item.done", map[string]any{"output_index": i, "item": it})
	}
	send("response."+status, map[string]any{"response": responsesObject(id, req, a, status, items)})
}

func (responsesWire) whole(s *Server, w http.ResponseWriter, req *Request, a answer) {
	items, status := responsesOutput(s, req, a)
	writeJSON(w, http.StatusOK, responsesObject(s.nextID("resp_"), req, a, status, items))
}

func (responsesWire) fail(w http.ResponseWriter, f Failure) { chatWire{}.fail(w, f) }

func (responsesWire) failInStream(out *events, f Failure) {
	out.send("response.failed", map[string]any{"type": "response.failed", "sequence_number": 99, "response": map[string]any{
		"id": "resp_failed", "object": "response", "status": "failed", "output": []any{},
		"error": map[string]any{"code": "server_error", "message": message(f)}}})
}
