package openai

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/param"

	"junctor/internal/llm"
	"junctor/internal/provider"
)

// by returns the identifier of this model's native turns.
func (m *Model) by() string {
	return llm.NativeBy(string(m.cfg.Provider)+"-"+string(m.api()), m.cfg.Model)
}

func (m *Model) api() llm.API {
	if m.cfg.API == "" {
		return llm.ChatAPI
	}
	return m.cfg.API
}

func (m *Model) streamChat(ctx context.Context, req llm.Request, yield func(llm.Event) bool) (map[string]any, error) {
	sent, err := m.chatBody(req)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(sent)
	if err != nil {
		return nil, err
	}
	var params sdk.ChatCompletionNewParams
	param.SetJSON(body, &params)
	stream := m.chat.NewStreaming(ctx, params, m.requestOptions(req)...)
	defer stream.Close()

	r := chatReader{tools: req.Tools}
	for stream.Next() {
		for _, ev := range r.chunk(stream.Current()) {
			if !yield(ev) {
				return sent, errBroken
			}
		}
		if r.reply.Full() {
			return sent, errTooLong
		}
	}
	if err := stream.Err(); err != nil {
		return sent, err
	}
	if r.finish == "" {
		return sent, errUnfinished
	}
	for _, ev := range r.end(m.by()) {
		if !yield(ev) {
			return sent, errBroken
		}
	}
	return sent, nil
}

func (m *Model) chatBody(req llm.Request) (map[string]any, error) {
	body := map[string]any{"model": m.cfg.Model}
	if m.supports("stream_options") {
		body["stream_options"] = map[string]any{"include_usage": true}
	}
	maxName := "max_tokens" // supported by OpenAI-compatible servers
	if m.isOpenAI() {
		maxName = "max_completion_tokens"
	}
	m.settings(body, req, maxName)

	tools, err := req.Tools.Declare(m.format())
	if err != nil {
		return nil, err
	}
	if len(tools) > 0 {
		body["tools"] = tools
		if m.supports("tool_choice") {
			switch {
			case req.Choice == llm.None:
				body["tool_choice"] = "none"
			case req.Choice == llm.Required && req.Only != "":
				body["tool_choice"] = map[string]any{"type": "function", "function": map[string]any{"name": req.Only}}
			case req.Choice == llm.Required:
				body["tool_choice"] = "required"
			}
		}
		if req.Single && m.supports("parallel_tool_calls") {
			body["parallel_tool_calls"] = false
		}
	}

	var messages []any
	if system := req.Prompt(); system != "" {
		messages = append(messages, map[string]any{"role": "system", "content": system})
	}
	for _, msg := range req.History() {
		switch msg.Role {
		case llm.User:
			messages = append(messages, map[string]any{"role": "user", "content": chatContent(msg)})
		case llm.Assistant:
			if native := msg.NativeFor(m.by()); native != nil {
				messages = append(messages, json.RawMessage(native))
			} else {
				messages = append(messages, chatAssistant(msg))
			}
		case llm.Tool:
			for _, res := range msg.Results() {
				out, err := llm.FormatResult(provider.OpenAI, res, false)
				if err != nil {
					return nil, err
				}
				messages = append(messages, out)
			}
		}
	}
	body["messages"] = messages
	return body, nil
}

func chatContent(m llm.Message) any {
	if text := m.Text(); !slices.ContainsFunc(m.Parts, func(p llm.Part) bool { return p.Image != nil || p.File != nil }) {
		return text
	}
	var parts []any
	for _, p := range m.Parts {
		switch {
		case p.Text != "":
			parts = append(parts, map[string]any{"type": "text", "text": p.Text})
		case p.Image != nil:
			parts = append(parts, map[string]any{"type": "image_url", "image_url": map[string]any{"url": dataURL(p.Image.MIME, p.Image.Data)}})
		case p.File != nil:
			parts = append(parts, map[string]any{"type": "file", "file": map[string]any{"filename": p.File.Name, "file_data": dataURL(p.File.MIME, p.File.Data)}})
		}
	}
	return parts
}

func dataURL(mime string, data []byte) string {
	return "data:" + mime + ";base64," + base64.StdEncoding.EncodeToString(data)
}

func chatAssistant(m llm.Message) any {
	out := map[string]any{"role": "assistant", "content": m.Text()}
	var calls []any
	for _, c := range m.Calls() {
		calls = append(calls, map[string]any{"id": c.ID, "type": "function",
			"function": map[string]any{"name": c.Name, "arguments": string(c.Arguments)}})
	}
	if calls != nil {
		out["tool_calls"] = calls
		if m.Text() == "" {
			out["content"] = nil
		}
	}
	return out
}

// chatReader assembles a turn from chunks.
type chatReader struct {
	tools  *llm.Toolset
	reply  llm.Builder
	calls  []*chatCall
	extra  map[string]any // fields of the message that OpenAI's API does not have
	finish string
	usage  llm.Usage
}

// chatCall is a call whose pieces are still arriving.
type chatCall struct {
	index    int64
	id, name string
	args     strings.Builder
	extra    map[string]any
}

func (r *chatReader) chunk(c sdk.ChatCompletionChunk) []llm.Event {
	if u := c.Usage; c.JSON.Usage.Valid() {
		r.usage = llm.Usage{Input: int(u.PromptTokens), Cached: int(u.PromptTokensDetails.CachedTokens),
			Output: int(u.CompletionTokens), Reasoning: int(u.CompletionTokensDetails.ReasoningTokens)}
	}
	if len(c.Choices) == 0 {
		return nil
	}
	choice := c.Choices[0]
	if choice.FinishReason != "" {
		r.finish = choice.FinishReason
	}
	var out []llm.Event
	delta := choice.Delta
	for name, field := range delta.JSON.ExtraFields {
		var v any
		if json.Unmarshal([]byte(field.Raw()), &v) != nil || v == nil {
			continue
		}
		if s, ok := v.(string); ok && (name == "reasoning_content" || name == "reasoning") && s != "" {
			out = append(out, r.reply.Reasoning(s))
		}
		r.reply.Grow(len(field.Raw()))
		r.extra = merge(r.extra, name, v)
	}
	if delta.Content != "" {
		out = append(out, r.reply.Text(delta.Content))
	}
	if delta.Refusal != "" {
		out = append(out, r.reply.Text(delta.Refusal))
		r.finish = "content_filter"
	}
	for _, tc := range delta.ToolCalls {
		r.call(tc)
	}
	return out
}

// call adds a piece of a call. Some servers omit the index; others use the same
// index for all calls and distinguish them by id.
func (r *chatReader) call(tc sdk.ChatCompletionChunkChoiceDeltaToolCall) {
	var c *chatCall
	for _, have := range r.calls {
		if tc.JSON.Index.Valid() && have.index == tc.Index {
			c = have // the last with this index
		}
	}
	if !tc.JSON.Index.Valid() && tc.ID == "" && len(r.calls) > 0 {
		c = r.calls[len(r.calls)-1]
	}
	if c != nil && tc.ID != "" && c.id != "" && tc.ID != c.id {
		c = nil
	}
	if c == nil {
		c = &chatCall{index: tc.Index, id: tc.ID}
		r.calls = append(r.calls, c)
	}
	if c.id == "" {
		c.id = tc.ID
	}
	if tc.Function.Name != "" {
		c.name = tc.Function.Name
	}
	c.args.WriteString(arguments(tc))
	r.reply.Grow(len(tc.Function.Arguments))
	for name, field := range tc.JSON.ExtraFields {
		var v any
		if json.Unmarshal([]byte(field.Raw()), &v) == nil && v != nil {
			c.extra = merge(c.extra, name, v)
		}
	}
}

// arguments returns a piece of the arguments. A server that sends an object
// instead of a string sends it in one piece.
func arguments(tc sdk.ChatCompletionChunkChoiceDeltaToolCall) string {
	if raw := tc.Function.JSON.Arguments.Raw(); strings.HasPrefix(strings.TrimSpace(raw), "{") {
		return raw
	}
	return tc.Function.Arguments
}

func (r *chatReader) end(by string) []llm.Event {
	var out []llm.Event
	var native []any
	for _, c := range r.calls {
		if c.id == "" {
			c.id = llm.NewCallID()
		}
		call, faithful := r.tools.Call(c.id, c.name, []byte(c.args.String()))
		out = append(out, r.reply.Call(call, faithful))
		raw := map[string]any{"id": c.id, "type": "function", "function": map[string]any{"name": c.name, "arguments": c.args.String()}}
		maps.Copy(raw, c.extra)
		native = append(native, raw)
	}
	var message json.RawMessage
	if len(r.extra) > 0 || slices.ContainsFunc(r.calls, func(c *chatCall) bool { return len(c.extra) > 0 }) {
		// A native form is needed only for content that the neutral form cannot
		// represent.
		m := map[string]any{}
		maps.Copy(m, r.extra)
		if len(native) == 0 {
			// Reasoning belongs to its turn; servers require it only while
			// tools are being called.
			delete(m, "reasoning_content")
			delete(m, "reasoning")
		}
		text := r.reply.Message().Text()
		m["role"], m["content"] = "assistant", text
		if len(native) > 0 {
			m["tool_calls"] = native
			if text == "" {
				m["content"] = nil
			}
		}
		message, _ = json.Marshal(m)
	}
	stop, detail := chatStop(r.finish)
	return append(out, r.reply.Turn(stop, detail, r.usage, by, message))
}

func chatStop(finish string) (llm.Stop, string) {
	switch finish {
	case "stop":
		return llm.StopEnd, ""
	case "tool_calls", "function_call":
		return llm.StopCalls, ""
	case "length":
		return llm.StopLength, ""
	case "content_filter":
		return llm.StopFilter, finish
	}
	return llm.StopOther, finish
}

// merge adds a piece of a streamed field to its previous value: strings are
// concatenated, lists are appended or matched by index, other values are
// replaced.
func merge(dst map[string]any, name string, v any) map[string]any {
	if dst == nil {
		dst = map[string]any{}
	}
	switch v := v.(type) {
	case string:
		if old, ok := dst[name].(string); ok && streamedFields[name] {
			dst[name] = old + v
			return dst
		}
	case []any:
		old, _ := dst[name].([]any)
		for _, item := range v {
			old = mergeItem(old, item)
		}
		dst[name] = old
		return dst
	case map[string]any:
		if old, ok := dst[name].(map[string]any); ok {
			for k, inner := range v {
				old = merge(old, k, inner)
			}
			dst[name] = old
			return dst
		}
	case nil:
		return dst
	}
	dst[name] = v
	return dst
}

// streamedFields names the fields that arrive in pieces.
var streamedFields = map[string]bool{"reasoning_content": true, "reasoning": true, "text": true, "summary": true, "thinking": true, "data": true}

func mergeItem(list []any, item any) []any {
	m, ok := item.(map[string]any)
	if !ok || m["index"] == nil {
		return append(list, item)
	}
	for i := range list {
		if have, ok := list[i].(map[string]any); ok && fmt.Sprint(have["index"]) == fmt.Sprint(m["index"]) && fmt.Sprint(have["type"]) == fmt.Sprint(m["type"]) {
			for k, v := range m {
				have = merge(have, k, v)
			}
			return list
		}
	}
	return append(list, item)
}
