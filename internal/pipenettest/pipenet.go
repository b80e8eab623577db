// Package pipenettest is an HTTP server on an in-memory network. Both ends
// block only on channels and timers, so it can be used in a synctest bubble,
// where deadlines pass without real waiting.
package pipenettest

import (
	"context"
	"net"
	"net/http"
	"sync"
	"testing"
)

// URL is an address of the server. Dial ignores addresses, so any other works
// too.
const URL = "http://pipe.test"

// Server accepts the connections that Dial makes.
type Server struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Start serves s on a new in-memory network until the test ends. It must be
// called inside the bubble.
func Start(t testing.TB, s *http.Server) *Server {
	n := &Server{conns: make(chan net.Conn), closed: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(n) // returns when s is closed
	}()
	t.Cleanup(func() {
		_ = s.Close()
		<-done
	})
	return n
}

// Dial opens a connection to the server.
func (s *Server) Dial(ctx context.Context) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case s.conns <- far:
		return near, nil
	case <-s.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// Transport returns a transport that connects with Dial. Its idle connections
// are closed when the test ends.
func (s *Server) Transport(t testing.TB) *http.Transport {
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return s.Dial(ctx) }}
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

// Accept implements net.Listener.
func (s *Server) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (s *Server) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

// Addr implements net.Listener.
func (s *Server) Addr() net.Addr { return &net.UnixAddr{Name: "pipe.test", Net: "pipe"} }
