package httperr

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"junctor/internal/tool"
)

func TestWrite(t *testing.T) {
	for name, tt := range map[string]struct {
		err        error
		status     int
		reason     string
		code       tool.Kind
		retryAfter string
		challenge  string
		details    string
	}{
		"not found with details": {
			err:    &tool.Error{Kind: tool.ToolNotFound, Msg: "no tool x", Details: map[string]any{"nearest": []string{"y"}}},
			status: 404, reason: "Not Found", code: tool.ToolNotFound, details: `{"nearest":["y"]}`,
		},
		"retry after rounds up": {
			err:    &tool.Error{Kind: tool.CircuitOpen, Msg: "open", RetryAfter: 1500 * time.Millisecond},
			status: 503, reason: "Service Unavailable", code: tool.CircuitOpen, retryAfter: "2",
		},
		"a failed tool is not a success": {
			err:    &tool.Error{Kind: tool.ExecutionFailed, Msg: "failed"},
			status: 502, reason: "Bad Gateway", code: tool.ExecutionFailed,
		},
		"unauthenticated asks for a token": {
			err:    &tool.Error{Kind: tool.Unauthenticated, Msg: "who are you"},
			status: 401, reason: "Unauthorized", code: tool.Unauthenticated, challenge: "Bearer",
		},
		"cancelled has a reason": {
			err:    &tool.Error{Kind: tool.Canceled, Msg: "gone"},
			status: 499, reason: "Client Closed Request", code: tool.Canceled,
		},
		"details that are no JSON are dropped": {
			err:    &tool.Error{Kind: tool.InvalidRequest, Msg: "bad", Details: func() {}},
			status: 400, reason: "Bad Request", code: tool.InvalidRequest,
		},
		"an unavailable store can be tried again": {
			err:    fmt.Errorf("read the keys: %w", tool.ErrStoreUnavailable),
			status: 503, reason: "Service Unavailable", code: tool.Unavailable, retryAfter: "2",
		},
		"anything else hides its cause": {
			err:    errors.New("open /home/secret: no such file"),
			status: 500, reason: "Internal Server Error", code: tool.Internal,
		},
	} {
		t.Run(name, func(t *testing.T) {
			rec := httptest.NewRecorder()
			r := httptest.NewRequest("GET", "/", nil)
			r.Header.Set(Header, "abc-1")
			WithRequestID(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { Write(w, r, tt.err) })).ServeHTTP(rec, r)
			if rec.Code != tt.status {
				t.Errorf("status = %d, want %d", rec.Code, tt.status)
			}
			var body struct {
				Error, Message, Code, RequestID string
				Details                         json.RawMessage
				Timestamp                       time.Time
			}
			if err := json.Unmarshal(rec.Body.Bytes(), &body); err != nil {
				t.Fatalf("body %q: %v", rec.Body, err)
			}
			if body.Error != tt.reason || body.Code != string(tt.code) || body.RequestID != "abc-1" || body.Message == "" || body.Timestamp.IsZero() {
				t.Errorf("body = %+v", body)
			}
			if string(body.Details) != tt.details {
				t.Errorf("details = %s, want %s", body.Details, tt.details)
			}
			if strings.Contains(rec.Body.String(), "secret") {
				t.Errorf("body shows the cause: %s", rec.Body)
			}
			if got := rec.Header().Get("Retry-After"); got != tt.retryAfter {
				t.Errorf("Retry-After = %q, want %q", got, tt.retryAfter)
			}
			if got := rec.Header().Get("WWW-Authenticate"); got != tt.challenge {
				t.Errorf("WWW-Authenticate = %q, want %q", got, tt.challenge)
			}
			if got := rec.Header().Get(Header); got != "abc-1" {
				t.Errorf("%s = %q", Header, got)
			}
		})
	}
}

func TestWriteWithoutMiddleware(t *testing.T) {
	rec := httptest.NewRecorder()
	Write(rec, httptest.NewRequest("GET", "/", nil), &tool.Error{Kind: tool.Denied, Msg: "no"})
	if rec.Code != 403 || strings.Contains(rec.Body.String(), "requestId") || rec.Header().Get(Header) != "" {
		t.Errorf("status %d, header %v, body %s", rec.Code, rec.Header(), rec.Body)
	}
}

func TestRequestID(t *testing.T) {
	for name, tt := range map[string]struct {
		sent string
		kept bool
	}{
		"none":          {sent: ""},
		"usable":        {sent: "trace-7/8", kept: true},
		"with a space":  {sent: "a b"},
		"not ASCII":     {sent: "é"},
		"too long":      {sent: strings.Repeat("x", 129)},
		"at the limit":  {sent: strings.Repeat("x", 128), kept: true},
		"control bytes": {sent: "a\x1b[31m"},
	} {
		t.Run(name, func(t *testing.T) {
			var seen string
			h := WithRequestID(WithRequestID(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = RequestID(r.Context()) })))
			r := httptest.NewRequest("GET", "/", nil)
			r.Header[Header] = []string{tt.sent}
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, r)
			if seen == "" || rec.Header().Get(Header) != seen || (seen == tt.sent) != tt.kept {
				t.Errorf("sent %q, seen %q, returned %q, want kept=%v", tt.sent, seen, rec.Header().Get(Header), tt.kept)
			}
		})
	}
}
