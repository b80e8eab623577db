package mcpclient

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"junctor/internal/address"
	"junctor/internal/mcp"
	"junctor/internal/tool"
)

func TestRedirectToInternalAddressIsRefused(t *testing.T) {
	e, err := newEndpoint(HTTPOptions{URL: "https://example.com/mcp"})
	if err != nil {
		t.Fatal(err)
	}
	for to, from := range map[string]address.Class{
		"http://127.0.0.1/":               address.Public,
		"http://169.254.169.254/metadata": address.Public,
		"http://[::ffff:10.0.0.1]/":       address.Public,
		"http://2130706433/":              address.Public,
		"http://0177.0.0.1/":              address.Public,
		"http://localhost:8080/":          address.Private,
	} {
		_, err := e.guarded(t.Context(), from, mustURL(t, to))
		if tool.KindOf(err) != tool.UpstreamFailed || !strings.Contains(err.Error(), "redirects to") {
			t.Errorf("from %s to %s: %v", from, to, err)
		}
	}
	for to, from := range map[string]address.Class{"http://10.0.0.1/": address.Loopback, "https://93.184.216.34/": address.Private} {
		if _, err := e.guarded(t.Context(), from, mustURL(t, to)); err != nil {
			t.Errorf("from %s to %s: %v", from, to, err)
		}
	}
}

// publicConn is a connection that seems to come from a public address.
type publicConn struct{ net.Conn }

func (publicConn) RemoteAddr() net.Addr {
	return &net.TCPAddr{IP: net.IPv4(93, 184, 216, 34), Port: 80}
}

// A redirect is refused if its host name resolves to a public address when it
// is checked, and to this machine when it is dialled.
func TestRedirectIsCheckedWhenDialled(t *testing.T) {
	var reached atomic.Bool
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer inner.Close()
	_, port, err := net.SplitHostPort(inner.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	outer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://rebind.test:"+port+"/admin", http.StatusTemporaryRedirect)
	}))
	defer outer.Close()
	rt := NewRoundTripper(nil)
	rt.DialContext = func(ctx context.Context, network, _ string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, outer.Listener.Addr().String())
		return publicConn{c}, err
	}
	e, err := newEndpoint(HTTPOptions{URL: "http://public.test/mcp", RoundTripper: rt})
	if err != nil {
		t.Fatal(err)
	}
	e.guards.resolver = rebinding(t)
	resp, err := e.send(t.Context(), http.MethodPost, e.url, func(http.Header) {}, []byte(`{}`))
	if err == nil {
		resp.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "loopback") || reached.Load() {
		t.Errorf("the redirect was followed: %v", err)
	}
}

// rebinding returns a resolver that resolves every name to this machine.
func rebinding(t *testing.T) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { conn.Close(); <-done })
	go func() {
		defer close(done)
		b := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(b)
			if err != nil {
				return
			}
			q := b[:n]
			end := 12
			for q[end] != 0 {
				end += int(q[end]) + 1
			}
			kind := q[end+2]
			end += 5
			answer := append([]byte{q[0], q[1], 0x85, 0x80, 0, 1, 0, 0, 0, 0, 0, 0}, q[12:end]...)
			if kind == 1 { // A
				ip := []byte{127, 0, 0, 1}
				answer[7] = 1
				answer = append(answer, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
				answer = append(answer, ip...)
			}
			_, _ = conn.WriteTo(answer, from) // a client that does not receive it retries
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

func mustURL(t *testing.T, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// A 400 means a lost session only if the server refuses the session itself.
// Otherwise the caller gets the server's error, and the call is not retried.
func TestBadRequestDoesNotEndSession(t *testing.T) {
	var calls, pings atomic.Int32
	s := &webServer{}
	s.handle = func(w http.ResponseWriter, r *http.Request, m mcp.Message) {
		switch {
		case noStream(w, r):
		case m.Method == "ping":
			pings.Add(1)
			plain(w, m, `{}`)
		default:
			calls.Add(1)
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"jsonrpc":"2.0","error":{"code":-32602,"message":"the argument session is wrong"},"id":`+string(m.ID)+`}`)
		}
	}
	c := web(t, Options{OnSessionReplaced: func() { t.Error("the session was made anew") }}, HTTPOptions{}, s)
	_, err := c.Do(t.Context(), toolsCall)
	if err == nil || !strings.Contains(err.Error(), "the argument session is wrong") || calls.Load() != 1 || pings.Load() != 1 {
		t.Errorf("%v after %d calls and %d pings", err, calls.Load(), pings.Load())
	}
}
