package openapi

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// call calls a tool of a server as its clients do.
func call(t *testing.T, s *Server, name, arguments string) json.RawMessage {
	t.Helper()
	result, err := s.Serve(t.Context(), &mcpserver.Request{Method: "tools/call", Params: fmt.Appendf(nil, `{"name":%q,"arguments":%s}`, name, arguments)})
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(result) {
		t.Fatalf("%s: %q", name, result)
	}
	return result
}

const testDocument = `{"openapi":"3.1.0","info":{"title":"Test","version":"1","description":"A service."},%s
	"security":[{"header":[]},{"query":[],"cookie":[]}],
	"paths":{
	"/json":{"get":{"operationId":"json","responses":{"200":{"content":{"application/json":{"schema":{"type":"object"}}}}}},
		"post":{"operationId":"post","responses":{"200":{"content":{"application/json":{"schema":{"type":"array"}}}}}}},
	"/{what}":{"get":{"operationId":"get","parameters":[{"name":"what","in":"path","required":true,"schema":{"type":"string"}}],"responses":{}}},
	"/login/basic":{"get":{"operationId":"basic","security":[{"basic":[]}],"responses":{}}},
	"/login/token":{"get":{"operationId":"token","security":[{"oauth":[]}],"responses":{}}},
	"/login/none":{"get":{"operationId":"none","security":[],"responses":{}}}},
	"components":{"securitySchemes":{"header":{"type":"apiKey","in":"header","name":"X-Key"},"query":{"type":"apiKey","in":"query","name":"key"},
		"cookie":{"type":"apiKey","in":"cookie","name":"session"},"basic":{"type":"http","scheme":"basic"},
		"oauth":{"type":"oauth2","flows":{"clientCredentials":{"tokenUrl":"/oauth/token","scopes":{}}}}}}}`

// start starts a service and returns a server for its document.
func start(t *testing.T, handler http.Handler, credentials map[string]string) *Server {
	t.Helper()
	service := httptest.NewServer(handler)
	t.Cleanup(service.Close)
	path := filepath.Join(t.TempDir(), "openapi.json")
	if err := os.WriteFile(path, fmt.Appendf(nil, testDocument, `"servers":[{"url":"`+service.URL+`"}],`), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := NewServer(t.Context(), Options{Document: path, Credentials: credentials, UserAgent: "junctor/test"})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestResults(t *testing.T) {
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reply := func(mediaType, content string) {
			w.Header().Set("Content-Type", mediaType)
			_, _ = w.Write([]byte(content))
		}
		switch r.URL.Path {
		case "/json":
			if r.Method == http.MethodPost {
				reply("application/json", ` [1, 2] `)
				return
			}
			w.Header().Set("Link", `<https://x.example/?page=2>; rel="next", <https://x.example/?page=9>; rel="last"`)
			reply("application/json; charset=utf-8", `{"big":12345678901234567890}`)
		case "/text":
			reply("text/plain", "hello \xff")
		case "/image":
			reply("image/png", "\x89PNG")
		case "/binary":
			reply("application/zip", "PK\x00")
		case "/empty":
			w.WriteHeader(http.StatusNoContent)
		case "/problem":
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write([]byte(`{"title":"Out of credit","detail":"You have 30","balance":30}`))
		case "/broken":
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte("it broke"))
		case "/invalid":
			reply("application/json", `{"a":`)
		case "/huge":
			reply("text/plain", strings.Repeat("x", maxResponse+1))
		case "/redirect":
			http.Redirect(w, r, "/text", http.StatusFound)
		case "/away":
			http.Redirect(w, r, "http://elsewhere.example/?secret=1", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	}), nil)
	for tool, want := range map[string]string{
		"json": `{"content":[{"text":"{\"big\":12345678901234567890}","type":"text"}],"structuredContent":{"big":12345678901234567890},"_meta":{"junctor/links":{"last":"https://x.example/?page=9","next":"https://x.example/?page=2"}}}`,
		"post": `{"content":[{"text":" [1, 2] ","type":"text"}],"structuredContent":{"result":[1,2]}}`,
	} {
		if got := string(call(t, s, tool, `{}`)); got != want {
			t.Errorf("%s: %s, want %s", tool, got, want)
		}
	}
	for what, want := range map[string]string{
		"text":     `{"content":[{"text":"hello �","type":"text"}]}`,
		"image":    `{"content":[{"data":"iVBORw==","mimeType":"image/png","type":"image"}]}`,
		"binary":   `"blob":"UEsA"`,
		"empty":    `{"content":[{"text":"204 No Content","type":"text"}]}`,
		"problem":  `{"content":[{"text":"409 Conflict\ntitle: Out of credit\ndetail: You have 30\nbalance: 30","type":"text"}],"isError":true}`,
		"broken":   `{"content":[{"text":"500 Internal Server Error\nit broke","type":"text"}],"isError":true}`,
		"invalid":  `{"content":[{"text":"{\"a\":","type":"text"}]}`,
		"huge":     `larger than 8 MB`,
		"redirect": `hello`,
		"away":     `the service redirects to http://elsewhere.example/; if that is its address, set baseUrl to it`,
		"gone":     `404 Not Found`,
	} {
		if got := string(call(t, s, "get", `{"what":"`+what+`"}`)); !strings.Contains(got, want) {
			t.Errorf("%s: %.300s, want %s", what, got, want)
		}
	}
	if _, err := s.Serve(t.Context(), &mcpserver.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"nonsense"}`)}); err == nil {
		t.Error("an unknown tool is called")
	}
}

func TestCredentials(t *testing.T) {
	var tokens atomic.Int32
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/oauth/token" {
			tokens.Add(1)
			id, secret, _ := r.BasicAuth()
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"access_token":"for %s %s","token_type":"Bearer","expires_in":3600}`, id, secret)
			return
		}
		_, _ = fmt.Fprintf(w, "key=%s query=%s cookie=%s auth=%s agent=%s", r.Header.Get("X-Key"), r.URL.RawQuery, r.Header.Get("Cookie"), r.Header.Get("Authorization"), r.UserAgent())
	}), map[string]string{"query": "a b", "cookie": "c", "basic": "user:pass", "oauth": "id:secret"})
	for tool, want := range map[string]string{
		"json":  "key= query=key=a%20b cookie=session=c auth= agent=junctor/test", // there is no credential for the first alternative
		"basic": "auth=Basic dXNlcjpwYXNz",
		"token": "auth=Bearer for id secret",
		"none":  "key= query= cookie= auth= agent",
	} {
		for range 2 {
			if got := string(call(t, s, tool, `{}`)); !strings.Contains(got, want) {
				t.Errorf("%s: %s, want %s", tool, got, want)
			}
		}
	}
	if n := tokens.Load(); n != 1 {
		t.Errorf("%d tokens obtained", n)
	}
}

func TestErrorsNameNoSecret(t *testing.T) {
	s := start(t, http.NotFoundHandler(), map[string]string{"query": "secret-key", "cookie": "c"})
	s.service.Load().Base = &url.URL{Scheme: "http", Host: "127.0.0.1:1"} // a closed port
	got := string(call(t, s, "json", `{}`))
	if strings.Contains(got, "secret-key") || !strings.Contains(got, "127.0.0.1:1/json") {
		t.Error(got)
	}
}

// TestRetryAfter checks that idempotent requests are retried when the service
// asks for it.
func TestRetryAfter(t *testing.T) {
	var requests sync.Map
	s := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := requests.LoadOrStore(r.Method+r.URL.Path, new(atomic.Int32))
		if n.(*atomic.Int32).Add(1) == 1 {
			w.Header().Set("Retry-After", map[bool]string{true: "3600", false: "0"}[r.URL.Path == "/long"])
			w.WriteHeader(http.StatusTooManyRequests)
			return
		}
		_, _ = w.Write([]byte("done"))
	}), nil)
	for _, c := range []struct{ tool, arguments, want string }{
		{"json", `{}`, "done"},
		{"post", `{}`, "429 Too Many Requests"}, // not idempotent
		{"get", `{"what":"long"}`, "429 Too Many Requests"},
	} {
		if got := string(call(t, s, c.tool, c.arguments)); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.tool, got, c.want)
		}
	}
}

// TestDocumentByAddress fetches a document, stores a copy, and fetches it
// again only if it has changed.
func TestDocumentByAddress(t *testing.T) {
	var version atomic.Int32
	var notModified atomic.Int32
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "" && r.URL.Path == "/openapi.json" {
			t.Error("the document's host gets the credentials of the service")
		}
		tag := fmt.Sprintf(`"%d"`, version.Load())
		if r.Header.Get("If-None-Match") == tag {
			notModified.Add(1)
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Header().Set("ETag", tag)
		_, _ = fmt.Fprintf(w, `{"openapi":"3.1.0","paths":{"/a":{"get":{"operationId":"v%d","responses":{}}}}}`, version.Load())
	}))
	defer service.Close()
	o := Options{Document: service.URL + "/openapi.json?key=secret", CacheDir: t.TempDir(), Header: http.Header{"Authorization": {"Bearer x"}}}
	s, err := NewServer(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if base := s.service.Load().Base.String(); base != service.URL+"/" {
		t.Errorf("base %s", base)
	}
	if changed, err := s.reload(t.Context()); changed || err != nil || notModified.Load() != 1 {
		t.Errorf("changed %v, %v", changed, err)
	}
	version.Store(1)
	if changed, err := s.reload(t.Context()); !changed || err != nil {
		t.Errorf("changed %v, %v", changed, err)
	}
	if got := s.service.Load().Tools(); got[0] != "v1" {
		t.Errorf("tools %v", got)
	}
	service.Close()
	if _, err := s.reload(t.Context()); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("error %v", err)
	}
	s, err = NewServer(t.Context(), o)
	if err != nil {
		t.Fatalf("without the address: %v", err)
	}
	if got := s.service.Load().Tools(); got[0] != "v1" {
		t.Errorf("tools of the copy %v", got)
	}
}

// TestDocumentsCannotReachInternalAddresses checks that a document from the
// internet cannot make the gateway call a service in a more private network.
func TestDocumentsCannotReachInternalAddresses(t *testing.T) {
	for base, refused := range map[string]bool{
		"http://127.0.0.1:9/": true, "http://10.0.0.1/": true, "http://169.254.169.254/latest": true, "http://[::1]/": true,
		"http://localhost:9/": true, "http://0x7f000001/": true, "https://93.184.216.34/": false,
	} {
		document := fmt.Appendf(nil, `{"openapi":"3.1.0","servers":[{"url":%q}],"paths":{"/a":{"get":{"responses":{}}}}}`, base)
		from := Source{URL: "http://93.184.216.35/openapi.json"}
		s, err := Parse(document, from, "", Filter{})
		if err != nil {
			t.Fatal(err)
		}
		if err := newGuard(s, from).check(s.Base); (err != nil) != refused {
			t.Errorf("%s: %v", base, err)
		}
	}
	// a name that resolves to this machine is rejected when dialing
	g := &guard{}
	if err := g.control("tcp", "127.0.0.1:80", nil); err == nil || !strings.Contains(err.Error(), "set baseUrl") {
		t.Errorf("dialled: %v", err)
	}
}

// TestDial uses the server through a connection and checks that the document
// is reloaded when the file changes.
func TestDial(t *testing.T) { synctest.Test(t, testDial) }

func testDial(t *testing.T) {
	path := filepath.Join(t.TempDir(), "openapi.yaml")
	write := func(id string) {
		t.Helper()
		text := "openapi: 3.1.0\nservers: [{url: 'http://x.example'}]\npaths: {/a: {get: {operationId: " + id + ", responses: {}}}}\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	cfg := upstream.DefaultConfig()
	cfg.Name, cfg.OpenAPI = "rest", path
	cfg.Credentials = map[string]telemetry.Secret{"a": "b"}
	transport, err := Dialer{UserAgent: "junctor/test"}.Dial(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	changed := make(chan struct{}, 1)
	client, err := mcpclient.Connect(t.Context(), transport, mcpclient.Options{Name: "test", Version: "1", Protocol: mcp.Version20251125, OnNotification: func(method string, _ json.RawMessage) {
		if method == "notifications/tools/list_changed" {
			changed <- struct{}{}
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	tools := func() string {
		t.Helper()
		result, err := client.Do(t.Context(), tool.Request{Method: "tools/list", Params: json.RawMessage(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for d := range rawjson.Elements(rawjson.Field(result, "tools")) {
			names = append(names, rawjson.FieldString(d, "name"))
		}
		return strings.Join(names, " ")
	}
	if got := tools(); got != "first" {
		t.Errorf("tools %q", got)
	}
	write("another")
	<-changed
	if got := tools(); got != "another" {
		t.Errorf("tools after the change %q", got)
	}
}

// roundTripper is an http.RoundTripper without a network.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestWatchSurvivesHangingFetch checks that a fetch without a response times
// out and the document is read again at the next interval.
func TestWatchSurvivesHangingFetch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fetches := 0
		client := &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			fetches++
			if fetches == 2 {
				<-r.Context().Done()
			}
			if err := r.Context().Err(); err != nil {
				return nil, err
			}
			document := fmt.Sprintf(`{"openapi":"3.1.0","info":{"title":"t","version":"1"},"paths":{"/a":{"get":{"operationId":"a%d","responses":{}}}}}`, fetches)
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Etag": {document}}, Body: io.NopCloser(strings.NewReader(document)), Request: r}, nil
		})}
		log := slog.New(slog.DiscardHandler)
		s := &Server{opts: Options{Log: log}, loader: &loader{address: "http://x.example/openapi.json", header: http.Header{}, client: client, log: log}}
		ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
		defer cancel()
		if _, err := s.reload(ctx); err != nil {
			t.Fatal(err)
		}
		s.Watch(ctx, cancel)
		if fetches != 3 || s.service.Load().byName["a3"] == nil {
			t.Errorf("the document was not read again after a fetch that hung; %d fetches", fetches)
		}
	})
}
