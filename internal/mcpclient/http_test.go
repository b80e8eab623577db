package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// webServer is a scripted HTTP server. It answers handshakes of the handshake
// era with numbered sessions; the test handles the rest.
type webServer struct {
	t         *testing.T
	handle    func(w http.ResponseWriter, r *http.Request, m mcp.Message)
	sessions  atomic.Int32
	deleted   chan string
	stateless bool
	hang      bool                                   // leave server/discover unanswered
	refuse    func(http.ResponseWriter, mcp.Message) // answers initialize when set
}

func (s *webServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m mcp.Message
	switch r.Method {
	case http.MethodDelete:
		s.deleted <- r.Header.Get("Mcp-Session-Id")
		return
	case http.MethodPost:
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if m, err = mcp.Decode(body, mcp.Limits{}); err != nil {
			s.t.Errorf("the client sent %s: %v", body, err)
		}
	}
	switch {
	case m.Method == "server/discover" && s.stateless:
		plain(w, m, discoverResult)
	case m.Method == "server/discover" && s.hang:
		<-r.Context().Done()
	case m.Method == "initialize" && s.refuse != nil:
		s.refuse(w, m)
	case m.Method == "server/discover":
		http.Error(w, "what?", http.StatusBadRequest)
	case m.Method == "initialize":
		w.Header().Set("Mcp-Session-Id", fmt.Sprintf("s%d", s.sessions.Add(1)))
		plain(w, m, initResult)
	case m.Method == "notifications/initialized":
		w.WriteHeader(http.StatusAccepted)
	default:
		s.handle(w, r, m)
	}
}

func plain(w http.ResponseWriter, m mcp.Message, result string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

func sse(w http.ResponseWriter, events ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range events {
		fmt.Fprint(w, e)
	}
	w.(http.Flusher).Flush()
}

func event1(m mcp.Message, result string) string {
	return fmt.Sprintf("data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n\n", m.ID, result)
}

// web starts a server and connects to it.
func web(t *testing.T, o Options, h HTTPOptions, s *webServer) *Client {
	t.Helper()
	s.t, s.deleted = t, make(chan string, 8)
	ts := httptest.NewServer(s)
	t.Cleanup(func() {
		ts.CloseClientConnections()
		ts.Close()
	})
	h.URL = ts.URL + "/mcp?key=secret"
	if o.DiscoverTimeout == 0 {
		o.DiscoverTimeout = time.Hour // do not mistake a busy machine for a silent server
	}
	c, err := Connect(t.Context(), NewHTTP(h), o)
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

var toolsCall = tool.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"x"}`)}

// noStream refuses the GET stream.
func noStream(w http.ResponseWriter, r *http.Request) bool {
	if r.Method == http.MethodGet {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return true
	}
	return false
}

func TestHTTPResponseHandling(t *testing.T) {
	for name, tt := range map[string]struct {
		handle http.HandlerFunc
		kind   tool.Kind
		want   string // in the result or the error
	}{
		"html": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			io.WriteString(w, "<html>login")
		}, tool.UpstreamFailed, "web page"},
		"plain text": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			io.WriteString(w, "hi")
		}, tool.UpstreamFailed, "text/plain"},
		"not json": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, "{oops")
		}, tool.UpstreamFailed, "not a JSON-RPC message"},
		"empty array": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, "[]")
		}, tool.UpstreamFailed, "not a JSON-RPC message"},
		"only a notification": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"jsonrpc":"2.0","method":"notifications/message"}`)
		}, tool.UpstreamFailed, "no response"},
		"wrong id": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"jsonrpc":"2.0","id":4711,"result":{}}`)
		}, tool.UpstreamFailed, "wrong id"},
		"accepted": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusAccepted) }, tool.UpstreamFailed, "sent no response"},
		"unavailable": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(http.StatusServiceUnavailable)
		}, tool.UpstreamFailed, "HTTP 503"},
		"rate limited": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }, tool.UpstreamFailed, "rate"},
		"forbidden":    {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, tool.UpstreamFailed, "refuses access"},
		"not allowed":  {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) }, tool.UpstreamFailed, "check the URL"},
		"sign in": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("WWW-Authenticate", "Bearer x")
			w.WriteHeader(http.StatusUnauthorized)
		}, tool.UpstreamAuthRequired, "authorization"},
		"see other": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/else")
			w.WriteHeader(http.StatusSeeOther)
		}, tool.UpstreamFailed, "redirects"},
		"to a file": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "file:///etc")
			w.WriteHeader(http.StatusFound)
		}, tool.UpstreamFailed, "redirects"},
		"in a circle": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "/mcp")
			w.WriteHeader(http.StatusPermanentRedirect)
		}, tool.UpstreamFailed, "in a loop"},
		"large": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, strings.Repeat(" ", 70_000))
		}, tool.UpstreamFailed, "too large"},
		"large, chunked": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.(http.Flusher).Flush()
			io.WriteString(w, strings.Repeat(" ", 70_000))
		}, tool.UpstreamFailed, "too large"},
		"cut": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", "1000")
			io.WriteString(w, `{"jsonrpc"`)
		}, tool.UpstreamFailed, "connection to the server failed"},
		"stream drops": {func(w http.ResponseWriter, _ *http.Request) {
			sse(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\"}\n\n")
		}, tool.UpstreamFailed, "dropped the stream"},
		"large event": {func(w http.ResponseWriter, _ *http.Request) { sse(w, "data: "+strings.Repeat("x", 200_000)+"\n\n") }, tool.UpstreamFailed, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			c := web(t, Options{}, HTTPOptions{Limits: mcp.Limits{MaxBytes: 60_000}}, &webServer{handle: func(w http.ResponseWriter, r *http.Request, _ mcp.Message) {
				if !noStream(w, r) {
					tt.handle(w, r)
				}
			}})
			_, err := c.Do(t.Context(), toolsCall)
			if tool.KindOf(err) != tt.kind || !strings.Contains(tool.AsError(err).Msg, tt.want) {
				t.Errorf("got %s: %v, want %s with %q", tool.KindOf(err), err, tt.kind, tt.want)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the error shows the query: %v", err)
			}
			if h, ok := errors.AsType[*HTTPError](err); name == "sign in" && (!ok || len(h.WWWAuthenticate) != 1) || name == "unavailable" && (!ok || h.RetryAfter != 7*time.Second) {
				t.Errorf("HTTPError = %+v", h)
			}
		})
	}
}

func TestHTTPStreamIsResumed(t *testing.T) {
	var gets atomic.Int32
	c := web(t, Options{}, HTTPOptions{}, &webServer{handle: func(w http.ResponseWriter, r *http.Request, m mcp.Message) {
		if r.Method == http.MethodGet {
			if r.Header.Get("Last-Event-ID") != "e2" {
				w.WriteHeader(http.StatusMethodNotAllowed)
				return
			}
			if gets.Add(1) == 1 {
				http.Error(w, "busy", http.StatusBadGateway)
				return
			}
			sse(w, ": again\n", "id: e3\n", event1(mcp.Message{ID: "3"}, `{"resumed":true}`))
			return
		}
		sse(w, "\xef\xbb\xbfid: e1\r\nretry: 1\r\ndata:\r\n\r\n", "event: message\nid: e2\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"method\":\"notifications/progress\",\"params\":{\"progressToken\":"+string(m.ID)+",\"progress\":1}}\n\n", "data: not json\n\n", "data: {\"unfinished")
	}})
	var seen []string
	r := toolsCall
	r.Params = json.RawMessage(`{"name":"x","_meta":{"progressToken":9}}`)
	r.Exchange.Notify = func(method string, params json.RawMessage) { seen = append(seen, method+string(params)) }
	result, err := c.Do(t.Context(), r)
	if err != nil || string(result) != `{"resumed":true}` {
		t.Errorf("%s, %v", result, err)
	}
	if len(seen) != 1 || !strings.Contains(seen[0], `"progressToken":9,`) {
		t.Errorf("saw %q", seen)
	}
}

// A response that was read in part is sent again: the event before it is the
// last one that was received.
func TestHTTPStreamThatBreaksInsideTheAnswerIsResumed(t *testing.T) {
	c := web(t, Options{}, HTTPOptions{}, &webServer{handle: func(w http.ResponseWriter, r *http.Request, m mcp.Message) {
		switch {
		case r.Method == http.MethodPost:
			sse(w, "id: e1\nretry: 1\ndata:\n\n", "id: e2\ndata: {\"jsonrpc\":\"2.0\",\"id\":"+string(m.ID)+",\"res")
		case r.Header.Get("Last-Event-ID") == "e1":
			sse(w, "id: e2\n", event1(mcp.Message{ID: "3"}, `{"resumed":true}`))
		default: // nothing follows the response
			w.WriteHeader(http.StatusMethodNotAllowed)
		}
	}})
	result, err := c.Do(t.Context(), toolsCall)
	if err != nil || string(result) != `{"resumed":true}` {
		t.Errorf("%s, %v", result, err)
	}
}

func TestHTTPStreamIsNotResumed(t *testing.T) {
	c := web(t, Options{}, HTTPOptions{}, &webServer{handle: func(w http.ResponseWriter, r *http.Request, m mcp.Message) {
		if !noStream(w, r) {
			sse(w, "id: e1\nretry: 1\ndata:\n\n")
		}
	}})
	_, err := c.Do(t.Context(), toolsCall)
	if tool.KindOf(err) != tool.UpstreamFailed || !strings.Contains(err.Error(), "does not resume") {
		t.Errorf("got %v", err)
	}
}

// If a server has lost its sessions, a new one is created without the callers
// noticing.
func TestHTTPSessionIsRenewed(t *testing.T) {
	for name, forget := range map[string]func(http.ResponseWriter){
		"404": func(w http.ResponseWriter) { w.WriteHeader(http.StatusNotFound) },
		"400": func(w http.ResponseWriter) {
			w.WriteHeader(http.StatusBadRequest)
			io.WriteString(w, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":null}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			renewed := make(chan struct{}, 8)
			s := &webServer{}
			s.handle = func(w http.ResponseWriter, r *http.Request, m mcp.Message) {
				switch {
				case noStream(w, r):
				case r.Header.Get("Mcp-Session-Id") != "s2":
					forget(w)
				default:
					plain(w, m, `{"session":2}`)
				}
			}
			c := web(t, Options{OnSessionReplaced: func() { renewed <- struct{}{} }}, HTTPOptions{}, s)
			var wg sync.WaitGroup
			for range 8 {
				wg.Go(func() {
					result, err := c.Do(t.Context(), toolsCall)
					if err != nil || string(result) != `{"session":2}` {
						t.Errorf("%s, %v", result, err)
					}
				})
			}
			wg.Wait()
			if n := s.sessions.Load(); n != 2 || len(renewed) != 1 {
				t.Errorf("%d sessions, OnSessionReplaced %d times, want 2 and 1", n, len(renewed))
			}
			c.Close()
			if id := <-s.deleted; id != "s2" {
				t.Errorf("deleted session %q", id)
			}
		})
	}
}

func TestHTTPStandaloneStream(t *testing.T) {
	received := make(chan string, 8)
	var gets atomic.Int32
	answered := make(chan mcp.Message, 1)
	s := &webServer{}
	s.handle = func(w http.ResponseWriter, r *http.Request, m mcp.Message) {
		switch {
		case r.Method == http.MethodGet && gets.Add(1) == 1:
			sse(w, "retry: 1\nid: 7\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}\n\n")
		case r.Method == http.MethodGet && gets.Load() == 2:
			received <- "resumed at " + r.Header.Get("Last-Event-ID")
			sse(w, "data: {\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"ping\"}\n\n", "data: nonsense\n\n")
			<-r.Context().Done()
		case r.Method == http.MethodGet:
			<-r.Context().Done()
		case m.IsResponse():
			answered <- m
			w.WriteHeader(http.StatusAccepted)
		}
	}
	c := web(t, Options{OnNotification: func(method string, _ json.RawMessage) { received <- method }}, HTTPOptions{}, s)
	for _, want := range []string{"notifications/tools/list_changed", "resumed at 7"} {
		if got := <-received; got != want {
			t.Errorf("received %q, want %q", got, want)
		}
	}
	if m := <-answered; m.ID != `"q"` || string(m.Result) != "{}" {
		t.Errorf("ping answered with %+v", m)
	}
	c.Close()
}

func TestHTTPStandaloneStreamRenewsTheSession(t *testing.T) {
	renewed := make(chan struct{})
	s := &webServer{}
	s.handle = func(w http.ResponseWriter, r *http.Request, m mcp.Message) {
		if r.Header.Get("Mcp-Session-Id") != "s1" {
			<-r.Context().Done()
			return
		}
		if r.Header.Get("Last-Event-ID") == "" {
			sse(w, "id: 1\nretry: 1\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n")
			return
		}
		w.WriteHeader(http.StatusNotFound)
	}
	web(t, Options{OnSessionReplaced: func() { close(renewed) }}, HTTPOptions{}, s)
	<-renewed
}

// Some servers accept the request and respond on the GET stream.
func TestHTTPResponseOnOtherStream(t *testing.T) {
	posted := make(chan mcp.Message, 1)
	c := web(t, Options{}, HTTPOptions{}, &webServer{handle: func(w http.ResponseWriter, r *http.Request, m mcp.Message) {
		if r.Method == http.MethodGet {
			sse(w, ": open\n\n")
			sse(w, event1(<-posted, `{"late":true}`))
			<-r.Context().Done()
			return
		}
		w.WriteHeader(http.StatusAccepted)
		posted <- m
	}})
	result, err := c.Do(t.Context(), toolsCall)
	if err != nil || string(result) != `{"late":true}` {
		t.Errorf("%s, %v", result, err)
	}
}

// TestHTTPResponseOnLateStream: the GET stream with the response opens after
// the request was accepted.
func TestHTTPResponseOnLateStream(t *testing.T) {
	t.Parallel() // connecting waits for the stream
	posted := make(chan mcp.Message, 1)
	c := web(t, Options{}, HTTPOptions{}, &webServer{handle: func(w http.ResponseWriter, r *http.Request, m mcp.Message) {
		if r.Method == http.MethodGet {
			sse(w, event1(<-posted, `{"late":true}`)) // no headers before the first event
			<-r.Context().Done()
			return
		}
		w.WriteHeader(http.StatusAccepted)
		_ = http.NewResponseController(w).Flush()
		time.AfterFunc(100*time.Millisecond, func() { posted <- m })
	}})
	result, err := c.Do(t.Context(), toolsCall)
	if err != nil || string(result) != `{"late":true}` {
		t.Errorf("%s, %v", result, err)
	}
}

func TestHTTPAuthorize(t *testing.T) {
	var tokens atomic.Int32
	authorize := func(_ context.Context, r *http.Request, refused *HTTPError) error {
		if refused != nil {
			if refused.Status != http.StatusUnauthorized && refused.Status != http.StatusForbidden || len(refused.WWWAuthenticate) == 0 {
				t.Errorf("refused with %+v", refused)
			}
			if want := fmt.Sprintf("Bearer t%d", tokens.Load()); refused.Credential.Reveal() != want {
				t.Errorf("refused credential is not %s", want)
			}
			tokens.Add(1)
		}
		r.Header.Set("Authorization", fmt.Sprintf("Bearer t%d", tokens.Load()))
		return nil
	}
	want := "t0"
	var mu sync.Mutex
	c := web(t, Options{}, HTTPOptions{Authorize: authorize, NoStandalone: true, Header: http.Header{"x-Key": {"k"}}}, &webServer{handle: func(w http.ResponseWriter, r *http.Request, m mcp.Message) {
		mu.Lock()
		defer mu.Unlock()
		if r.Header.Get("X-Key") != "k" || r.Header.Get("X-Forwarded-For") != "10.0.0.1" {
			t.Errorf("headers %v", r.Header)
		}
		switch got := r.Header.Get("Authorization"); {
		case got == "Bearer t1" && want == "t2":
			w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope"`)
			w.WriteHeader(http.StatusForbidden)
		case got != "Bearer "+want:
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			w.WriteHeader(http.StatusUnauthorized)
		default:
			plain(w, m, `{}`)
		}
	}})
	ctx := WithHeader(t.Context(), http.Header{"X-Forwarded-For": {"10.0.0.1"}, "Mcp-Session-Id": {"forged"}})
	for _, w := range []string{"t0", "t1", "t2", "t3"} {
		mu.Lock()
		want = w
		mu.Unlock()
		if _, err := c.Do(ctx, toolsCall); err != nil {
			t.Errorf("with %s: %v", w, err)
		}
	}
	mu.Lock()
	want = "never"
	mu.Unlock()
	before := tokens.Load()
	if _, err := c.Do(ctx, toolsCall); tool.KindOf(err) != tool.UpstreamAuthRequired || tokens.Load() != before+1 {
		t.Errorf("refused for good: %v after %d tries", err, tokens.Load()-before)
	}
}

func TestHTTPAuthorizeFails(t *testing.T) {
	ts := httptest.NewServer(http.NotFoundHandler())
	defer ts.Close()
	_, err := Connect(t.Context(), NewHTTP(HTTPOptions{URL: ts.URL, Authorize: func(context.Context, *http.Request, *HTTPError) error {
		return &tool.Error{Kind: tool.UpstreamAuthRequired, Msg: "open this page"}
	}}), Options{})
	if tool.KindOf(err) != tool.UpstreamAuthRequired {
		t.Errorf("got %v", err)
	}
}

// A server may close an idle connection while a request is being sent. Requests
// that only read are retried; a call is not, because it may have been executed.
func TestHTTPRequestOnClosingConnection(t *testing.T) {
	for method, again := range map[string]bool{"server/discover": true, "tools/list": true, "resources/read": true, "tools/call": false} {
		t.Run(method, func(t *testing.T) {
			var seen atomic.Int32
			ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				m, err := mcp.Decode(body, mcp.Limits{})
				if err != nil {
					t.Errorf("the client sent %s: %v", body, err)
				}
				n := int32(0)
				if m.Method == method {
					n = seen.Add(1)
				}
				w.Header().Set("Keep-Alive", "timeout=7200") // on a busy machine the next request may arrive late
				switch first := method == mcp.MethodDiscover && n == 1; {
				case first:
					w.WriteHeader(http.StatusBadRequest)
					fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"]}}}`, m.ID)
				case n == 1 || n == 2 && method == mcp.MethodDiscover:
					if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
						c.Close()
					}
				case m.Method == mcp.MethodDiscover:
					plain(w, m, discoverResult)
				default:
					plain(w, m, `{"resultType":"complete"}`)
				}
			}))
			defer ts.Close()
			c, err := Connect(t.Context(), NewHTTP(HTTPOptions{URL: ts.URL}), Options{DiscoverTimeout: time.Hour})
			if err != nil {
				t.Fatalf("Connect: %v", err)
			}
			defer c.Close()
			if method == mcp.MethodDiscover {
				return
			}
			_, err = c.Do(t.Context(), tool.Request{Method: method, Params: json.RawMessage(`{"name":"x","uri":"x:y"}`)})
			want := int32(1)
			if again {
				want = 2
			}
			if again != (err == nil) || seen.Load() != want {
				t.Errorf("%s was sent %d times, %v; want %d", method, seen.Load(), err, want)
			}
		})
	}
}

func TestHTTPRedirects(t *testing.T) {
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, h := range []string{"Authorization", "X-Key", "Mcp-Session-Id", "Cookie"} {
			if v := r.Header.Get(h); v != "" {
				t.Errorf("another origin got %s: %s", h, v)
			}
		}
		body, _ := io.ReadAll(r.Body)
		m, _ := mcp.Decode(body, mcp.Limits{})
		plain(w, m, `{"from":"afar"}`)
	}))
	defer foreign.Close()
	c := web(t, Options{}, HTTPOptions{NoStandalone: true, Header: http.Header{"X-Key": {"k"}, "Cookie": {"c"}},
		Authorize: func(_ context.Context, r *http.Request, _ *HTTPError) error {
			r.Header.Set("Authorization", "Bearer x")
			return nil
		}}, &webServer{handle: func(w http.ResponseWriter, r *http.Request, m mcp.Message) {
		switch {
		case rawjson.FieldString(m.Params, "name") == "far":
			http.Redirect(w, r, foreign.URL, http.StatusTemporaryRedirect)
		case r.URL.Path == "/mcp":
			http.Redirect(w, r, "/mcp/", http.StatusMovedPermanently)
		case r.Header.Get("X-Key") != "k" || r.Header.Get("Authorization") != "Bearer x" || r.Header.Get("Mcp-Session-Id") == "":
			t.Errorf("the same origin got %v", r.Header)
		default:
			plain(w, m, `{"from":"near"}`)
		}
	}})
	for name, want := range map[string]string{"near": `{"from":"near"}`, "far": `{"from":"afar"}`} {
		result, err := c.Do(t.Context(), tool.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"` + name + `"}`)})
		if err != nil || string(result) != want {
			t.Errorf("%s: %s, %v", name, result, err)
		}
	}
}

func TestHTTPUnreachable(t *testing.T) {
	ts := httptest.NewServer(http.NotFoundHandler())
	url := ts.URL
	ts.Close()
	for _, transport := range []Transport{NewHTTP(HTTPOptions{URL: url}), NewSSE(HTTPOptions{URL: url})} {
		if _, err := Connect(t.Context(), transport, Options{}); tool.KindOf(err) != tool.UpstreamFailed || !strings.Contains(err.Error(), "cannot be reached") {
			t.Errorf("got %v", err)
		}
	}
	for _, transport := range []Transport{NewHTTP(HTTPOptions{URL: "ftp://x"}), NewSSE(HTTPOptions{URL: "::"})} {
		if _, err := Connect(t.Context(), transport, Options{}); tool.KindOf(err) != tool.UpstreamFailed || !strings.Contains(err.Error(), "http") {
			t.Errorf("got %v", err)
		}
	}
}

func TestHTTPNotFoundErrorExplainsURL(t *testing.T) {
	ts := httptest.NewServer(http.NotFoundHandler())
	defer ts.Close()
	for name, transport := range map[string]Transport{"auto": NewHTTP(HTTPOptions{URL: ts.URL}), "streamable": NewHTTP(HTTPOptions{URL: ts.URL, StreamableOnly: true}), "sse": NewSSE(HTTPOptions{URL: ts.URL})} {
		if _, err := Connect(t.Context(), transport, Options{}); tool.KindOf(err) != tool.UpstreamFailed || !strings.Contains(err.Error(), "check the URL") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLegacySSERefused(t *testing.T) {
	for name, tt := range map[string]struct{ stream, want string }{
		"another origin": {"event: endpoint\ndata: http://elsewhere.example/post\n\n", "another origin"},
		"no endpoint":    {"data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n", "endpoint event"},
		"ends":           {"", "endpoint event"},
	} {
		t.Run(name, func(t *testing.T) {
			ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { sse(w, tt.stream) }))
			defer ts.Close()
			if _, err := Connect(t.Context(), NewSSE(HTTPOptions{URL: ts.URL}), Options{}); tool.KindOf(err) != tool.UpstreamFailed || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestLegacySSEPostRefused(t *testing.T) {
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		sse(w, "event: endpoint\ndata: /post\n\nevent: other\ndata: x\n\n")
		<-r.Context().Done()
	}))
	defer ts.Close()
	if _, err := Connect(t.Context(), NewSSE(HTTPOptions{URL: ts.URL}), Options{}); tool.KindOf(err) != tool.UpstreamAuthRequired {
		t.Errorf("got %v", err)
	}
}

// In the stateless era a server may require arguments as headers. A client
// without the schema reads it and retries the call.
func TestHTTPLooksUpParameterHeaders(t *testing.T) {
	var lists atomic.Int32
	c := web(t, Options{}, HTTPOptions{}, &webServer{stateless: true, handle: func(w http.ResponseWriter, r *http.Request, m mcp.Message) {
		if r.Header.Get("Mcp-Protocol-Version") != mcp.Version20260728 || r.Header.Get("Mcp-Method") != m.Method || rawjson.FieldString(m.Params, "_meta", mcp.MetaProtocolVersion) != mcp.Version20260728 {
			t.Errorf("headers %v of %s", r.Header, m.Params)
		}
		switch m.Method {
		case "tools/list":
			if lists.Add(1)%2 == 1 {
				plain(w, m, `{"tools":[{"name":"y","inputSchema":{}}],"nextCursor":"2"}`)
				return
			}
			plain(w, m, `{"tools":[{"name":"x","inputSchema":{"type":"object","properties":{"deep":{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}},"n":{"type":"integer","x-mcp-header":"N"},"b":{"type":"boolean","x-mcp-header":"B"},"none":{"type":"string","x-mcp-header":"None"}}}}]}`)
		case "tools/call":
			if r.Header.Get("Mcp-Param-Region") == "" {
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32020,"message":"missing"}}`, m.ID)
				return
			}
			plain(w, m, fmt.Sprintf(`{"region":%q,"n":%q,"b":%q,"none":%q}`, r.Header.Get("Mcp-Param-Region"), r.Header.Get("Mcp-Param-N"), r.Header.Get("Mcp-Param-B"), r.Header.Get("Mcp-Param-None")))
		}
	}})
	r := tool.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"x","arguments":{"deep":{"region":"Zürich"},"n":42.0,"b":true,"none":null}}`)}
	for range 2 {
		result, err := c.Do(t.Context(), r)
		if want := `{"region":"=?base64?WsO8cmljaA==?=","n":"42","b":"true","none":""}`; err != nil || string(result) != want {
			t.Errorf("%s, %v, want %s", result, err, want)
		}
	}
	if n := lists.Load(); n != 2 {
		t.Errorf("listed %d times, want the two pages once", n)
	}
	r.Params = json.RawMessage(`{"name":"unknown"}`)
	if _, err := c.Do(t.Context(), r); err == nil {
		t.Error("no error for a tool that is not there")
	}
}

// A server may respond on the GET stream and close the stream of the request.
func TestHTTPResponseOnBothStreams(t *testing.T) {
	posted, sent := make(chan mcp.Message, 1), make(chan struct{})
	c := web(t, Options{OnNotification: func(method string, _ json.RawMessage) { close(sent) }}, HTTPOptions{}, &webServer{handle: func(w http.ResponseWriter, r *http.Request, m mcp.Message) {
		if r.Method == http.MethodGet {
			sse(w, ": open\n\n")
			sse(w, event1(<-posted, `{"other":true}`), "data: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\n")
			<-r.Context().Done()
			return
		}
		posted <- m
		<-sent
		sse(w, ": nothing here\n\n")
	}})
	result, err := c.Do(t.Context(), toolsCall)
	if err != nil || string(result) != `{"other":true}` {
		t.Errorf("%s, %v", result, err)
	}
}

func TestHTTPUserInURLIsSentAsBasicAuth(t *testing.T) {
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, ok := r.BasicAuth(); !ok || user != "me" || password != "pw" || r.URL.User != nil {
			t.Errorf("got %q, %q", user, password)
		}
		body, _ := io.ReadAll(r.Body)
		m, _ := mcp.Decode(body, mcp.Limits{})
		plain(w, m, discoverResult)
	}))
	defer ts.Close()
	c, err := Connect(t.Context(), NewHTTP(HTTPOptions{URL: strings.Replace(ts.URL, "http://", "http://me:pw@", 1)}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	c.Close()
}
