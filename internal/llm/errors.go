package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// Reason is why a request to a model failed. It determines what can be done
// about it.
type Reason string

// The reasons.
const (
	BadKey        Reason = "bad_key"
	UnknownModel  Reason = "unknown_model"
	Quota         Reason = "quota"          // quota or credit used up; waiting does not help
	Busy          Reason = "busy"           // rate limit reached, or overloaded
	Broken        Reason = "broken"         // the provider failed
	Unreachable   Reason = "unreachable"    // no connection
	Silent        Reason = "silent"         // idle timeout
	CutOff        Reason = "cut_off"        // the stream ended before the reply did
	ContextLength Reason = "context_length" // the conversation is too long for the model
	TooLong       Reason = "too_long"       // the reply exceeds MaxReply
	BadRequest    Reason = "bad_request"
	Stopped       Reason = "stopped" // the context was cancelled
)

// Error is a failed request to a model. It unwraps to a [tool.Error], so that
// all APIs handle it like other errors.
type Error struct {
	Reason Reason
	Status int // HTTP status; 0 if there was no response
	shown  *tool.Error
}

func (e *Error) Error() string { return e.shown.Error() }

// Unwrap returns the error that may be shown to callers.
func (e *Error) Unwrap() error { return e.shown }

// RetryAfter returns the delay that the provider requested, or 0.
func (e *Error) RetryAfter() time.Duration { return e.shown.RetryAfter }

// Retryable reports whether a retry may succeed.
func (e *Error) Retryable() bool {
	switch e.Reason {
	case Busy, Broken, Unreachable, Silent, CutOff:
		return true
	}
	return false
}

// ReasonOf returns the reason of the first Error in err's chain, or "".
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}

// Failure describes a failed request of an adapter.
type Failure struct {
	Status     int
	Code       string // the provider's own code or type
	Text       string // the provider's message
	RetryAfter time.Duration
	Err        error // the SDK's error
	Begun      bool  // a part of the reply had arrived
	TooLong    bool  // the reply was stopped because of its length
}

// Fail converts a failure into an [Error]. Secrets of c are removed from the
// provider's message. Messages about keys are not included at all, because
// providers quote parts of them.
func (c Config) Fail(ctx context.Context, f Failure) error {
	e := &Error{Status: f.Status}
	e.Reason = reason(ctx, f)
	kind, msg := e.describe(c, f)
	e.shown = &tool.Error{Kind: kind, Msg: msg, RetryAfter: f.RetryAfter, Err: c.cause(e.Reason, f)}
	return e
}

func reason(ctx context.Context, f Failure) Reason {
	text := strings.ToLower(f.Code + " " + f.Text)
	has := func(words ...string) bool {
		for _, w := range words {
			if strings.Contains(text, w) {
				return true
			}
		}
		return false
	}
	if errors.Is(f.Err, errIdleProvider) || errors.Is(context.Cause(ctx), errIdleProvider) {
		return Silent
	}
	if ctx.Err() != nil {
		return Stopped
	}
	switch {
	case f.TooLong:
		return TooLong
	case f.Status == 0 && f.Begun:
		return CutOff
	case f.Status == 0 && (f.Err == nil || !unreachable(f.Err)):
		return Broken
	case f.Status == 0:
		return Unreachable
	case f.Status == http.StatusUnauthorized, has("api_key_invalid", "invalid_api_key", "authentication_error", "api key not valid", "api key expired"),
		f.Status == http.StatusForbidden && !has("region", "country", "model"):
		return BadKey
	case has("context_length", "context length", "prompt is too long", "exceeds the maximum number of tokens", "context window", "maximum context", "input is too long", "too many tokens in"),
		f.Status == http.StatusRequestEntityTooLarge:
		return ContextLength
	case has("insufficient_quota", "billing", "credit balance", "exceeded your current quota") && !has("per minute", "perminute", "retrydelay"):
		return Quota
	case f.Status == http.StatusPaymentRequired:
		return Quota
	case f.Status == http.StatusNotFound, has("model_not_found", "model not found") && f.Status < 500:
		return UnknownModel
	case f.Status == http.StatusTooManyRequests, f.Status == 529, f.Status == http.StatusServiceUnavailable, has("overloaded"):
		return Busy
	case f.Status == http.StatusRequestTimeout, f.Status == http.StatusConflict, f.Status >= 500:
		return Broken
	}
	return BadRequest
}

func unreachable(err error) bool {
	_, isNet := errors.AsType[net.Error](err)
	_, isOp := errors.AsType[*net.OpError](err)
	return isNet || isOp
}

func (e *Error) describe(c Config, f Failure) (tool.Kind, string) {
	who := c.label()
	switch e.Reason {
	case BadKey:
		return tool.UpstreamFailed, fmt.Sprintf("%s does not accept the API key; %s", who, c.keyAdvice())
	case UnknownModel:
		return tool.UpstreamFailed, fmt.Sprintf("%s has no model %q for this key; check llm.model%s", who, c.Model, c.modelAdvice())
	case Quota:
		return tool.UpstreamFailed, fmt.Sprintf("the quota or credit at %s is used up; see the account's billing page, or choose another model", who)
	case Busy:
		return tool.RateLimited, fmt.Sprintf("%s is busy; try again in a moment", who)
	case Broken:
		return tool.UpstreamFailed, fmt.Sprintf("%s failed%s; try again in a moment", who, status(e.Status))
	case Unreachable:
		return tool.Unavailable, fmt.Sprintf("%s cannot be reached; %s", who, c.reachAdvice())
	case Silent:
		return tool.Timeout, fmt.Sprintf("%s sent nothing for %s; try again, or raise llm.timeoutMs", who, c.TimeoutMs.Duration())
	case CutOff:
		return tool.UpstreamFailed, fmt.Sprintf("the reply of %s was interrupted; try again", who)
	case ContextLength:
		return tool.TooLarge, fmt.Sprintf("the conversation is too long for %s; start a new one, or lower chat.maxTokenCount", c.Model)
	case TooLong:
		return tool.TooLarge, fmt.Sprintf("the reply of %s was longer than %d MiB and was cut", who, MaxReply>>20)
	case Stopped:
		return tool.Canceled, "stopped"
	}
	return tool.UpstreamFailed, fmt.Sprintf("%s refused the request%s%s", who, status(e.Status), c.quote(f.Text))
}

func (c Config) label() string {
	switch c.Provider {
	case Gemini:
		return "Gemini"
	case OpenAI:
		return "OpenAI"
	case Anthropic:
		return "Anthropic"
	case XAI:
		return "xAI"
	case Ollama:
		return "Ollama"
	}
	return "the model's server"
}

func (c Config) keyAdvice() string {
	if v := keyVariables(c.Provider); len(v) > 0 {
		return "set llm.apiKey or " + v[0] + " to a valid one"
	}
	return "set llm.apiKey to a valid one"
}

func (c Config) modelAdvice() string {
	if c.Provider == Ollama {
		return ", or fetch it with: ollama pull " + c.Model
	}
	return ""
}

func (c Config) reachAdvice() string {
	if c.Provider == Ollama {
		return "start it with: ollama serve"
	}
	if c.BaseURL != "" {
		return "check llm.baseUrl and that the server runs"
	}
	return "check the network and the proxy settings"
}

func status(code int) string {
	if code == 0 {
		return ""
	}
	return " (HTTP " + strconv.Itoa(code) + ")"
}

// maxQuote bounds the part of a provider's message that is included in an
// error.
const maxQuote = 500

// quote returns the part of a provider's message that is safe to show.
func (c Config) quote(text string) string {
	text = c.clean(strings.TrimSpace(text))
	if text == "" {
		return ""
	}
	return ": " + text
}

func (c Config) clean(text string) string {
	if key := c.APIKey.Reveal(); len(key) > 3 {
		text = strings.ReplaceAll(text, key, telemetry.Redacted)
	}
	if len(text) > maxQuote {
		text = strings.ToValidUTF8(text[:maxQuote], "") + "…"
	}
	return text
}

// cause returns the error for the log. The errors of the SDKs may contain the
// request, so only their text is kept.
func (c Config) cause(r Reason, f Failure) error {
	if r == BadKey {
		return fmt.Errorf("HTTP %d", f.Status)
	}
	text := f.Text
	if text == "" && f.Err != nil {
		text = f.Err.Error()
	}
	if f.Code != "" {
		text = f.Code + ": " + text
	}
	if r == Stopped || r == Silent {
		return f.Err // context.Canceled must be found by errors.Is
	}
	return errors.New(c.clean(text))
}

// ErrorBody returns the code and the message in an error body of any provider.
func ErrorBody(raw string) (code, text string) {
	var body struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
	}
	if json.Unmarshal([]byte(raw), &body) != nil {
		return "", strings.TrimSpace(raw)
	}
	inner := []byte(raw)
	if len(body.Error) > 0 {
		inner = body.Error
	}
	var e struct {
		Code    any    `json:"code"`
		Type    string `json:"type"`
		Status  string `json:"status"`
		Message string `json:"message"`
	}
	if json.Unmarshal(inner, &e) == nil && e.Message != "" {
		code = e.Type
		if s, ok := e.Code.(string); ok && s != "" {
			code = s
		} else if e.Status != "" {
			code = e.Status
		}
		return code, e.Message
	}
	var plain string
	if json.Unmarshal(body.Error, &plain) == nil {
		return "", plain
	}
	if body.Message != "" {
		return "", body.Message
	}
	return "", strings.TrimSpace(raw)
}

// RetryAfterHeader parses Retry-After, in seconds or as a date, and the
// retry-after-ms header of some services.
func RetryAfterHeader(h http.Header) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms > 0 && ms < 1e9 {
		return time.Duration(ms * float64(time.Millisecond))
	}
	v := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	if t, err := http.ParseTime(v); err == nil {
		if d := time.Until(t); d > 0 {
			return d
		}
	}
	return 0
}
