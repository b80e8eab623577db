// Package httperr gives every HTTP face the same failure: one body, one
// request id.
//
// It promises that a caller of any face can read any error the same way (the
// status from the error's kind, a message that says what to do, a code for
// programs, the id under which the log has the rest), and that nothing of an
// error's cause leaves the process. It decides nothing about what went wrong:
// that is [tool.Error]'s.
package httperr

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// Header carries the correlation id of a request, both ways.
const Header = "X-Request-Id"

// maxRequestID bounds an id that a client chose: it goes into every log line
// and record of the call.
const maxRequestID = 128

// Body is an error as HTTP callers see it.
type Body struct {
	Error     string    `json:"error"` // the status's reason phrase
	Message   string    `json:"message"`
	Details   any       `json:"details,omitempty"`
	Timestamp time.Time `json:"timestamp"`
	Code      tool.Kind `json:"code"`
	RequestID string    `json:"requestId,omitempty"`
}

// asError returns err as a [tool.Error]. An unavailable store is a passing
// condition and not an internal error.
func asError(err error) *tool.Error {
	e := tool.AsError(err)
	if e.Kind == tool.Internal && errors.Is(err, tool.ErrStoreUnavailable) {
		return &tool.Error{Kind: tool.Unavailable, Msg: "the store is unavailable; try again shortly", RetryAfter: 2 * time.Second, Err: err}
	}
	return e
}

// New returns the body for err and the status that goes with it. Bodies that
// are not a response of their own (the last event of a stream, one element of
// an array) are made with it; responses with [Write].
func New(ctx context.Context, err error) (Body, int) {
	e := asError(err)
	status := Status(e.Kind)
	return Body{
		Error:     reason(status),
		Message:   e.Msg,
		Details:   e.Details,
		Timestamp: time.Now().UTC().Truncate(time.Millisecond),
		Code:      e.Kind,
		RequestID: RequestID(ctx),
	}, status
}

// Status returns the HTTP status of a kind when it is reported as an error.
// It differs from [tool.Kind.HTTP] only where that is a success: a tool that
// failed is a result, and a body written as an error must not say 200.
func Status(k tool.Kind) int {
	if status := k.HTTP(); status >= 400 {
		return status
	}
	return http.StatusBadGateway
}

func reason(status int) string {
	if text := http.StatusText(status); text != "" {
		return text
	}
	return "Client Closed Request" // 499, the one status in use that the registry lacks
}

// Write answers r with err. It must be the first thing written to w.
func Write(w http.ResponseWriter, r *http.Request, err error) {
	WriteStatus(w, r, Status(asError(err).Kind), err)
}

// WriteStatus is Write with another status than the error's kind has, for what
// HTTP alone knows, such as a method that is not allowed.
func WriteStatus(w http.ResponseWriter, r *http.Request, status int, err error) {
	write(w, r, status, "", err)
}

// Reject is Write with a reason for those who observe rejected requests, finer
// than the error's kind.
func Reject(w http.ResponseWriter, r *http.Request, reason string, err error) {
	write(w, r, Status(asError(err).Kind), reason, err)
}

func write(w http.ResponseWriter, r *http.Request, status int, why string, err error) {
	observe(r, status, why, err)
	body, _ := New(r.Context(), err)
	body.Error = reason(status)
	h := w.Header()
	if body.RequestID != "" {
		h.Set(Header, body.RequestID)
	}
	if after := asError(err).RetryAfter; after > 0 {
		h.Set("Retry-After", strconv.FormatInt(int64((after+time.Second-1)/time.Second), 10))
	}
	if status == http.StatusUnauthorized && body.Code == tool.Unauthenticated && h.Get("WWW-Authenticate") == "" {
		h.Set("WWW-Authenticate", "Bearer")
	}
	h.Set("Content-Type", "application/json; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Del("Content-Length")
	h.Del("Content-Encoding")
	data, failed := json.Marshal(body)
	if failed != nil { // details that are no JSON: the message is worth more
		body.Details = nil
		data, _ = json.Marshal(body)
	}
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // a client that has gone away reads no error either
}

// WithRequestID gives every request an id: the client's own where it sent a
// usable one, else a new one. The answer carries it back, and [RequestID]
// finds it.
func WithRequestID(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := RequestID(r.Context())
		if id == "" {
			id = r.Header.Get(Header)
		}
		if !validRequestID(id) {
			id = telemetry.NewID()
		}
		w.Header()[Header] = []string{id}
		next.ServeHTTP(w, WithContext(r, telemetry.SetRequest(r.Context(), id)))
	})
}

// WithContext returns the request with the context: r itself if it has it
// already, as after [tool.SetValue].
func WithContext(r *http.Request, ctx context.Context) *http.Request {
	if r.Context() == ctx {
		return r
	}
	return r.WithContext(ctx)
}

// RequestID returns the id that [WithRequestID] gave the request, or "".
func RequestID(ctx context.Context) string {
	return telemetry.RequestID(ctx)
}

// validRequestID admits visible ASCII only, so that an id can stand in a
// header, a log line and a terminal without harm.
func validRequestID(id string) bool {
	if id == "" || len(id) > maxRequestID {
		return false
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return true
}
