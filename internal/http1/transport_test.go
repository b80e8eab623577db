package http1

import (
	"bufio"
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
	"testing"
)

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
