package http1

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
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

func TestRequestsOnOneConnection(t *testing.T) {
	seen := make(chan *http.Request, 8)
	s := serve(t, func(c net.Conn, r *bufio.Reader, _ int) {
		for req := readRequest(r); req != nil; req = readRequest(r) {
			seen <- req
			b, _ := io.ReadAll(req.Body)
			fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nX-A: 1\r\nX-A: 2\r\n\r\n%s", len(b), b)
		}
	})
	tr := transport(t)
	for i, method := range []string{"POST", "GET", "DELETE", "POST"} {
		body := ""
		if method == "POST" {
			body = strings.Repeat("x", 1+i*9_000)
		}
		req := s.request(method, body)
		req.Header.Set("Mcp-Name", "ä tool")
		resp, got, err := do(t, tr, req)
		if err != nil || got != body || resp.StatusCode != 200 || resp.Status != "200 OK" || fmt.Sprint(resp.Header["X-A"]) != "[1 2]" {
			t.Fatalf("%s = %v %.40q, %v", method, resp, got, err)
		}
		sent := <-seen
		if sent.Method != method || sent.RequestURI != "/mcp?x=1" || sent.Host != s.ln.Addr().String() || sent.Header.Get("Mcp-Name") != "ä tool" {
			t.Errorf("the server saw %+v", sent)
		}
		if _, has := sent.Header["Content-Length"]; has != (body != "") {
			t.Errorf("%s: Content-Length sent: %v", method, has)
		}
	}
	if n := s.conns.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

func TestBodies(t *testing.T) {
	long := strings.Repeat("0123456789", 30_000)
	for name, tt := range map[string]struct {
		response string
		want     string
		fails    string // in the error
		reused   bool
	}{
		"length":                {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab", "ab", "", true},
		"long":                  {fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(long), long), long, "", true},
		"no reason":             {"HTTP/1.1 200\r\nContent-Length: 1\r\n\r\na", "a", "", true},
		"same length twice":     {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab", "ab", "", true},
		"empty":                 {"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", "", "", true},
		"no content":            {"HTTP/1.1 204 No Content\r\n\r\n", "", "", true},
		"chunked":               {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n1;ext=1\r\nc\r\n0\r\n\r\n", "abc", "", true},
		"trailer":               {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 7\r\n\r\n", "a", "", true},
		"to the end":            {"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nab", "ab", "", false},
		"close":                 {"HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 2\r\n\r\nab", "ab", "", false},
		"1.0":                   {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nab", "ab", "", false},
		"interim":               {"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na", "a", "", true},
		"more behind it":        {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nabHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", "ab", "", false},
		"more behind chunks":    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\nevil", "a", "", false},
		"more behind nothing":   {"HTTP/1.1 204 No Content\r\nContent-Length: 4\r\n\r\nevil", "", "", false},
		"two lengths":           {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nabc", "", "Content-Length", false},
		"list of lengths":       {"HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nab", "", "Content-Length", false},
		"signed length":         {"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nab", "", "Content-Length", false},
		"negative length":       {"HTTP/1.1 200 OK\r\nContent-Length: -2\r\n\r\nab", "", "Content-Length", false},
		"empty length":          {"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\nab", "", "Content-Length", false},
		"length and chunks":     {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "", "both", false},
		"other encoding":        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", "", "Transfer-Encoding", false},
		"encoding twice":        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", "", "Transfer-Encoding", false},
		"chunks in 1.0":         {"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "", "Transfer-Encoding", false},
		"switch":                {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", "", "protocol", false},
		"interim without end":   {strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 20), "", "interim", false},
		"no HTTP":               {"SSH-2.0-OpenSSH_9.6\r\n\r\n", "", "malformed", false},
		"HTTP/2":                {"HTTP/2.0 200 OK\r\n\r\n", "", "malformed", false},
		"no status":             {"HTTP/1.1 OK\r\n\r\n", "", "malformed", false},
		"malformed header":      {"HTTP/1.1 200 OK\r\nContent-Length : 2\r\n\r\nab", "", "malformed", false},
		"head too large":        {"HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 300_000), "", "too large", false},
		"many headers":          {"HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 60_000), "", "too large", false},
		"cut in the head":       {"HTTP/1.1 200 OK\r\nX-A: b", "", "unexpected EOF", false},
		"cut in the body":       {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", "ab", "unexpected EOF", false},
		"cut in a chunk":        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab", "ab", "unexpected EOF", false},
		"cut before the end":    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", "ab", "unexpected EOF", false},
		"cut in the trailer":    {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX: ", "ab", "unexpected EOF", false},
		"malformed chunk":       {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n", "", "chunk", false},
		"chunk that is longer":  {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n", "a", "chunk", false},
		"trailer without bound": {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("X: y\r\n", 60_000), "", "too large", false},
	} {
		t.Run(name, func(t *testing.T) {
			whole := tt.reused || strings.HasPrefix(name, "more behind")
			s := serve(t, func(c net.Conn, r *bufio.Reader, n int) {
				for i := 0; readRequest(r) != nil; i++ {
					if n > 1 || i > 0 {
						_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond")
						continue
					}
					_, _ = io.WriteString(c, tt.response) // fails if the client has stopped reading
					if !whole {
						return
					}
				}
			})
			tr := transport(t)
			tr.base.MaxResponseHeaderBytes = 256 << 10
			resp, got, err := do(t, tr, s.request("POST", "{}"))
			if (err == nil) != (tt.fails == "") || err != nil && !strings.Contains(err.Error(), tt.fails) || got != tt.want {
				t.Fatalf("= %.40q, %v; want %.40q, %q", got, err, tt.want, tt.fails)
			}
			if name == "trailer" && resp.Trailer.Get("X-Sum") != "7" {
				t.Errorf("trailer = %v", resp.Trailer)
			}
			if n := idleCount(tr); (n == 1) != tt.reused {
				t.Errorf("%d idle connections, reused should be %v", n, tt.reused)
			}
			if _, got, err := do(t, tr, s.request("POST", "{}")); err != nil || got != "second" {
				t.Errorf("the next request = %q, %v", got, err)
			}
			if n := s.conns.Load(); (n == 1) != tt.reused {
				t.Errorf("%d connections, reused should be %v", n, tt.reused)
			}
		})
	}
}

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

func TestCancellation(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
	for name, tt := range map[string]struct {
		send string
		read bool // whether the response starts
	}{
		"before the head": {"", false},
		"in the head":     {"HTTP/1.1 200 OK\r\nContent", false},
		"in a length":     {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab", true},
		"in a stream":     {head + "data: 1\n\n", true},
		"in chunks":       {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			gone := make(chan struct{})
			asked := make(chan struct{})
			s := serve(t, func(c net.Conn, r *bufio.Reader, _ int) {
				if readRequest(r) == nil {
					return
				}
				_, _ = io.WriteString(c, tt.send)
				close(asked)
				_, _ = r.ReadByte() // until the client has disconnected
				close(gone)
			})
			tr := transport(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				<-asked
				if !tt.read {
					cancel()
				}
			}()
			resp, err := tr.RoundTrip(s.request("POST", "{}").WithContext(ctx))
			if tt.read {
				if err != nil {
					t.Fatal(err)
				}
				first := make([]byte, 1)
				if _, err := io.ReadFull(resp.Body, first); err != nil {
					t.Fatal(err)
				}
				cancel()
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			if !errors.Is(err, context.Canceled) {
				t.Errorf("= %v", err)
			}
			<-gone
			if n := idleCount(tr); n != 0 {
				t.Errorf("%d idle connections", n)
			}
		})
	}
}

// Canceling the context after the response was read does not affect the
// connection, which may be in use by another request.
func TestLateCancellation(t *testing.T) {
	s := answerAll(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab")
	tr := transport(t)
	for range 200 {
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		started := make(chan struct{})
		wg.Go(func() { <-started; cancel() })
		resp, err := tr.RoundTrip(s.request("POST", "{}").WithContext(ctx))
		close(started)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := io.ReadAll(resp.Body); err == nil && string(got) != "ab" || err != nil && !errors.Is(err, context.Canceled) {
			t.Fatalf("= %q, %v", got, err)
		}
		wg.Wait()
		if _, got, err := do(t, tr, s.request("POST", "{}")); err != nil || got != "ab" {
			t.Fatalf("the next request = %q, %v", got, err)
		}
	}
}

func TestContextThatHasEnded(t *testing.T) {
	s := answerAll(t, "HTTP/1.1 204 No Content\r\n\r\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := transport(t).RoundTrip(s.request("POST", "{}").WithContext(ctx)); !errors.Is(err, context.Canceled) {
		t.Errorf("= %v", err)
	}
	if n := s.conns.Load(); n != 0 {
		t.Errorf("%d connections", n)
	}
}

// Closing a body early closes the connection, even during a read, and the body
// cannot be read afterwards.
func TestCloseEarly(t *testing.T) {
	s := serve(t, func(c net.Conn, r *bufio.Reader, _ int) {
		if readRequest(r) != nil {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
			_, _ = r.ReadByte()
		}
	})
	tr := transport(t)
	for range 20 {
		resp, err := tr.RoundTrip(s.request("POST", "{}"))
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = io.Copy(io.Discard, resp.Body) })
		resp.Body.Close()
		wg.Wait()
		if n, err := resp.Body.Read(make([]byte, 1)); n != 0 || err == nil {
			t.Fatalf("read after the end = %d, %v", n, err)
		}
	}
	if n := idleCount(tr); n != 0 {
		t.Errorf("%d idle connections", n)
	}
}

func TestManyCallers(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if r.URL.Query().Get("flush") != "" {
			w.(http.Flusher).Flush() // chunked
		}
		_, _ = w.Write(b)
	}))
	defer s.Close()
	tr := transport(t)
	var wg sync.WaitGroup
	for caller := range 16 {
		wg.Go(func() {
			for i := range 50 {
				want := fmt.Sprintf("%d-%d-%s", caller, i, strings.Repeat("x", i*20))
				to := s.URL
				if i%2 == 0 {
					to += "?flush=1"
				}
				req, err := http.NewRequestWithContext(t.Context(), "POST", to, strings.NewReader(want))
				if err != nil {
					t.Error(err)
					return
				}
				resp, err := tr.RoundTrip(req)
				if err != nil {
					t.Error(err)
					return
				}
				got, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || string(got) != want {
					t.Errorf("= %.40q, %v; want %.40q", got, err, want)
				}
			}
		})
	}
	wg.Wait()
	if n := idleCount(tr); n > tr.base.MaxIdleConnsPerHost {
		t.Errorf("%d idle connections, at most %d should be kept", n, tr.base.MaxIdleConnsPerHost)
	}
}

// A request that cannot be written safely is rejected.
func TestHeaderInjection(t *testing.T) {
	s := answerAll(t, "HTTP/1.1 204 No Content\r\n\r\n")
	tr := transport(t)
	for name, value := range map[string]string{"X-A": "a\r\nX-B: c", "X-N": "a\nb", "X-Z": "a\x00", "X: Y": "z", "X\r\nY": "z", "": "z"} {
		req := s.request("POST", "{}")
		req.Header[name] = []string{value}
		if _, _, err := do(t, tr, req); err == nil || strings.Contains(err.Error(), "X-B") {
			t.Errorf("header %q: %q = %v", name, value, err)
		}
	}
	for _, target := range []*url.URL{
		{Scheme: "http", Host: s.ln.Addr().String(), Path: "/", RawQuery: "a b HTTP/1.1\r\nX: y"},
		{Scheme: "http", Host: s.ln.Addr().String(), Path: "/", RawQuery: "a b"},
	} {
		req := s.request("POST", "{}")
		req.URL = target
		if _, _, err := do(t, tr, req); err == nil {
			t.Errorf("%q was sent", target.RawQuery)
		}
	}
	req := s.request("POST", "{}")
	req.Header["Content-Length"], req.Header["Transfer-Encoding"] = []string{"99"}, []string{"chunked"}
	if _, _, err := do(t, tr, req); err != nil {
		t.Error(err)
	}
	for _, length := range []int64{1, 9} {
		req = s.request("POST", "{}")
		req.ContentLength = length
		if _, _, err := do(t, tr, req); err == nil || !strings.Contains(err.Error(), "body") {
			t.Errorf("a body of two bytes as %d: %v", length, err)
		}
	}
}

func TestSupports(t *testing.T) {
	tr := transport(t)
	plain := func() *http.Request {
		r, err := http.NewRequest("POST", "http://example.com/", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if !tr.Supports(plain()) {
		t.Error("a plain request is not taken")
	}
	for name, change := range map[string]func(*http.Request){
		"https":         func(r *http.Request) { r.URL.Scheme = "https" },
		"other host":    func(r *http.Request) { r.Host = "other" },
		"host":          func(r *http.Request) { r.URL.Host, r.Host = "exämple.com", "" },
		"zone":          func(r *http.Request) { r.URL.Host, r.Host = "[fe80::1%25eth0]", "" },
		"no host":       func(r *http.Request) { r.URL.Host, r.Host = ":80", "" },
		"large":         func(r *http.Request) { r.ContentLength = maxBody + 1 },
		"no length":     func(r *http.Request) { r.ContentLength = -1 },
		"unknown":       func(r *http.Request) { r.ContentLength = 0 },
		"only once":     func(r *http.Request) { r.GetBody = nil },
		"upgrade":       func(r *http.Request) { r.Header.Set("Upgrade", "websocket") },
		"expect":        func(r *http.Request) { r.Header.Set("Expect", "100-continue") },
		"connection":    func(r *http.Request) { r.Header.Set("Connection", "close") },
		"te":            func(r *http.Request) { r.Header.Set("TE", "trailers") },
		"close":         func(r *http.Request) { r.Close = true },
		"trailer":       func(r *http.Request) { r.Trailer = http.Header{"X": nil} },
		"chunked":       func(r *http.Request) { r.TransferEncoding = []string{"chunked"} },
		"opaque":        func(r *http.Request) { r.URL.Opaque = "x" },
		"CONNECT":       func(r *http.Request) { r.Method = "CONNECT" },
		"through proxy": func(r *http.Request) { r.URL.Host, r.Host = "proxied.test", "" },
	} {
		r := plain()
		change(r)
		tr.base.Proxy = func(r *http.Request) (*url.URL, error) {
			if r.URL.Host == "proxied.test" {
				return &url.URL{Scheme: "http", Host: "proxy.test"}, nil
			}
			return nil, nil
		}
		if tr.Supports(r) {
			t.Errorf("%s: taken", name)
		}
	}
}

// Unsupported requests use the standard transport.
func TestFallback(t *testing.T) {
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	defer s.Close()
	tr := New(s.Client().Transport.(*http.Transport))
	resp, err := (&http.Client{Transport: tr}).Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || !strings.HasPrefix(string(b), "HTTP/") || resp.TLS == nil {
		t.Errorf("= %q, %v", b, err)
	}
}

// The dialer of the standard transport is used, including its checks. A
// connection that cannot be peeked is not reused.
func TestDialer(t *testing.T) {
	s := answerAll(t, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na")
	tr := transport(t)
	refused := errors.New("not there")
	tr.base.DialContext = func(context.Context, string, string) (net.Conn, error) { return nil, refused }
	if _, _, err := do(t, tr, s.request("POST", "{}")); !errors.Is(err, refused) {
		t.Errorf("= %v", err)
	}
	tr.base.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		return struct{ net.Conn }{c}, err
	}
	for range 2 {
		if _, got, err := do(t, tr, s.request("POST", "{}")); err != nil || got != "a" {
			t.Errorf("= %q, %v", got, err)
		}
	}
	if n := s.conns.Load(); n != 2 {
		t.Errorf("%d connections, want 2", n)
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

// TestGotConnHook checks that new and reused connections are reported as by
// the standard transport.
func TestGotConnHook(t *testing.T) {
	server := answerAll(t, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	tr := transport(t)
	for i := range 2 {
		var got []httptrace.GotConnInfo
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			GotConn: func(info httptrace.GotConnInfo) { got = append(got, info) },
		})
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+server.ln.Addr().String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := tr.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if len(got) != 1 || got[0].Reused != (i == 1) || got[0].Conn.RemoteAddr().String() != server.ln.Addr().String() {
			t.Errorf("request %d: connections %+v", i, got)
		}
	}
}
