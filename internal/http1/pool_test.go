package http1

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
)

// Unsolicited data and a closed connection are detected before the connection
// is reused.
func TestIdleConnectionIsChecked(t *testing.T) {
	for name, end := range map[string]func(net.Conn){
		"closed":     func(c net.Conn) { c.Close() },
		"half":       func(c net.Conn) { _ = c.(*net.TCPConn).CloseWrite() },
		"unasked":    func(c net.Conn) { _, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil") },
		"reset":      func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); c.Close() },
		"half a one": func(c net.Conn) { _, _ = io.WriteString(c, "H") },
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan struct{})
			goOn := make(chan struct{})
			s := serve(t, func(c net.Conn, r *bufio.Reader, n int) {
				for i := 0; readRequest(r) != nil; i++ {
					fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d", n)
					if n == 1 && i == 0 {
						<-goOn
						end(c)
						close(ended)
					}
				}
			})
			tr := transport(t)
			if _, got, err := do(t, tr, s.request("POST", "{}")); got != "1" || err != nil {
				t.Fatalf("first = %q, %v", got, err)
			}
			tr.mu.Lock()
			idle := tr.idle[s.ln.Addr().String()][0]
			tr.mu.Unlock()
			close(goOn)
			<-ended
			quiet := func() bool { // idle connections are swept while holding the lock
				tr.mu.Lock()
				defer tr.mu.Unlock()
				return idle.isQuiet()
			}
			for quiet() { // wait until the data has arrived
			}
			if _, got, err := do(t, tr, s.request("POST", "{}")); got != "2" || err != nil {
				t.Errorf("second = %q, %v", got, err)
			}
		})
	}
}

// If a reused connection ends during a request, the request is retried on a
// new one only if it may be repeated.
func TestStaleConnection(t *testing.T) {
	for name, tt := range map[string]struct {
		method string
		header string
		again  bool
	}{
		"GET":              {"GET", "", true},
		"POST":             {"POST", "", false},
		"idempotent POST":  {"POST", "Idempotency-Key", true},
		"DELETE":           {"DELETE", "", false},
		"GET, nothing yet": {"GET", "fresh", false},
	} {
		t.Run(name, func(t *testing.T) {
			var requests atomic.Int32
			s := serve(t, func(c net.Conn, r *bufio.Reader, n int) {
				for i := 0; readRequest(r) != nil; i++ {
					if requests.Add(1); n == 1 && (i > 0 || tt.header == "fresh") {
						return // after reading the second request
					}
					fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n%d", n)
				}
			})
			tr := transport(t)
			if tt.header != "fresh" {
				if _, got, err := do(t, tr, s.request("POST", "{}")); got != "1" || err != nil {
					t.Fatalf("first = %q, %v", got, err)
				}
			}
			req := s.request(tt.method, "")
			if tt.method == "POST" {
				req = s.request("POST", "{}")
			}
			if tt.header != "" {
				req.Header.Set(tt.header, "1")
			}
			_, got, err := do(t, tr, req)
			if tt.again != (err == nil) || tt.again && got != "2" {
				t.Errorf("second = %q, %v", got, err)
			}
			want := int32(2)
			if tt.again {
				want = 3
			}
			if tt.header == "fresh" {
				want = 1
			}
			if n := requests.Load(); n != want {
				t.Errorf("the server saw %d requests, want %d", n, want)
			}
		})
	}
}

// Connections that the server has closed, or that have been idle for too long,
// are closed.
func TestSweep(t *testing.T) {
	s := answerAll(t, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")
	tr := transport(t)
	for range 2 {
		if _, _, err := do(t, tr, s.request("POST", "{}")); err != nil {
			t.Fatal(err)
		}
		tr.sweepIdle()
		if n := idleCount(tr); n != 1 {
			t.Fatalf("%d idle connections after a look at an open one", n)
		}
	}
	tr.base.IdleConnTimeout = 1
	tr.sweepIdle()
	if n := idleCount(tr); n != 0 || tr.sweep != nil {
		t.Errorf("%d idle connections after their time, timer %v", n, tr.sweep)
	}
	tr.base.IdleConnTimeout = 0
	if _, _, err := do(t, tr, s.request("POST", "{}")); err != nil {
		t.Fatal(err)
	}
	tr.CloseIdleConnections()
	if n := idleCount(tr); n != 0 {
		t.Errorf("%d idle connections after all were closed", n)
	}
}

// A detached body can be read to its end after the context is done, and its
// connection is reused.
func TestDetach(t *testing.T) {
	goOn := make(chan struct{}, 1)
	s := serve(t, func(c net.Conn, r *bufio.Reader, _ int) {
		for readRequest(r) != nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
			<-goOn
			_, _ = io.WriteString(c, "1\r\nb\r\n0\r\n\r\n")
		}
	})
	tr := transport(t)
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		resp, err := tr.RoundTrip(s.request("POST", "{}").WithContext(ctx))
		if err != nil {
			t.Fatal(err)
		}
		first := make([]byte, 1)
		if _, err := io.ReadFull(resp.Body, first); err != nil {
			t.Fatal(err)
		}
		resp.Body.(*Body).Detach()
		cancel()
		goOn <- struct{}{}
		if rest, err := io.ReadAll(resp.Body); err != nil || string(rest) != "b" {
			t.Fatalf("the rest = %q, %v", rest, err)
		}
	}
	if n := s.conns.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
	ctx, cancel := context.WithCancel(t.Context())
	resp, err := tr.RoundTrip(s.request("POST", "{}").WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	resp.Body.(*Body).Detach() // may be too late
	goOn <- struct{}{}
	if got, err := io.ReadAll(resp.Body); err == nil && string(got) != "ab" {
		t.Errorf("= %q, %v", got, err)
	}
	resp.Body.Close()
}
