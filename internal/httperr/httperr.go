// Package httperr gives the errors of every HTTP API the same format: one
// body, one request id.
//
// A client can handle errors of all APIs in the same way: the status is
// derived from the error's kind, the message explains what to do, a code is
// for programs, and the request id leads to the details in the log. The cause
// of an error never leaves the process. The package does not classify errors;
// [tool.Error] does.
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

// maxRequestID bounds an id that a client chose, because it is in every log
// line and in the call's record.
const maxRequestID = 128

// Body is the body of an HTTP error response.
type Body struct {
	Error     string    `json:"error"` // the status's reason phrase
	Message   string    `json:"message"`
	Details   any       `json:"details,omitempty"`
	Timestamp time.Time `json:"timestamp"`
	Code      tool.Kind `json:"code"`
	RequestID string    `json:"requestId,omitempty"`
}

// asError returns err as a [tool.Error]. An unavailable store is a temporary
// condition, not an internal error.
func asError(err error) *tool.Error {
	e := tool.AsError(err)
	if e.Kind == tool.Internal && errors.Is(err, tool.ErrStoreUnavailable) {
		return &tool.Error{Kind: tool.Unavailable, Msg: "the store is unavailable; try again shortly", RetryAfter: 2 * time.Second, Err: err}
	}
	return e
}

// New returns the body for err and its HTTP status. It is meant for errors
// within a response, such as the last event of a stream or an element of an
// array; for whole responses use [Write].
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

// Status returns the HTTP status of a kind that is reported as an error. It
// differs from [tool.Kind.HTTP] only where that is a success: a failed tool is
// a result, but an error response must not have status 200.
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
	return "Client Closed Request" // 499, the only status in use that net/http does not name
}

// Write responds to r with err. Nothing may have been written to w before.
func Write(w http.ResponseWriter, r *http.Request, err error) {
	WriteStatus(w, r, Status(asError(err).Kind), err)
}

// WriteStatus is like Write, with a status other than that of the error's
// kind. It is for conditions that only HTTP has, such as a method that is not
// allowed.
func WriteStatus(w http.ResponseWriter, r *http.Request, status int, err error) {
	write(w, r, status, "", err)
}

// Reject is like Write, with a reason for the Observer that is more specific
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
	if failed != nil { // the details cannot be marshalled: send at least the message
		body.Details = nil
		data, _ = json.Marshal(body)
	}
	w.WriteHeader(status)
	_, _ = w.Write(append(data, '\n')) // the client may have disconnected
}

// WithRequestID assigns every request an id: the client's, if it is valid,
// otherwise a new one. The response contains it, and [RequestID] returns it.
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

// WithContext returns r with ctx: r itself if it already has it, as after
// [tool.SetValue].
func WithContext(r *http.Request, ctx context.Context) *http.Request {
	if r.Context() == ctx {
		return r
	}
	return r.WithContext(ctx)
}

// RequestID returns the id that [WithRequestID] assigned to the request, or
// "".
func RequestID(ctx context.Context) string {
	return telemetry.RequestID(ctx)
}

// validRequestID reports whether an id consists of visible ASCII, so that it
// is safe in headers, log lines and terminals.
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
