// Package http1 sends plain HTTP/1.1 requests on the goroutine of the caller.
//
// The standard http.Transport has two goroutines for each connection, and
// every request switches between goroutines four times. A [Transport] writes
// the request and reads the response on the caller's goroutine, which is
// cheaper for many short requests to one server. It only handles requests for
// which that is safe: http without a proxy, small bodies in memory, no
// protocol changes. All others use the underlying standard transport, whose
// dialer and limits it shares.
//
// Its behavior is that of the standard transport: a request is sent once,
// unless the server cannot have seen it or it may be repeated; canceling the
// context cancels the request and the reading of its body; a connection is
// reused only if the response was read to its end and no data followed it.
package http1

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"
)

// maxBody is the maximum size of a request body that Transport sends. It fits
// into the buffers of the two sockets, so that writing it does not block if
// the server responds before it has read everything.
const maxBody = 32 << 10

// Transport is an http.RoundTripper. It is safe for concurrent use.
type Transport struct {
	base      *http.Transport
	keepAlive time.Duration // idle timeout of servers that do not announce one

	mu    sync.Mutex
	idle  map[string][]*conn // by address, the most recently used last
	count int                // of all idle connections
	sweep *time.Timer        // set while there are idle connections
}

// New returns a Transport that uses base for requests that it does not
// support.
func New(base *http.Transport) *Transport {
	return &Transport{base: base, keepAlive: defaultKeepAlive, idle: map[string][]*conn{}}
}

// Base returns the standard transport.
func (t *Transport) Base() *http.Transport { return t.base }

// RoundTrip implements http.RoundTripper.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !t.Supports(r) {
		return t.base.RoundTrip(r)
	}
	resp, _, err := t.Do(r)
	return resp, err
}

// Supports reports whether Do can send the request.
func (t *Transport) Supports(r *http.Request) bool {
	b := t.base
	if !canPeek || r.URL.Scheme != "http" || r.URL.Opaque != "" || !plainHost(r.URL.Host) || r.Host != "" && r.Host != r.URL.Host ||
		r.ContentLength > maxBody || r.Body != nil && r.Body != http.NoBody && (r.ContentLength <= 0 || r.GetBody == nil) ||
		len(r.TransferEncoding) > 0 || len(r.Trailer) > 0 || r.Close || r.Method == http.MethodConnect ||
		b.DisableKeepAlives || b.MaxConnsPerHost > 0 || b.ResponseHeaderTimeout > 0 {
		return false
	}
	for _, name := range [...]string{"Connection", "Upgrade", "Expect", "Te", "Keep-Alive", "Proxy-Connection"} {
		if _, ok := r.Header[name]; ok {
			return false
		}
	}
	if b.Proxy == nil {
		return true
	}
	through, err := b.Proxy(r)
	return through == nil && err == nil
}

// Do sends a request that Supports accepts. It returns the response and the
// remote address.
func (t *Transport) Do(r *http.Request) (*http.Response, net.Addr, error) {
	if r.Body != nil {
		defer r.Body.Close()
	}
	ctx := r.Context()
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	key := addressOf(r)
	c, err := t.get(ctx, key)
	if err != nil {
		return nil, nil, err
	}
	gotConn(ctx, c)
	resp, err := t.exchange(c, r, r.Body)
	if stale, ok := errors.AsType[*staleError](err); ok && ctx.Err() == nil && c.reused && (!stale.written || replayable(r)) {
		// The server closed the connection while it was idle.
		again := r.Body
		if again != nil && again != http.NoBody {
			if again, err = r.GetBody(); err != nil {
				return nil, nil, err
			}
			defer again.Close()
		}
		if c, err = t.dial(ctx, key); err != nil {
			return nil, nil, err
		}
		gotConn(ctx, c)
		resp, err = t.exchange(c, r, again)
	}
	if err != nil {
		if ended := ctx.Err(); ended != nil {
			return nil, nil, ended
		}
		return nil, nil, err
	}
	return resp, c.remote, nil
}

// gotConn calls the GotConn hook of a context's [httptrace.ClientTrace]. Other
// hooks are not called.
func gotConn(ctx context.Context, c *conn) {
	if trace := httptrace.ContextClientTrace(ctx); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{Conn: c.nc, Reused: c.reused, WasIdle: c.reused})
	}
}

// staleError means that a connection ended before any part of the response was
// received.
type staleError struct {
	err     error
	written bool // a part of the request was written
}

func (e *staleError) Error() string {
	return fmt.Sprintf("the connection ended before a response: %v", e.err)
}
func (e *staleError) Unwrap() error { return e.err }

// replayable reports whether a request may be repeated although the server may
// have seen it, by the rules of the standard transport.
func replayable(r *http.Request) bool {
	switch r.Method {
	case "", http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace:
		return true
	}
	_, key := r.Header["Idempotency-Key"]
	_, xkey := r.Header["X-Idempotency-Key"]
	return key || xkey
}

// exchange writes the request and reads the head of its response. It closes
// the connection on errors.
func (t *Transport) exchange(c *conn, r *http.Request, send io.Reader) (*http.Response, error) {
	stop := context.AfterFunc(r.Context(), c.end)
	resp, err := c.roundTrip(r, send, t.maxHeader())
	if err != nil {
		stop()
		c.close()
		return nil, err
	}
	b := &Body{t: t, c: c, stop: stop, resp: resp, left: resp.ContentLength}
	switch {
	case len(resp.TransferEncoding) > 0:
		b.chunks = newChunks(c.r)
		resp.Body = b
	case resp.ContentLength == 0:
		b.finish(true, io.EOF)
		resp.Body = http.NoBody
	default:
		if resp.ContentLength < 0 { // ends with the connection
			b.left, resp.Close = math.MaxInt64, true
		}
		resp.Body = b
	}
	return resp, nil
}

// maxHeader returns the maximum size of a response head.
func (t *Transport) maxHeader() int64 {
	if most := t.base.MaxResponseHeaderBytes; most > 0 {
		return most
	}
	return 1 << 20
}

// addressOf returns the host and port for a request.
func addressOf(r *http.Request) string {
	if r.URL.Port() != "" {
		return r.URL.Host
	}
	return net.JoinHostPort(r.URL.Hostname(), "80")
}

// plainHost reports whether a host can be used in the request unchanged.
func plainHost(host string) bool {
	for i := range len(host) {
		switch c := host[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case strings.IndexByte(".-_:[]", c) >= 0:
		default:
			return false
		}
	}
	return host != "" && host[0] != ':'
}
