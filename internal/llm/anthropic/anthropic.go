// Package anthropic adapts Anthropic's models through the official SDK.
//
// Thinking blocks are sent back to the model unchanged, with their signatures.
// The common prefix of a conversation's requests is marked for the provider's
// prompt cache.
package anthropic

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"junctor/internal/llm"
	"junctor/internal/provider"
)

// defaultReply is the default limit of a reply; the API requires one.
const defaultReply = 8192

// Model is one model.
type Model struct {
	cfg    llm.Config
	client sdk.Client
}

// New returns the model that cfg describes; transport may be nil. It sends
// nothing.
func New(cfg llm.Config, transport http.RoundTripper) *Model {
	opts := []option.RequestOption{
		option.WithoutEnvironmentDefaults(),
		option.WithoutOpenTelemetry(), // llm creates the spans
		option.WithHTTPClient(cfg.HTTPClient(transport)),
		option.WithMaxRetries(0), // llm retries, before the first event only
	}
	if cfg.BaseURL != "" {
		opts = append(opts, option.WithBaseURL(cfg.BaseURL))
	}
	if cfg.Bearer {
		opts = append(opts, option.WithAuthToken(cfg.APIKey.Reveal()))
	} else {
		opts = append(opts, option.WithAPIKey(cfg.APIKey.Reveal()))
	}
	for name, value := range cfg.Headers {
		opts = append(opts, option.WithHeader(name, value))
	}
	return &Model{cfg: cfg, client: sdk.NewClient(opts...)}
}

// Info describes the model.
func (m *Model) Info() llm.Info { return m.cfg.Info() }

func (m *Model) by() string { return llm.NativeBy("anthropic", m.cfg.Model) }

// Stream requests the next turn.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		body, err := m.body(req)
		if err != nil {
			yield(llm.Event{}, err)
			return
		}
		var params sdk.MessageNewParams
		param.SetJSON(body, &params)
		stream := m.client.Messages.NewStreaming(ctx, params)
		defer stream.Close()

		begun := false
		r := reader{tools: req.Tools}
		for stream.Next() {
			ev, ok := r.event(stream.Current())
			if ok {
				begun = true
				if !yield(ev, nil) {
					return
				}
			}
			if r.reply.Full() {
				yield(llm.Event{}, m.cfg.Fail(ctx, llm.Failure{TooLong: true, Begun: true, Err: errors.New("overlong reply")}))
				return
			}
		}
		if err := stream.Err(); err != nil {
			yield(llm.Event{}, m.fail(ctx, err, begun))
			return
		}
		if !r.stopped {
			yield(llm.Event{}, m.cfg.Fail(ctx, llm.Failure{Begun: true, Err: errors.New("the stream ended before the reply did")}))
			return
		}
		yield(r.end(m.by()), nil)
	}
}

func (m *Model) body(req llm.Request) ([]byte, error) {
	body := map[string]any{"model": m.cfg.Model, "max_tokens": defaultReply}
	if n := m.cfg.ReplyTokens(req); n > 0 {
		body["max_tokens"] = n
	}
	if t := req.TemperatureOr(m.cfg.Temperature); t != nil {
		body["temperature"] = min(*t, 1)
	}
	if system := req.Prompt(); system != "" {
		body["system"] = []any{cached(map[string]any{"type": "text", "text": system})}
	}
	tools, err := req.Tools.Declare(provider.Anthropic)
	if err != nil {
		return nil, err
	}
	if len(tools) > 0 {
		body["tools"] = tools
		choice := map[string]any{"type": "auto"}
		switch {
		case req.Choice == llm.None:
			choice["type"] = "none"
		case req.Choice == llm.Required && req.Only != "":
			choice["type"], choice["name"] = "tool", req.Only
		case req.Choice == llm.Required:
			choice["type"] = "any"
		}
		if req.Single && req.Choice != llm.None {
			choice["disable_parallel_tool_use"] = true
		}
		body["tool_choice"] = choice
	}
	messages := []any{}
	history := req.History()
	for i, msg := range history {
		role, content := "user", []any{}
		switch msg.Role {
		case llm.Assistant:
			role = "assistant"
			if native := msg.NativeFor(m.by()); native != nil {
				messages = append(messages, map[string]any{"role": role, "content": json.RawMessage(native)})
				continue
			}
			content = blocks(msg)
		case llm.User:
			content = blocks(msg)
		case llm.Tool:
			for _, res := range msg.Results() {
				out, err := llm.FormatResult(provider.Anthropic, res, true)
				if err != nil {
					return nil, err
				}
				content = append(content, out)
			}
		}
		if len(content) == 0 {
			continue
		}
		if i == len(history)-1 {
			content[len(content)-1] = cached(content[len(content)-1])
		}
		messages = append(messages, map[string]any{"role": role, "content": content})
	}
	body["messages"] = messages
	return json.Marshal(body)
}

// cached marks a block as the end of the part that the provider should cache.
func cached(block any) any {
	m, ok := block.(map[string]any)
	if !ok {
		raw, isRaw := block.(json.RawMessage)
		if !isRaw || json.Unmarshal(raw, &m) != nil {
			return block
		}
	}
	m["cache_control"] = map[string]any{"type": "ephemeral"}
	return m
}

func blocks(m llm.Message) []any {
	var out []any
	for _, p := range m.Parts {
		switch {
		case strings.TrimSpace(p.Text) != "": // the API rejects blank text
			out = append(out, map[string]any{"type": "text", "text": p.Text})
		case p.File != nil:
			out = append(out, map[string]any{"type": "document", "title": p.File.Name, "source": map[string]any{
				"type": "base64", "media_type": p.File.MIME, "data": base64.StdEncoding.EncodeToString(p.File.Data)}})
		case p.Image != nil:
			out = append(out, map[string]any{"type": "image", "source": map[string]any{
				"type": "base64", "media_type": p.Image.MIME, "data": base64.StdEncoding.EncodeToString(p.Image.Data)}})
		case p.Call != nil:
			out = append(out, map[string]any{"type": "tool_use", "id": p.Call.ID, "name": p.Call.Name, "input": p.Call.Arguments})
		}
	}
	return out
}

// reader assembles a turn from events.
type reader struct {
	tools   *llm.Toolset
	reply   llm.Builder
	native  []json.RawMessage
	broken  bool // a block could not be preserved
	thought bool // there is content that the neutral form cannot represent

	start     map[string]json.RawMessage // the block in progress
	kind      string
	text, sig strings.Builder
	citations []json.RawMessage

	usage   llm.Usage
	stop    string
	stopped bool
}

func (r *reader) event(e sdk.MessageStreamEventUnion) (llm.Event, bool) {
	switch e.Type {
	case "message_start":
		u := e.Message.Usage
		r.usage = llm.Usage{Input: int(u.InputTokens + u.CacheReadInputTokens + u.CacheCreationInputTokens),
			Cached: int(u.CacheReadInputTokens), Output: int(u.OutputTokens)}
	case "content_block_start":
		return r.open(e)
	case "content_block_delta":
		switch d := e.Delta; d.Type {
		case "text_delta":
			r.text.WriteString(d.Text)
			return r.reply.Text(d.Text), d.Text != ""
		case "thinking_delta":
			r.text.WriteString(d.Thinking)
			return r.reply.Reasoning(d.Thinking), d.Thinking != ""
		case "signature_delta":
			r.sig.WriteString(d.Signature)
		case "input_json_delta":
			r.text.WriteString(d.PartialJSON)
			r.reply.Grow(len(d.PartialJSON))
		case "citations_delta":
			r.citations = append(r.citations, json.RawMessage(d.Citation.RawJSON()))
		}
	case "content_block_stop":
		return r.close()
	case "message_delta":
		r.stop = string(e.Delta.StopReason)
		r.usage.Output = int(e.Usage.OutputTokens)
		if e.Usage.JSON.InputTokens.Valid() && e.Usage.InputTokens > 0 {
			r.usage.Cached = int(e.Usage.CacheReadInputTokens)
			r.usage.Input = int(e.Usage.InputTokens + e.Usage.CacheReadInputTokens + e.Usage.CacheCreationInputTokens)
		}
	case "message_stop":
		r.stopped = true
	}
	return llm.Event{}, false
}

func (r *reader) open(e sdk.MessageStreamEventUnion) (llm.Event, bool) {
	r.text.Reset()
	r.sig.Reset()
	r.citations = nil
	r.kind = e.ContentBlock.Type
	r.start = nil
	if json.Unmarshal([]byte(e.ContentBlock.RawJSON()), &r.start) != nil {
		r.broken = true
	}
	switch r.kind {
	case "text":
		if t := e.ContentBlock.Text; t != "" {
			r.text.WriteString(t)
			return r.reply.Text(t), true
		}
	}
	return llm.Event{}, false
}

// close finishes the current block and returns the event of a complete call.
func (r *reader) close() (llm.Event, bool) {
	if r.start == nil {
		return llm.Event{}, false
	}
	set := func(name string, v any) {
		if b, err := json.Marshal(v); err == nil {
			r.start[name] = b
		}
	}
	var ev llm.Event
	var ok bool
	switch r.kind {
	case "text":
		if strings.TrimSpace(r.text.String()) == "" {
			r.start = nil
			return llm.Event{}, false
		}
		set("text", r.text.String())
		if len(r.citations) > 0 {
			set("citations", r.citations)
		}
	case "thinking":
		r.thought = true
		set("thinking", r.text.String())
		if r.sig.Len() > 0 {
			set("signature", r.sig.String())
		}
	case "tool_use":
		var id, name string
		json.Unmarshal(r.start["id"], &id)
		json.Unmarshal(r.start["name"], &name)
		args := r.text.String()
		if input := string(r.start["input"]); args == "" && input != "{}" {
			args = input // the server does not stream arguments
		}
		c, faithful := r.tools.Call(id, name, []byte(args))
		if given, valid := llm.Arguments([]byte(args)); valid {
			r.start["input"] = given
		}
		ev, ok = r.reply.Call(c, faithful), true
	default:
		r.thought = true // redacted thinking, and future block types
	}
	if b, err := json.Marshal(r.start); err == nil {
		r.native = append(r.native, b)
	} else {
		r.broken = true
	}
	r.start = nil
	return ev, ok
}

func (r *reader) end(by string) llm.Event {
	stop, detail := llm.StopOther, r.stop
	switch r.stop {
	case "end_turn", "stop_sequence":
		stop, detail = llm.StopEnd, ""
	case "tool_use":
		stop, detail = llm.StopCalls, ""
	case "max_tokens", "model_context_window_exceeded":
		stop = llm.StopLength
	case "refusal":
		stop = llm.StopFilter
	case "pause_turn":
		stop = llm.StopPause
	}
	var native json.RawMessage
	if r.thought && !r.broken && len(r.native) > 0 {
		native, _ = json.Marshal(r.native)
	}
	return r.reply.Turn(stop, detail, r.usage, by, native)
}

func (m *Model) fail(ctx context.Context, err error, begun bool) error {
	f := llm.Failure{Err: err, Begun: begun}
	if e, ok := errors.AsType[*sdk.Error](err); ok {
		f.Status = e.StatusCode
		f.Code, f.Text = llm.ErrorBody(e.RawJSON())
		if f.Status == http.StatusOK { // an error inside the stream
			f.Status = http.StatusBadGateway
		}
		if e.Response != nil {
			f.RetryAfter = llm.RetryAfterHeader(e.Response.Header)
		}
	}
	return m.cfg.Fail(ctx, f)
}
