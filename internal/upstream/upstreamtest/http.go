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

// HTTP is a server on a loopback port that can be stopped and started again.
type HTTP struct {
	*Server
	URL string

	// Before sees every request first; it answers it itself when it returns
	// true. Nil lets all through. Set it before the first request.
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

// Config returns the configuration of an upstream that connects here.
func (h *HTTP) Config(name string) upstream.Config {
	c := upstream.DefaultConfig()
	c.Name = name
	c.Transport = upstream.Auto
	c.URL = h.URL
	return c
}

// Start listens again, on the same port as before.
func (h *HTTP) Start() {
	h.t.Helper()
	ln, err := net.Listen("tcp", h.addr)
	// A program that was being started when the port was closed has it for a
	// moment longer.
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

// Stop closes the port and every connection; requests in flight are cut.
func (h *HTTP) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = h.srv.Close()
}

// Forget ends all sessions, as a restart of the server would.
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

// Drop begins an answer as an event stream and cuts the connection.
func Drop(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	_, _ = w.Write([]byte("event: message\ndata: {\"jsonrpc\":"))
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// HTML answers with a web page.
func HTML(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write([]byte("<!DOCTYPE html><title>Welcome</title>"))
}
