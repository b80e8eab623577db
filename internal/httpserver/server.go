// Package httpserver has the handlers that every HTTP request passes before it
// reaches an API, and the limits of a connection: timeouts, the size of
// headers and bodies, streams per caller, request ids and recovery from
// panics.
//
// A slow or greedy client costs a bounded amount of memory and time, and a
// panic in a handler ends only that request. The package does not depend on
// any API and makes no decisions about callers.
package httpserver

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"time"

	"junctor/internal/httperr"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// New returns a server for h that limits the resources of a connection.
func New(h http.Handler, log *slog.Logger) *http.Server {
	return &http.Server{
		Handler:           defaultTimeouts.wrap(h),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
		ConnState: func(c net.Conn, state http.ConnState) {
			if log.Enabled(context.Background(), slog.LevelDebug) && (state == http.StateNew || state == http.StateClosed) {
				log.Debug("client connection "+state.String(), "remote", c.RemoteAddr().String())
			}
		},
	}
}

// Wrap assigns every request an id and the trace of its caller, and responds
// to a panic with an error.
func Wrap(log *slog.Logger, next http.Handler) http.Handler {
	identified := httperr.WithRequestID(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if p := recover(); p != nil && p != http.ErrAbortHandler {
				log.ErrorContext(r.Context(), "request panicked", "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
				httperr.Write(w, r, &tool.Error{Kind: tool.Internal, Msg: "internal error; the gateway's log has the cause under this request's id"})
			}
		}()
		next.ServeHTTP(w, httperr.WithContext(r, telemetry.WithTraceOf(r.Context(), r.Header)))
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := tool.NewRequestContext(r.Context())
		defer cancel(nil)
		identified.ServeHTTP(w, r.WithContext(ctx))
	})
}

// LimitBody limits the body of every request to the number of bytes that limit
// returns. Reading more fails with an [http.MaxBytesError].
func LimitBody(limit func() int64, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Without the reader, the server limits the body to the announced
		// length.
		if max := limit(); r.Body != nil && r.Body != http.NoBody && (r.ContentLength <= 0 || r.ContentLength > max) {
			r.Body = http.MaxBytesReader(w, r.Body, max)
		}
		next.ServeHTTP(w, r)
	})
}

// WithClientIP sets the client's address in the context, for upstreams that
// are configured to receive it. It must be behind the gate, which has replaced
// the address of a trusted proxy by the client's.
func WithClientIP(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
			r = httperr.WithContext(r, upstream.SetClientIP(r.Context(), host))
		}
		next.ServeHTTP(w, r)
	})
}
