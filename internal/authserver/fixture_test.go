package authserver

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/auth"
	"junctor/internal/profile"
	"junctor/internal/sqlite"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// fixture is a gateway with the authorization server and one endpoint, /mcp,
// which responds with the caller's name, or with a stream if the query is
// "stream".
type fixture struct {
	*Server
	t       *testing.T
	url     string
	store   store.Store
	gate    *auth.Gate
	key     telemetry.Secret // of alice
	log     *safeBuffer
	streams chan context.Context

	mu   sync.Mutex
	skew time.Duration
}

type safeBuffer struct {
	mu sync.Mutex
	b  strings.Builder
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

func openStore(t *testing.T) store.Store {
	t.Helper()
	s, err := sqlite.Open(t.Context(), store.Config{Path: filepath.Join(t.TempDir(), "junctor.db")}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func testSealer() (*store.Sealer, error) { return store.NewSealer(make([]byte, store.KeySize)) }

func newFixture(t *testing.T) *fixture { return newNode(t, openStore(t), "") }

// newNode starts a gateway over a store. issuer is the public URL of all
// nodes; empty for the gateway's own.
func newNode(t *testing.T, s store.Store, issuer string) *fixture {
	t.Helper()
	r := &fixture{t: t, store: s, log: &safeBuffer{}, streams: make(chan context.Context, 100)}
	log := slog.New(slog.NewTextHandler(r.log, nil))
	mux := http.NewServeMux()
	var handler http.Handler
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) { handler.ServeHTTP(w, req) }))
	t.Cleanup(front.Close)
	r.url = front.URL
	if issuer == "" {
		issuer = front.URL
	}
	public := func() string { return issuer }
	profiles := profile.New(map[string]profile.Config{"reader": {Tools: []string{"*:read_*"}}}, profile.Options{})
	r.Server = New(Options{
		URL: public, Store: s, Sealer: testSealer, Log: log,
		Fetch: func(context.Context, string, int64) ([]byte, error) { return nil, fmt.Errorf("not in this test") },
		Profiles: func(c tool.Caller) []string {
			if c.Name != "bob" {
				return nil
			}
			return profiles.Usable(&c)
		},
	})
	r.now = func() time.Time {
		r.mu.Lock()
		defer r.mu.Unlock()
		return time.Now().Add(r.skew)
	}
	r.gate = auth.NewGate(auth.Options{
		Config: auth.Config{Loopback: auth.LoopbackKey}, Listen: strings.TrimPrefix(front.URL, "http://"), Keys: s, Sessions: s, Changes: s,
		Tokens: r.Server, PublicURL: public, Log: log,
		Public: func(req *http.Request) bool {
			return Public(req.URL.Path) || strings.HasPrefix(req.URL.Path, "/.well-known/") || req.URL.Path == "/api/session"
		},
		Profiles: profiles,
	})
	r.gate.Routes(mux)
	r.Routes(mux, r.gate)
	mux.HandleFunc("/mcp", func(w http.ResponseWriter, req *http.Request) {
		c := tool.CallerFrom(req.Context())
		_, _ = fmt.Fprintf(w, "%s %s admin=%v profiles=%v", c.ID, c.Name, c.Admin, c.Profiles.Names())
		if req.URL.RawQuery == "stream" {
			w.(http.Flusher).Flush()
			r.streams <- req.Context()
			<-req.Context().Done()
		}
	})
	handler = r.gate.Wrap(mux)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = r.gate.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return r
}

func (r *fixture) advance(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.skew += d
}

func (r *fixture) addKey(name string) telemetry.Secret {
	r.t.Helper()
	secret, key := auth.NewKey(name)
	key.Admin = true
	if err := r.store.AddKey(r.t.Context(), key); err != nil {
		r.t.Fatal(err)
	}
	return secret
}

// do sends a request and returns status, headers and body. Redirects are not
// followed.
func (r *fixture) do(method, target string, header map[string]string, body string) (int, http.Header, string) {
	r.t.Helper()
	if strings.HasPrefix(target, "/") {
		target = r.url + target
	}
	req, err := http.NewRequest(method, target, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	if public := r.opts.URL(); public != "" { // as behind a load balancer
		req.Host = strings.TrimPrefix(public, "http://")
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(text)
}

func (r *fixture) form(path string, form url.Values) (int, http.Header, string) {
	r.t.Helper()
	return r.do("POST", path, map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, form.Encode())
}

func (r *fixture) register(metadata string) (int, map[string]any) {
	r.t.Helper()
	status, _, body := r.do("POST", RegisterPath, map[string]string{"Content-Type": "application/json"}, metadata)
	var answer map[string]any
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		r.t.Fatalf("%d %s: %v", status, body, err)
	}
	return status, answer
}

const (
	verifier    = "0123456789012345678901234567890123456789abc"
	redirectURI = "https://client.example/callback"
)

// attempt is a sign-in of a registered client.
type attempt struct {
	r     *fixture
	query url.Values
}

func (r *fixture) attempt(client string) attempt {
	sum := sha256.Sum256([]byte(verifier))
	return attempt{r, url.Values{
		"response_type": {"code"}, "client_id": {client}, "redirect_uri": {redirectURI}, "state": {"the state"},
		"code_challenge": {base64.RawURLEncoding.EncodeToString(sum[:])}, "code_challenge_method": {"S256"}, "resource": {r.opts.URL() + "/mcp"},
	}}
}

func (r *fixture) newClient() string {
	r.t.Helper()
	status, answer := r.register(`{"client_name":"Test client","redirect_uris":["` + redirectURI + `"]}`)
	if status != http.StatusCreated {
		r.t.Fatal(status, answer)
	}
	return answer["client_id"].(string)
}

var hidden = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`)

// page returns the form of the consent page.
func (a attempt) page() url.Values {
	a.r.t.Helper()
	status, _, body := a.r.do("GET", ConsentPath+"?"+a.query.Encode(), nil, "")
	if status != http.StatusOK {
		a.r.t.Fatal(status, body)
	}
	return fields(body)
}

// fields returns the hidden fields of a page.
func fields(body string) url.Values {
	form := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(body, -1) {
		form.Set(m[1], html.UnescapeString(m[2]))
	}
	return form
}

// consent submits the form with a key and returns the response to the client.
func (a attempt) consent(key telemetry.Secret, more ...string) url.Values {
	a.r.t.Helper()
	form := a.page()
	form.Set("key", key.Reveal())
	form.Set("decision", "allow")
	for i := 0; i+1 < len(more); i += 2 {
		form.Set(more[i], more[i+1])
	}
	status, header, body := a.submit(form, a.r.opts.URL())
	to, err := url.Parse(header.Get("Location"))
	if status != http.StatusSeeOther || err != nil {
		a.r.t.Fatal(status, body, err)
	}
	return to.Query()
}

func (a attempt) submit(form url.Values, origin string) (int, http.Header, string) {
	a.r.t.Helper()
	return a.r.do("POST", ConsentPath, map[string]string{"Content-Type": "application/x-www-form-urlencoded", "Origin": origin}, form.Encode())
}

func (a attempt) exchange(code string) url.Values {
	return url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "client_id": a.query["client_id"], "redirect_uri": {redirectURI},
		"code_verifier": {verifier}, "resource": a.query["resource"],
	}
}

// tokens is the response of the token endpoint.
type tokens struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Error   string `json:"error"`
	Text    string `json:"error_description"`
	Expires int    `json:"expires_in"`
}

func (r *fixture) token(form url.Values) (int, tokens) {
	r.t.Helper()
	status, _, body := r.form(TokenPath, form)
	var answer tokens
	if err := json.Unmarshal([]byte(body), &answer); err != nil {
		r.t.Fatalf("%d %s: %v", status, body, err)
	}
	return status, answer
}

// signIn performs a complete sign-in of alice with a new client.
func (r *fixture) signIn() (client string, got tokens) {
	r.t.Helper()
	if r.key == "" {
		r.key = r.addKey("alice")
	}
	client = r.newClient()
	a := r.attempt(client)
	status, got := r.token(a.exchange(a.consent(r.key).Get("code")))
	if status != http.StatusOK {
		r.t.Fatal(status, got)
	}
	return client, got
}

func refreshForm(client, token string) url.Values {
	return url.Values{"grant_type": {"refresh_token"}, "client_id": {client}, "refresh_token": {token}}
}

func (r *fixture) call(token string) (int, string) {
	r.t.Helper()
	status, _, body := r.do("POST", "/mcp", map[string]string{"Authorization": "Bearer " + token}, "")
	return status, body
}
