// Package gemini adapts Google's Gemini models through the official SDK.
//
// The parts of a turn are sent back to the model unchanged, including thought
// signatures, because Gemini 3 and later reject a history without them. The SDK
// decodes a reply into maps, which rounds large numbers. So the bytes are
// recorded while the SDK reads them, and arguments and native turns are taken
// from the recording.
package gemini

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"google.golang.org/genai"

	"junctor/internal/llm"
	"junctor/internal/provider"
)

// skipSignature replaces the signature of a call made by another model, as
// Google documents for conversations that move to Gemini.
const skipSignature = "skip_thought_signature_validator"

// unsigned matches the models that neither send nor require signatures, and do
// not accept images in the result of a call.
var unsigned = regexp.MustCompile(`^(models/)?(gemini-(1|2)[.-]|gemma|learnlm)`)

// Model is one model.
type Model struct {
	cfg    llm.Config
	client func() (*genai.Client, error)
}

// New returns the model that cfg describes; transport may be nil. It sends
// nothing.
func New(cfg llm.Config, transport http.RoundTripper) *Model {
	m := &Model{cfg: cfg}
	m.client = sync.OnceValues(func() (*genai.Client, error) {
		client := cfg.HTTPClient(transport)
		client.Transport = tee{client.Transport}
		// Both are set, so that the SDK does not read the environment.
		base := cfg.BaseURL
		if base == "" {
			base = "https://generativelanguage.googleapis.com/"
		}
		key := cfg.APIKey.Reveal()
		if key == "" {
			key = "none"
		}
		return genai.NewClient(context.Background(), &genai.ClientConfig{
			APIKey: key, Backend: genai.BackendGeminiAPI, HTTPClient: client, HTTPOptions: genai.HTTPOptions{BaseURL: base},
		})
	})
	return m
}

// Info describes the model.
func (m *Model) Info() llm.Info { return m.cfg.Info() }

func (m *Model) by() string { return llm.NativeBy("gemini", m.cfg.Model) }

// Stream requests the next turn.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		client, err := m.client()
		if err != nil {
			yield(llm.Event{}, m.cfg.Fail(ctx, llm.Failure{Err: errors.New("the SDK's client cannot be created")}))
			return
		}
		body, err := m.body(req)
		if err != nil {
			yield(llm.Event{}, err)
			return
		}
		raw := &lines{}
		ctx := context.WithValue(ctx, linesKey{}, raw)
		config := &genai.GenerateContentConfig{HTTPOptions: &genai.HTTPOptions{
			// The body replaces the SDK's own encoding of the tools.
			ExtrasRequestProvider: func(map[string]any) map[string]any { return body },
		}}
		r := reader{tools: req.Tools}
		for res, err := range client.Models.GenerateContentStream(ctx, m.cfg.Model, genai.Text("-"), config) {
			if err != nil {
				if raw.err != nil {
					err = raw.err // the SDK's error is only a consequence of it
				}
				yield(llm.Event{}, m.fail(ctx, err, r.begun))
				return
			}
			for _, ev := range r.chunk(res, raw.next()) {
				r.begun = true
				if !yield(ev, nil) {
					return
				}
			}
			if r.reply.Full() {
				yield(llm.Event{}, m.cfg.Fail(ctx, llm.Failure{TooLong: true, Begun: true, Err: errors.New("overlong reply")}))
				return
			}
		}
		if r.finish == "" && !r.blocked {
			err := raw.err
			if err == nil {
				err = errors.New("the stream ended before the reply did")
			}
			yield(llm.Event{}, m.cfg.Fail(ctx, llm.Failure{Begun: r.begun, Err: err}))
			return
		}
		yield(r.end(m.by()), nil)
	}
}

func (m *Model) body(req llm.Request) (map[string]any, error) {
	body := map[string]any{}
	if system := req.Prompt(); system != "" {
		body["systemInstruction"] = map[string]any{"role": "user", "parts": []any{map[string]any{"text": system}}}
	}
	generation := map[string]any{}
	if t := req.TemperatureOr(m.cfg.Temperature); t != nil {
		generation["temperature"] = *t
	}
	if n := m.cfg.ReplyTokens(req); n > 0 {
		generation["maxOutputTokens"] = n
	}
	if len(generation) > 0 {
		body["generationConfig"] = generation
	}
	tools, err := req.Tools.Declare(provider.Gemini)
	if err != nil {
		return nil, err
	}
	if len(tools) > 0 {
		body["tools"] = []any{map[string]any{"functionDeclarations": tools}}
		calling := map[string]any{"mode": "AUTO"}
		switch {
		case req.Choice == llm.None:
			calling["mode"] = "NONE"
		case req.Choice == llm.Required:
			calling["mode"] = "ANY"
			if req.Only != "" {
				calling["allowedFunctionNames"] = []string{req.Only}
			}
		}
		body["toolConfig"] = map[string]any{"functionCallingConfig": calling}
	}
	contents := []any{}
	nameless := map[string]bool{} // calls without an id from the model
	for _, msg := range req.History() {
		role, parts := "user", []any{}
		switch msg.Role {
		case llm.User:
			parts = m.parts(msg)
		case llm.Assistant:
			role = "model"
			if native := msg.NativeFor(m.by()); native != nil {
				contents = append(contents, map[string]any{"role": role, "parts": json.RawMessage(native)})
				markNameless(nameless, msg, native)
				continue
			}
			parts = m.parts(msg)
		case llm.Tool:
			for _, res := range msg.Results() {
				answer := *res
				if nameless[res.CallID] {
					answer.CallID = ""
				}
				out, err := llm.FormatResult(provider.Gemini, &answer, !unsigned.MatchString(m.cfg.Model))
				if err != nil {
					return nil, err
				}
				parts = append(parts, out)
			}
		}
		if len(parts) > 0 {
			contents = append(contents, map[string]any{"role": role, "parts": parts})
		}
	}
	body["contents"] = contents
	return body, nil
}

// markNameless records which calls of a native turn have no id: their results
// must not have one either.
func markNameless(nameless map[string]bool, msg llm.Message, native []byte) {
	var parts []struct {
		FunctionCall *struct {
			ID string `json:"id"`
		} `json:"functionCall"`
	}
	json.Unmarshal(native, &parts)
	calls := msg.Calls()
	for _, p := range parts {
		if p.FunctionCall == nil || len(calls) == 0 {
			continue
		}
		nameless[calls[0].ID] = p.FunctionCall.ID == ""
		calls = calls[1:]
	}
}

func (m *Model) parts(msg llm.Message) []any {
	var out []any
	called := false
	for _, p := range msg.Parts {
		switch {
		case p.Text != "":
			out = append(out, map[string]any{"text": p.Text})
		case p.File != nil:
			out = append(out, map[string]any{"inlineData": map[string]any{"mimeType": p.File.MIME, "data": base64.StdEncoding.EncodeToString(p.File.Data)}})
		case p.Image != nil:
			out = append(out, map[string]any{"inlineData": map[string]any{"mimeType": p.Image.MIME, "data": base64.StdEncoding.EncodeToString(p.Image.Data)}})
		case p.Call != nil:
			part := map[string]any{"functionCall": map[string]any{"id": p.Call.ID, "name": p.Call.Name, "args": p.Call.Arguments}}
			if !called && !unsigned.MatchString(m.cfg.Model) {
				part["thoughtSignature"] = skipSignature
			}
			called = true
			out = append(out, part)
		}
	}
	return out
}

// reader assembles a turn from chunks.
type reader struct {
	tools   *llm.Toolset
	reply   llm.Builder
	native  []map[string]json.RawMessage
	joined  strings.Builder // the text of the last native part if it arrived in pieces
	signed  bool
	usage   llm.Usage
	finish  genai.FinishReason
	detail  string
	blocked bool
	begun   bool
}

func (r *reader) chunk(res *genai.GenerateContentResponse, raw []json.RawMessage) []llm.Event {
	if u := res.UsageMetadata; u != nil {
		r.usage = llm.Usage{Input: int(u.PromptTokenCount + u.ToolUsePromptTokenCount), Cached: int(u.CachedContentTokenCount),
			Output: int(u.CandidatesTokenCount + u.ThoughtsTokenCount), Reasoning: int(u.ThoughtsTokenCount)}
	}
	if f := res.PromptFeedback; f != nil && f.BlockReason != "" {
		r.blocked, r.detail = true, string(f.BlockReason)
	}
	if len(res.Candidates) == 0 {
		return nil
	}
	c := res.Candidates[0]
	if c.FinishReason != "" {
		r.finish, r.detail = c.FinishReason, c.FinishMessage
	}
	var out []llm.Event
	for _, part := range raw {
		if ev, ok := r.part(part); ok {
			out = append(out, ev)
		}
	}
	return out
}

func (r *reader) part(raw json.RawMessage) (llm.Event, bool) {
	var fields map[string]json.RawMessage
	var p struct {
		Text         string `json:"text"`
		Thought      bool   `json:"thought"`
		FunctionCall *struct {
			ID   string          `json:"id"`
			Name string          `json:"name"`
			Args json.RawMessage `json:"args"`
		} `json:"functionCall"`
	}
	if json.Unmarshal(raw, &fields) != nil || json.Unmarshal(raw, &p) != nil {
		return llm.Event{}, false
	}
	r.keep(fields, p.Text)
	switch {
	case p.FunctionCall != nil:
		id := p.FunctionCall.ID
		if id == "" {
			id = llm.NewCallID()
		}
		r.reply.Grow(len(p.FunctionCall.Args))
		args := cmp.Or(string(p.FunctionCall.Args), "{}") // a call is never split, so it has no arguments
		c, faithful := r.tools.Call(id, p.FunctionCall.Name, []byte(args))
		return r.reply.Call(c, faithful), true
	case p.Text == "":
		return llm.Event{}, false
	case p.Thought:
		return r.reply.Reasoning(p.Text), true
	}
	return r.reply.Text(p.Text), true
}

// keep adds a part to the native turn. Text that arrived in pieces is joined,
// but a signature stays on its part.
func (r *reader) keep(fields map[string]json.RawMessage, text string) {
	if fields["thoughtSignature"] != nil {
		r.signed = true
	}
	if n := len(r.native); n > 0 && plainText(fields) && plainText(r.native[n-1]) && bytes.Equal(fields["thought"], r.native[n-1]["thought"]) {
		if r.joined.Len() == 0 {
			var before string
			_ = json.Unmarshal(r.native[n-1]["text"], &before) // it was read as a string before
			r.joined.WriteString(before)
		}
		r.joined.WriteString(text)
		return
	}
	r.flush()
	r.native = append(r.native, fields)
}

// flush writes the joined text to its part. It is encoded once, because
// encoding it for every piece would take quadratic time.
func (r *reader) flush() {
	if r.joined.Len() == 0 {
		return
	}
	if text, err := json.Marshal(r.joined.String()); err == nil {
		r.native[len(r.native)-1]["text"] = text
	}
	r.joined.Reset()
}

func plainText(fields map[string]json.RawMessage) bool {
	for name := range fields {
		if name != "text" && name != "thought" {
			return false
		}
	}
	return fields["text"] != nil
}

func (r *reader) end(by string) llm.Event {
	stop := llm.StopOther
	switch r.finish {
	case genai.FinishReasonStop:
		stop = llm.StopEnd
	case genai.FinishReasonMaxTokens:
		stop = llm.StopLength
	case genai.FinishReasonMalformedFunctionCall, genai.FinishReasonUnexpectedToolCall, genai.FinishReasonTooManyToolCalls:
		stop = llm.StopMalformed
	case genai.FinishReasonSafety, genai.FinishReasonRecitation, genai.FinishReasonBlocklist, genai.FinishReasonProhibitedContent,
		genai.FinishReasonSPII, genai.FinishReasonLanguage, genai.FinishReasonImageSafety, genai.FinishReasonImageProhibitedContent:
		stop = llm.StopFilter
	}
	if r.blocked {
		stop = llm.StopFilter
	}
	if stop != llm.StopEnd && r.detail == "" {
		r.detail = string(r.finish)
	}
	var native json.RawMessage
	if r.signed {
		r.flush()
		native, _ = json.Marshal(r.native)
	}
	return r.reply.Turn(stop, r.detail, r.usage, by, native)
}

func (m *Model) fail(ctx context.Context, err error, begun bool) error {
	f := llm.Failure{Err: err, Begun: begun}
	if e, ok := errors.AsType[genai.APIError](err); ok {
		f.Status, f.Code, f.Text = e.Code, e.Status, e.Message
		for _, d := range e.Details {
			if reason, ok := d["reason"].(string); ok {
				f.Code = reason
			}
			if delay, ok := d["retryDelay"].(string); ok {
				f.RetryAfter, _ = time.ParseDuration(delay)
			}
		}
		if strings.Contains(f.Text, "per minute") || f.RetryAfter > 0 {
			f.Code += " retryDelay" // a rate limit, not the account's quota
		}
	}
	return m.cfg.Fail(ctx, f)
}
