// Package openai adapts OpenAI's models, and all models with a compatible API
// (xAI, Ollama, OpenRouter, vLLM …), through the official SDK.
//
// Fields that a server adds to its turns, such as thought signatures and
// reasoning details, are sent back to that server unchanged. If a server does
// not support an optional parameter, the request is retried without it, and
// later requests omit it.
package openai

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"strings"
	"sync"

	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"

	"junctor/internal/llm"
	"junctor/internal/provider"
)

// Model is one model.
type Model struct {
	cfg       llm.Config
	chat      sdk.ChatCompletionService
	responses responses.ResponseService

	mu      sync.Mutex
	refused map[string]bool // optional parameters that the server does not support
}

// New returns the model that cfg describes; transport may be nil. It sends
// nothing.
func New(cfg llm.Config, transport http.RoundTripper) *Model {
	opts := []option.RequestOption{
		option.WithHTTPClient(cfg.HTTPClient(transport)),
		option.WithMaxRetries(0), // llm retries, before the first event only
	}
	if cfg.BaseURL != "" {
		opts = append(opts, option.WithBaseURL(cfg.BaseURL))
	} else {
		opts = append(opts, option.WithEnvironmentProduction())
	}
	// A server without keys gets a placeholder, because the SDK requires one.
	key := cfg.APIKey.Reveal()
	if key == "" {
		key = "none"
	}
	opts = append(opts, option.WithAPIKey(key))
	for name, value := range cfg.Headers {
		opts = append(opts, option.WithHeader(name, value))
	}
	return &Model{
		cfg:       cfg,
		chat:      sdk.NewChatCompletionService(opts...),
		responses: responses.NewResponseService(opts...),
		refused:   map[string]bool{},
	}
}

// Info describes the model.
func (m *Model) Info() llm.Info { return m.cfg.Info() }

// Stream requests the next turn.
func (m *Model) Stream(ctx context.Context, req llm.Request) iter.Seq2[llm.Event, error] {
	ask := m.streamChat
	if m.cfg.API == llm.ResponsesAPI {
		ask = m.streamResponses
	}
	return func(yield func(llm.Event, error) bool) {
		for {
			begun := false
			sent, err := ask(ctx, req, func(ev llm.Event) bool {
				begun = true
				return yield(ev, nil)
			})
			if err == nil || errors.Is(err, errBroken) {
				return
			}
			if !begun && m.learnUnsupported(sent, err) {
				continue
			}
			yield(llm.Event{}, m.fail(ctx, err, begun))
			return
		}
	}
}

// errBroken means that the consumer has left the loop.
var errBroken = errors.New("the caller has left")

// errUnfinished means that the stream ended before the reply was complete.
var errUnfinished = errors.New("the stream ended before the reply did")

// errTooLong means that the reply exceeds [llm.MaxReply].
var errTooLong = errors.New("the reply is too long")

// optional are the parameters that can be omitted.
var optional = []string{"stream_options", "parallel_tool_calls", "temperature", "max_completion_tokens", "max_tokens",
	"prompt_cache_key", "tool_choice", "store", "include"}

// learnUnsupported records a parameter of the request that the server reported
// as unsupported, and reports whether there was one, so that a retry without it
// makes sense.
func (m *Model) learnUnsupported(sent map[string]any, err error) bool {
	e, ok := errors.AsType[*sdk.Error](err)
	if !ok || e.StatusCode != http.StatusBadRequest && e.StatusCode != http.StatusUnprocessableEntity {
		return false
	}
	_, text := llm.ErrorBody(e.RawJSON())
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range optional {
		if _, ok := sent[name]; ok && !m.refused[name] && (e.Param == name || mentionsParameter(text, name)) {
			m.refused[name] = true
			return true
		}
	}
	return false
}

// mentionsParameter reports whether a server's error message is about a parameter.
// Parameters whose names are common words must be in quotes.
func mentionsParameter(text, name string) bool {
	text = strings.ToLower(text)
	if name == "include" && strings.Contains(text, "encrypted content") {
		return true
	}
	if name == "store" || name == "include" {
		return strings.Contains(text, "'"+name+"'") || strings.Contains(text, `"`+name+`"`) || strings.Contains(text, "`"+name+"`")
	}
	for rest := text; ; {
		i := strings.Index(rest, name)
		if i < 0 {
			return false
		}
		end := i + len(name)
		if (i == 0 || !wordByte(rest[i-1])) && (end == len(rest) || !wordByte(rest[end])) {
			return true
		}
		rest = rest[end:]
	}
}

func wordByte(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' }

func (m *Model) supports(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.refused[name]
}

// isOpenAI reports whether the server is OpenAI's, which accepts parameters that
// others may not.
func (m *Model) isOpenAI() bool { return m.cfg.Provider == llm.OpenAI && m.cfg.BaseURL == "" }

// format returns the name of the declaration format.
func (m *Model) format() string {
	switch m.cfg.Provider {
	case llm.XAI:
		return provider.XAI
	case llm.Ollama:
		return provider.Ollama
	}
	return provider.OpenAI
}

func (m *Model) requestOptions(req llm.Request) []option.RequestOption {
	if m.cfg.Provider == llm.XAI && req.CacheKey != "" {
		return []option.RequestOption{option.WithHeader("x-grok-conv-id", req.CacheKey)}
	}
	return nil
}

// settings adds the parameters that both APIs share to a request body.
func (m *Model) settings(body map[string]any, req llm.Request, maxName string) {
	if t := req.TemperatureOr(m.cfg.Temperature); t != nil && m.supports("temperature") {
		body["temperature"] = *t
	}
	if limit := m.cfg.ReplyTokens(req); limit > 0 {
		if !m.supports(maxName) {
			maxName = map[string]string{"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}[maxName]
		}
		if maxName != "" && m.supports(maxName) {
			body[maxName] = limit
		}
	}
	if m.isOpenAI() && req.CacheKey != "" && m.supports("prompt_cache_key") {
		body["prompt_cache_key"] = req.CacheKey
	}
}

// fail converts err into an [llm.Error].
func (m *Model) fail(ctx context.Context, err error, begun bool) error {
	f := llm.Failure{Err: err, Begun: begun}
	if errors.Is(err, errTooLong) {
		f.TooLong = true
	}
	if e, ok := errors.AsType[*sdk.Error](err); ok {
		f.Status = e.StatusCode
		f.Code, f.Text = llm.ErrorBody(e.RawJSON())
		if f.Code == "" {
			f.Code = e.Code
		}
		if f.Text == "" {
			f.Text = e.Message
		}
		if e.Response != nil {
			f.RetryAfter = llm.RetryAfterHeader(e.Response.Header)
		}
	}
	if e, ok := errors.AsType[*ssestream.StreamError](err); ok {
		f.Status = http.StatusBadGateway
		f.Code, f.Text = llm.ErrorBody(string(e.Event.Data))
	}
	if e, ok := errors.AsType[*failedError](err); ok {
		f.Status, f.Code, f.Text = http.StatusBadGateway, e.code, e.text
	}
	return m.cfg.Fail(ctx, f)
}

// failedError is an error that the responses API reports as an event.
type failedError struct{ code, text string }

func (e *failedError) Error() string { return e.code + ": " + e.text }
