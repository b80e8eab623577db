package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/pipenettest"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// stuckLink is a link to a server that stops reading after the handshake.
type stuckLink struct {
	*mcp.PipeEnd
	reads int // how many messages it still accepts
	stuck chan struct{}
}

func (l *stuckLink) Send(m *mcp.Message) error {
	if l.reads == 0 {
		<-l.stuck
		return io.ErrClosedPipe
	}
	l.reads--
	return l.PipeEnd.Send(m)
}

func (l *stuckLink) Close() error {
	close(l.stuck)
	return l.PipeEnd.Close()
}

func TestServerThatDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := mcp.Pipe()
		s := &script{t, far}
		go s.handshakeEra()
		c, err := Connect(t.Context(), OverLink(&stuckLink{PipeEnd: near, reads: 3, stuck: make(chan struct{})}), Options{})
		if err != nil {
			t.Fatal(err)
		}
		// More calls than the queue holds: queued ones time out, and so do the
		// others.
		for range maxSendQueue + 10 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := c.Do(ctx, tool.Request{Method: "tools/call"}); tool.KindOf(err) != tool.Timeout {
				t.Fatalf("got %v", err)
			}
			cancel()
		}
		s.send(mcp.Message{ID: "1", Method: "ping"}) // the response is dropped, because the queue is full
		s.send(mcp.Message{Method: "x"})
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if err := c.wire.send(t.Context(), &mcp.Message{Method: "x"}); err == nil {
			t.Error("sent after the end")
		}
	})
}

func TestServerRequestsAreBounded(t *testing.T) {
	release := make(chan struct{})
	c := mustPlay(t, testOptions(), func(s *script) {
		s.handshakeEra()
		call := s.want("tools/call")
		for i := range maxServerRequests {
			s.send(mcp.Message{ID: mcp.NumberID(int64(i)), Method: "roots/list"})
		}
		for _, id := range []mcp.ID{"3", "1000"} { // one that is open, and one too many
			s.send(mcp.Message{ID: id, Method: "roots/list"})
			if m := s.next(); m.ID != id || m.Error == nil || !strings.Contains(m.Error.Message, "too many") {
				s.t.Errorf("got %+v", m)
			}
		}
		close(release)
		for range maxServerRequests {
			if m := s.next(); string(m.Result) != "{}" {
				s.t.Errorf("got %+v", m)
			}
		}
		s.result(call, `{}`)
	})
	ask := func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
		<-release
		return json.RawMessage(`{}`), nil
	}
	if _, err := c.Do(t.Context(), tool.Request{Method: "tools/call", Exchange: tool.Exchange{Ask: ask}}); err != nil {
		t.Error(err)
	}
}

func TestOrigins(t *testing.T) {
	for name, tt := range map[string]struct {
		a, b string
		want bool
	}{
		"same":           {"http://h:80/x", "http://H/y", true},
		"upgrade":        {"http://h/x", "https://h/x", true},
		"downgrade":      {"https://h/x", "http://h/x", false},
		"another port":   {"https://h/x", "https://h:8443/x", false},
		"another host":   {"https://h/x", "https://h.evil/x", false},
		"upgrade of 81":  {"http://h:81/x", "https://h/x", false},
		"explicit https": {"https://h:443/x", "https://h/x", true},
	} {
		a, err := url.Parse(tt.a)
		if err != nil {
			t.Fatal(err)
		}
		b, err := url.Parse(tt.b)
		if err != nil {
			t.Fatal(err)
		}
		if got := sameOrigin(a, b); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestResumeDelay(t *testing.T) {
	for _, tt := range []struct {
		asked    time.Duration
		failures int
		want     time.Duration
	}{{0, 0, minResumeDelay}, {0, 3, 8 * minResumeDelay}, {0, 100, maxResumeDelay}, {time.Minute, 0, time.Minute}, {time.Minute, 5, time.Minute}, {time.Millisecond, 1, 2 * time.Millisecond}} {
		if got := resumeDelay(tt.asked, tt.failures); got != tt.want {
			t.Errorf("resumeDelay(%v, %d) = %v, want %v", tt.asked, tt.failures, got, tt.want)
		}
	}
}

// If a session cannot be replaced, the call fails with the reason. If the
// server has become a different one, the connection ends.
func TestHTTPRenewalFails(t *testing.T) {
	for name, tt := range map[string]struct {
		answer func(http.ResponseWriter, mcp.Message)
		ends   bool
	}{
		"unauthorized": {func(w http.ResponseWriter, _ mcp.Message) { w.WriteHeader(http.StatusUnauthorized) }, false},
		"another era": {func(w http.ResponseWriter, m mcp.Message) {
			w.Header().Set("Content-Type", "application/json")
			w.Write(mcp.AppendMessage(nil, &mcp.Message{ID: m.ID, Error: &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "gone"}}))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := &webServer{}
			s.handle = func(w http.ResponseWriter, r *http.Request, m mcp.Message) {
				if !noStream(w, r) {
					s.refuse = tt.answer
					w.WriteHeader(http.StatusNotFound)
				}
			}
			c := web(t, Options{}, HTTPOptions{}, s)
			if _, err := c.Do(t.Context(), toolsCall); err == nil {
				t.Error("no error")
			}
			if ended := c.Err() != nil; ended != tt.ends {
				t.Errorf("ended: %v (%v)", ended, c.Err())
			}
		})
	}
}

func TestNotifyOverHTTP(t *testing.T) {
	got := make(chan mcp.Message, 8)
	c := web(t, Options{}, HTTPOptions{}, &webServer{stateless: true, handle: func(w http.ResponseWriter, r *http.Request, m mcp.Message) {
		got <- m
		if m.Method == "bad" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		w.WriteHeader(http.StatusAccepted)
	}})
	if err := c.Notify(t.Context(), "x/y", json.RawMessage(`{"a":1}`)); err != nil {
		t.Error(err)
	}
	if m := <-got; string(rawjson.Field(m.Params, "a")) != "1" || rawjson.FieldString(m.Params, "_meta", mcp.MetaProtocolVersion) != mcp.Version20260728 {
		t.Errorf("sent %s", m.Params)
	}
	if err := c.Notify(t.Context(), "bad", nil); tool.KindOf(err) != tool.UpstreamFailed {
		t.Errorf("refused: %v", err)
	}
	if h, ok := errors.AsType[*HTTPError](c.Notify(t.Context(), "bad", nil)); !ok || h.Status != 400 {
		t.Errorf("HTTPError = %+v", h)
	}
}

// A server that never answers server/discover over HTTP is of the handshake era.
func TestHTTPDiscoverHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &webServer{hang: true}
		s.handle = func(w http.ResponseWriter, r *http.Request, m mcp.Message) {
			if !noStream(w, r) {
				plain(w, m, `{}`)
			}
		}
		c := pipeWeb(t, Options{}, HTTPOptions{}, s)
		if got := c.Info().Protocol; got != mcp.Version20250618 {
			t.Errorf("Protocol = %q", got)
		}
	})
}

// The time of a login does not count towards DiscoverTimeout.
func TestHTTPDiscoverWaitsForLogin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var logins atomic.Int32
		c := pipeWeb(t, Options{}, HTTPOptions{
			Authorize: func(ctx context.Context, _ *http.Request, _ *HTTPError) error {
				if logins.Add(1) > 1 {
					return nil
				}
				select {
				case <-ctx.Done():
					return ctx.Err()
				case <-time.After(time.Minute):
					return nil
				}
			},
		}, &webServer{stateless: true})
		if got := c.Info().Protocol; got != mcp.Version20260728 {
			t.Errorf("Protocol = %q", got)
		}
	})
}

// A server of the stateless era that was slow to answer server/discover is sent
// it again when it refuses the handshake.
func TestHTTPDiscoverIsRetriedAfterRefusedHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &webServer{stateless: true, refuse: func(w http.ResponseWriter, _ mcp.Message) {
			http.Error(w, "no handshake here", http.StatusBadRequest)
		}, handle: func(w http.ResponseWriter, _ *http.Request, _ mcp.Message) { http.NotFound(w, nil) }}
		s.t = t
		var asked atomic.Int32
		c := pipeWeb(t, Options{}, HTTPOptions{}, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if asked.Add(1) == 1 {
				_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the client disconnects
				<-r.Context().Done()
				return
			}
			s.ServeHTTP(w, r)
		}))
		if got := c.Info().Protocol; got != mcp.Version20260728 {
			t.Errorf("Protocol = %q", got)
		}
	})
}

// pipeWeb connects to a handler over an in-memory network, in a synctest
// bubble.
func pipeWeb(t *testing.T, o Options, h HTTPOptions, handler http.Handler) *Client {
	t.Helper()
	if s, ok := handler.(*webServer); ok {
		s.t, s.deleted = t, make(chan string, 8)
	}
	server := pipenettest.Start(t, &http.Server{Handler: handler})
	h.URL, h.RoundTripper = pipenettest.URL+"/mcp", server.Transport(t)
	c, err := Connect(t.Context(), NewHTTP(h), o)
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}
