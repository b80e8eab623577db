package http1

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// rawServer is a server whose responses are written by the test.
type rawServer struct {
	t     *testing.T
	ln    net.Listener
	conns atomic.Int32
	wg    sync.WaitGroup
}

// serve starts a server. handle serves one connection; n is its number,
// starting at 1.
func serve(t *testing.T, handle func(c net.Conn, r *bufio.Reader, n int)) *rawServer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &rawServer{t: t, ln: ln}
	s.wg.Go(func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			n := int(s.conns.Add(1))
			s.wg.Go(func() {
				defer c.Close()
				handle(c, bufio.NewReader(c), n)
			})
		}
	})
	t.Cleanup(func() {
		ln.Close()
		s.wg.Wait()
	})
	return s
}

// answerAll starts a server that sends the same response to every request.
func answerAll(t *testing.T, response string) *rawServer {
	return serve(t, func(c net.Conn, r *bufio.Reader, _ int) {
		for readRequest(r) != nil {
			if _, err := io.WriteString(c, response); err != nil {
				return
			}
		}
	})
}

// readRequest reads one request with its body; nil at the end of the
// connection.
func readRequest(r *bufio.Reader) *http.Request {
	req, err := http.ReadRequest(r)
	if err != nil {
		return nil
	}
	b, err := io.ReadAll(req.Body)
	if err != nil {
		return nil
	}
	req.Body = io.NopCloser(bytes.NewReader(b))
	return req
}

// transport returns a Transport whose connections are closed at the end of the
// test.
func transport(t *testing.T) *Transport {
	base := http.DefaultTransport.(*http.Transport).Clone()
	base.Proxy = nil
	base.MaxIdleConnsPerHost = 4
	tr := New(base)
	tr.keepAlive = time.Hour // the next request may be late on a slow machine
	t.Cleanup(tr.CloseIdleConnections)
	return tr
}

func (s *rawServer) request(method, body string) *http.Request {
	s.t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+s.ln.Addr().String()+"/mcp?x=1", r)
	if err != nil {
		s.t.Fatal(err)
	}
	return req
}

// do sends a request, which Supports must accept, and reads the whole
// response.
func do(t *testing.T, tr *Transport, r *http.Request) (*http.Response, string, error) {
	t.Helper()
	if !tr.Supports(r) {
		t.Fatalf("%s %s is left to the standard transport", r.Method, r.URL)
	}
	resp, err := tr.RoundTrip(r)
	if err != nil {
		return nil, "", err
	}
	b, err := io.ReadAll(resp.Body)
	resp.Body.Close()
	return resp, string(b), err
}

func idleCount(tr *Transport) int {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return tr.count
}
