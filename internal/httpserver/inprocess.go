package httpserver

import (
	"fmt"
	"io"
	"net/http"
	"sync"
)

// InProcess is an http.RoundTripper that passes requests to a handler without
// a network. The body of a response can be read while it is being written.
type InProcess struct{ Handler http.Handler }

// RoundTrip implements http.RoundTripper.
func (t InProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		r = r.Clone(r.Context())
		r.Body = http.NoBody
	}
	body, out := io.Pipe()
	w := &pipeWriter{header: http.Header{}, out: out, begun: make(chan struct{})}
	go func() {
		defer r.Body.Close()
		t.Handler.ServeHTTP(w, r)
		w.WriteHeader(http.StatusOK) // if the handler has written nothing
		_ = out.Close()
	}()
	select {
	case <-w.begun:
	case <-r.Context().Done():
	}
	if err := r.Context().Err(); err != nil { // the handler may have ended because of it
		_ = body.CloseWithError(err)
		return nil, err
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", w.status, http.StatusText(w.status)), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: body, ContentLength: -1, Request: r,
	}, nil
}

// pipeWriter is the ResponseWriter of a response in progress.
type pipeWriter struct {
	header, sent http.Header
	status       int
	out          *io.PipeWriter
	once         sync.Once
	begun        chan struct{}
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(status int) {
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.begun)
	})
}

func (w *pipeWriter) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.out.Write(b)
}

// Flush implements http.Flusher. A pipe has no buffer to flush.
func (w *pipeWriter) Flush() { w.WriteHeader(http.StatusOK) }
