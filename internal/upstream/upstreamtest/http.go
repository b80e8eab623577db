package upstreamtest

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"junctor/internal/address/addresstest"
	"junctor/internal/rawjson"
	"junctor/internal/upstream"
)

// HTTP is a server on a loopback port that can be stopped and restarted.
type HTTP struct {
	*Server
	URL string

	// Before is called for every request, unless nil. If it returns true, it
	// has answered the request. Set it before the first request.
	Before func(w http.ResponseWriter, r *http.Request) bool

	t    testing.TB
	addr string
	mu   sync.Mutex
	srv  *http.Server
}

// Listen serves a script over streamable HTTP until the test ends.
func Listen(t testing.TB, script Script) *HTTP {
	t.Helper()
	h := &HTTP{Server: New(script), t: t, addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(addresstest.UnusedPort(t)))}
	h.Start()
	t.Cleanup(h.Stop)
	return h
}

// Config returns the configuration of an upstream that connects to h.
func (h *HTTP) Config(name string) upstream.Config {
	c := upstream.DefaultConfig()
	c.Name = name
	c.Transport = upstream.Auto
	c.URL = h.URL
	return c
}

// Start starts the server, always on the same port.
func (h *HTTP) Start() {
	h.t.Helper()
	ln, err := net.Listen("tcp", h.addr)
	// A child process that was being started when the port was closed inherits
	// the listener and keeps it open for a moment.
	for begun := time.Now(); err != nil; ln, err = net.Listen("tcp", h.addr) {
		if time.Since(begun) > time.Minute {
			h.t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	h.URL = "http://" + h.addr + "/mcp"
	srv := &http.Server{Handler: h}
	h.mu.Lock()
	h.srv = srv
	h.mu.Unlock()
	go func() { _ = srv.Serve(ln) }()
}

// Stop closes the port and all connections, including those with requests in
// flight.
func (h *HTTP) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = h.srv.Close()
}

// Forget ends all sessions, like a restart of the server.
func (h *HTTP) Forget() { h.renew().Close() }

// ServeHTTP serves the requests.
func (h *HTTP) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if h.Before != nil && h.Before(w, r) {
		return
	}
	if r.Method == http.MethodPost {
		body, err := io.ReadAll(io.LimitReader(r.Body, 64<<20))
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		switch {
		case h.script.Hang:
			<-r.Context().Done()
			return
		case h.script.OldEra && rawjson.FieldString(body, "method") == "server/discover":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"method not found"}}`))
			return
		case rawjson.FieldString(body, "params", "name") == "die":
			Drop(w)
			return
		}
	}
	h.server.Load().ServeHTTP(w, r)
}

// Drop starts to respond with an event stream and closes the connection.
func Drop(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write([]byte("event: message\ndata: {\"jsonrpc\":"))
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// HTML responds with a web page.
func HTML(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte("<!DOCTYPE html><title>Welcome</title>"))
}
