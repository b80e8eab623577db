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
