package mcpclient

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// HTTPError is an HTTP response without a JSON-RPC message.
type HTTPError struct {
	Status          int
	Method          string
	URL             string           // without query, for logs
	ContentType     string           // of the body
	Body            string           // its beginning, for logs: never for callers
	WWWAuthenticate []string         // of a 401 or 403
	Credential      telemetry.Secret // the refused Authorization header, to distinguish an old token from a new one
	Nonce           string           // required by the server in the DPoP proof of a bound token
	RetryAfter      time.Duration
	Location        string // of a redirect that was not followed
}

func (e *HTTPError) Error() string {
	s := fmt.Sprintf("%s %s: HTTP %d %s", e.Method, e.URL, e.Status, http.StatusText(e.Status))
	if e.Body != "" {
		s += ": " + e.Body
	}
	return s
}

// Unauthorized reports whether credentials are missing or insufficient.
func (e *HTTPError) Unauthorized() bool {
	return e.Status == http.StatusUnauthorized || e.Status == http.StatusForbidden && len(e.WWWAuthenticate) > 0
}

// toolError converts the response into the caller's error.
func (e *HTTPError) toolError() *tool.Error {
	t := &tool.Error{Kind: tool.UpstreamFailed, RetryAfter: e.RetryAfter, Err: e}
	switch {
	case e.Unauthorized():
		t.Kind = tool.UpstreamAuthRequired
		t.Msg = fmt.Sprintf("the server requires authorization (HTTP %d); sign in to it or check its token", e.Status)
	case e.Status == http.StatusForbidden:
		t.Msg = "the server refuses access (HTTP 403); check its token and its allowed origins"
	case e.Status == http.StatusTooManyRequests:
		t.Msg = "the server is limiting the request rate (HTTP 429); try again later"
	case e.Location != "":
		t.Msg = fmt.Sprintf("the server redirects to another address (HTTP %d); configure that address", e.Status)
	case e.Status/100 == 2 && mediaType(e.ContentType) == "text/html":
		t.Msg = "the URL leads to a web page, not to an MCP endpoint; check the URL"
	case e.Status/100 == 2 && e.Status != http.StatusOK:
		t.Msg = fmt.Sprintf("the server accepted the request but sent no response (HTTP %d)", e.Status)
	case e.Status/100 == 2:
		t.Msg = fmt.Sprintf("the server answered with content of type %q, which is neither JSON nor an event stream", printable(e.ContentType))
	case e.Status == http.StatusNotFound || e.Status == http.StatusMethodNotAllowed:
		t.Msg = fmt.Sprintf("there is no MCP endpoint at the address (HTTP %d %s); check the URL", e.Status, http.StatusText(e.Status))
	default:
		t.Msg = strings.TrimSpace(fmt.Sprintf("the server answered HTTP %d %s", e.Status, http.StatusText(e.Status)))
	}
	return t
}

// newHTTPError returns the error for resp; body is the part of its body that
// was read.
func newHTTPError(resp *http.Response, body []byte) *HTTPError {
	e := &HTTPError{
		Status:          resp.StatusCode,
		ContentType:     resp.Header.Get("Content-Type"),
		Body:            printable(mcp.Preview(body)),
		WWWAuthenticate: resp.Header.Values("WWW-Authenticate"),
		Nonce:           resp.Header.Get("DPoP-Nonce"),
		RetryAfter:      retryAfter(resp.Header.Get("Retry-After"), time.Now()),
	}
	if resp.Request != nil {
		e.Method = resp.Request.Method
		u := *resp.Request.URL
		u.RawQuery, u.Fragment, u.User = "", "", nil
		e.URL = u.String()
		if e.Unauthorized() {
			e.Credential = telemetry.Secret(resp.Request.Header.Get("Authorization"))
		}
	}
	if resp.StatusCode/100 == 3 {
		e.Location = resp.Header.Get("Location")
	}
	return e
}

// retryAfter parses a Retry-After header, which contains seconds or a date.
func retryAfter(value string, now time.Time) time.Duration {
	const maxDelay = time.Hour
	if n, err := strconv.ParseUint(value, 10, 31); err == nil {
		return min(time.Duration(n)*time.Second, maxDelay)
	}
	if at, err := http.ParseTime(value); err == nil {
		return min(max(at.Sub(now), 0), maxDelay)
	}
	return 0
}

// isEventStream and isJSON test content types and ignore their parameters.
func isEventStream(contentType string) bool { return mediaType(contentType) == "text/event-stream" }

func isJSON(contentType string) bool {
	t := mediaType(contentType)
	return t == "application/json" || strings.HasSuffix(t, "+json")
}

func mediaType(contentType string) string {
	t, _, _ := strings.Cut(contentType, ";")
	return strings.ToLower(strings.TrimSpace(t))
}
