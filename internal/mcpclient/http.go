package mcpclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"junctor/internal/http1"
	"junctor/internal/mcp"
	"junctor/internal/tool"
)

// HTTPOptions describe a server that is reached over HTTP.
type HTTPOptions struct {
	URL    string
	Header http.Header // sent with every request to the server's own origin

	// RoundTripper sends the requests; see [NewRoundTripper]. Nil means a new
	// one without a proxy, with plain HTTP on the caller's goroutine.
	RoundTripper http.RoundTripper

	// Authorize adds credentials to a request. refused is nil at first; after
	// a 401, or a 403 that names what is missing, it is that response, and the
	// request is retried once if Authorize returns nil. Its error is the error
	// of the call.
	Authorize func(ctx context.Context, r *http.Request, refused *HTTPError) error

	// StreamableOnly keeps [NewHTTP] from trying the legacy SSE transport.
	StreamableOnly bool

	// NoStandalone keeps the client from opening the GET stream on which
	// servers of the handshake era send change notifications.
	NoStandalone bool

	Limits mcp.Limits
}

// NewRoundTripper returns an http.Transport suitable for a gateway: Go's
// default keeps two idle connections per host, and dials for other requests.
// proxy may be nil.
func NewRoundTripper(proxy func(*http.Request) (*url.URL, error)) *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = proxy
	t.MaxIdleConns = 1024
	t.MaxIdleConnsPerHost = 128
	t.MaxResponseHeaderBytes = 256 << 10
	return t
}

// httpEndpoint sends HTTP requests to one server, with headers, credentials and
// redirects. Both HTTP transports use it.
type httpEndpoint struct {
	o      HTTPOptions
	url    *url.URL
	rt     http.RoundTripper
	limits mcp.Limits
	logins atomic.Int32 // requests that are waiting for Authorize
	guards redirectGuards
}

func newEndpoint(o HTTPOptions) (*httpEndpoint, error) {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, &tool.Error{Kind: tool.UpstreamFailed, Msg: "the server's url must be an http or https address", Err: err}
	}
	u.Fragment = ""
	if u.User != nil { // http.Client would do this; a round tripper does not
		password, _ := u.User.Password()
		basic := http.Request{Header: http.Header{}}
		basic.SetBasicAuth(u.User.Username(), password)
		header := basic.Header
		setAll(header, o.Header)
		o.Header, u.User = header, nil
	}
	canonical := make(http.Header, len(o.Header))
	setAll(canonical, o.Header)
	o.Header = canonical
	e := &httpEndpoint{o: o, url: u, rt: o.RoundTripper, limits: o.Limits.WithDefaults()}
	e.limits.Repair = true
	if e.rt == nil {
		e.rt = http1.New(NewRoundTripper(nil))
	}
	return e, nil
}

type headerKey struct{}

// WithHeader returns a context whose calls over HTTP carry the headers too,
// unless the transport sets them itself.
func WithHeader(ctx context.Context, h http.Header) context.Context {
	return context.WithValue(ctx, headerKey{}, h)
}

// maxRedirects bounds the requests sent to follow redirects, including the
// first.
const maxRedirects = 5

// send sends one request, with credentials, and follows redirects. header adds
// the headers of the protocol to each request; body may be nil. The caller must
// close the body of the response.
func (e *httpEndpoint) send(ctx context.Context, method string, to *url.URL, header func(http.Header), body []byte) (*http.Response, error) {
	var refused *HTTPError
	var tried401, tried403, triedNonce bool
	for {
		resp, err := e.follow(ctx, method, to, header, body, refused)
		if err != nil {
			return nil, err
		}
		switch {
		case e.o.Authorize == nil:
			return resp, nil
		case resp.StatusCode == http.StatusUnauthorized && !tried401:
			tried401 = true
		case resp.StatusCode == http.StatusUnauthorized && !triedNonce && resp.Header.Get("DPoP-Nonce") != "":
			triedNonce = true
		case resp.StatusCode == http.StatusForbidden && !tried403 && resp.Header.Get("WWW-Authenticate") != "":
			tried403 = true
		default:
			return resp, nil
		}
		refused = newHTTPError(resp, readErrorBody(resp))
	}
}

// blankRequest contains the fields that all requests have in common.
var blankRequest = &http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}

func (e *httpEndpoint) request(ctx context.Context, method string, to *url.URL, header func(http.Header), body []byte, refused *HTTPError) (*http.Request, error) {
	own := to == e.url || sameOrigin(e.url, to)
	h := make(http.Header, 8)
	if own {
		if extra, ok := ctx.Value(headerKey{}).(http.Header); ok {
			setAll(h, extra)
		}
		maps.Copy(h, e.o.Header)
	}
	header(h)
	if !own {
		h.Del("Mcp-Session-Id")
	}
	req := blankRequest.WithContext(ctx) // a copy
	req.Method, req.URL, req.Host, req.Header = method, to, to.Host, h
	if body != nil {
		req.ContentLength = int64(len(body))
		req.Body = io.NopCloser(bytes.NewReader(body))
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	}
	if own && e.o.Authorize != nil {
		e.logins.Add(1)
		defer e.logins.Add(-1)
		if err := e.o.Authorize(ctx, req, refused); err != nil {
			return nil, err
		}
	}
	return req, nil
}

func (e *httpEndpoint) authorizing() bool { return e.logins.Load() > 0 }

func setAll(dst, src http.Header) {
	for k, v := range src {
		dst[http.CanonicalHeaderKey(k)] = v[:len(v):len(v)]
	}
}

// sameOrigin reports whether credentials for a may be sent to b: it has the
// same origin, or is its upgrade from http to https.
func sameOrigin(a, b *url.URL) bool {
	if !strings.EqualFold(a.Hostname(), b.Hostname()) {
		return false
	}
	if a.Scheme == b.Scheme {
		return portOf(a) == portOf(b)
	}
	return a.Scheme == "http" && b.Scheme == "https" && portOf(a) == "80" && portOf(b) == "443"
}

func portOf(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}

// unreachable returns the error for a request without an HTTP response.
func unreachable(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if known, ok := errors.AsType[*tool.Error](err); ok {
		return known
	}
	return &tool.Error{Kind: tool.UpstreamFailed, Msg: "the server cannot be reached", Err: err}
}

const (
	errorBody    = 64 << 10        // bytes read of an error response
	drainBytes   = 256 << 10       // bytes read so that a connection can be reused
	drainTimeout = 2 * time.Second // time for reading them
)

// readErrorBody reads the beginning of the body of an error response and closes
// it.
func readErrorBody(resp *http.Response) []byte {
	defer resp.Body.Close()
	b, _ := io.ReadAll(io.LimitReader(resp.Body, errorBody)) // a partial body is enough for the error
	return b
}

// readAll reads a body of limited size and closes it.
func (e *httpEndpoint) readAll(resp *http.Response, memory *tool.ResultMemory) ([]byte, error) {
	defer resp.Body.Close()
	limit := int64(e.limits.MaxBytes)
	if resp.ContentLength > limit {
		return nil, bodyTooLarge(limit)
	}
	var from io.Reader = resp.Body
	if resp.ContentLength < 0 { // otherwise the body ends at ContentLength
		from = io.LimitReader(from, limit+1)
	}
	body, err := mcp.ReadAll(from, resp.ContentLength, memory)
	if err != nil {
		return nil, fmt.Errorf("read the response: %w", err)
	}
	if int64(len(body)) > limit {
		return nil, bodyTooLarge(limit)
	}
	return body, nil
}

func bodyTooLarge(limit int64) error {
	return &mcp.DecodeError{Code: mcp.CodeInvalidRequest, TooLarge: true, Msg: fmt.Sprintf("more than %d bytes", limit)}
}

// drain reads the rest of a stream whose response has been received, so that
// the connection can be reused, and closes it.
func drain(body io.ReadCloser, cancel context.CancelFunc) {
	if own, ok := body.(*http1.Body); ok {
		end := cancel
		cancel = func() {
			own.Close()
			end()
		}
	}
	timer := time.AfterFunc(drainTimeout, cancel)
	_, _ = io.CopyN(io.Discard, body, drainBytes) // the response has already been received
	body.Close()
	timer.Stop()
	cancel()
}
