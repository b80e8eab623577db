package oauth

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/http1"
	"junctor/internal/mcpclient"
	"junctor/internal/sqlite"
	"junctor/internal/sqlite/sqlitetest"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// jira is the login that callers share.
var jira = upstream.Login{Server: "jira"}

// world is an authorization server and a protected server. They are strict
// about requests: PKCE, resource on every request, rotation with replay
// detection.
type world struct {
	t   *testing.T
	as  *httptest.Server
	rs  *httptest.Server
	mu  sync.Mutex
	url string // of the protected server

	// The behavior of the servers, set by tests.
	meta      map[string]any // merged into the default metadata
	prm       map[string]any
	metaPath  string
	noPRM     bool
	expiresIn int                                               // of tokens, in seconds; 0 for no expires_in
	noRefresh bool                                              // issue no refresh tokens
	keepOld   bool                                              // do not rotate
	scopes    string                                            // granted; "" grants the requested scope
	iss       string                                            // iss in responses; "-" for none
	needs     string                                            // scope that the protected server requires
	challenge string                                            // WWW-Authenticate; "" for the default
	fail      func(w http.ResponseWriter, r *http.Request) bool // called before the token endpoint
	secret    string                                            // issued to registered clients

	registered []map[string]any
	codes      map[string]url.Values
	access     map[string]string // token → scope
	refresh    map[string]bool   // token → unused
	refreshes  int
	grants     int
	replays    int
	revoked    []string
	lastAuth   url.Values
	lastToken  url.Values
	basic      string
	served     int
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, expiresIn: 3600, metaPath: "/.well-known/oauth-authorization-server",
		codes: map[string]url.Values{}, access: map[string]string{}, refresh: map[string]bool{}}
	w.as = httptest.NewServer(http.HandlerFunc(w.serveAS))
	w.rs = httptest.NewServer(http.HandlerFunc(w.serveRS))
	w.url = w.rs.URL + "/mcp"
	t.Cleanup(w.as.Close)
	t.Cleanup(w.rs.Close)
	return w
}

func reply(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func (w *world) serveAS(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch r.URL.Path {
	case w.metaPath:
		meta := map[string]any{
			"issuer": w.as.URL, "authorization_endpoint": w.as.URL + "/authorize?tenant=1", "token_endpoint": w.as.URL + "/token",
			"registration_endpoint": w.as.URL + "/register", "revocation_endpoint": w.as.URL + "/revoke",
			"code_challenge_methods_supported": []string{"S256"}, "token_endpoint_auth_methods_supported": []string{"none", "client_secret_basic", "client_secret_post"},
		}
		for k, v := range w.meta {
			if meta[k] = v; v == nil {
				delete(meta, k)
			}
		}
		reply(rw, 200, meta)
	case "/register":
		var m map[string]any
		if json.NewDecoder(r.Body).Decode(&m) != nil {
			reply(rw, 400, map[string]any{"error": "invalid_client_metadata"})
			return
		}
		w.registered = append(w.registered, m)
		out := map[string]any{"client_id": fmt.Sprintf("client-%d", len(w.registered)), "token_endpoint_auth_method": m["token_endpoint_auth_method"]}
		if w.secret != "" {
			out["client_secret"], out["client_secret_expires_at"] = w.secret, time.Now().Add(48*time.Hour).Unix()
			delete(out, "token_endpoint_auth_method")
		}
		reply(rw, 201, out)
	case "/authorize":
		q := r.URL.Query()
		w.lastAuth = q
		code := rand.Text()
		w.codes[code] = q
		back, _ := url.Parse(q.Get("redirect_uri"))
		out := url.Values{"code": {code}, "state": {q.Get("state")}}
		switch w.iss {
		case "":
			out.Set("iss", w.as.URL)
		case "-":
		default:
			out.Set("iss", w.iss)
		}
		back.RawQuery = out.Encode()
		http.Redirect(rw, r, back.String(), http.StatusFound)
	case "/token":
		w.token(rw, r)
	case "/revoke":
		w.revoked = append(w.revoked, r.FormValue("token"))
		delete(w.access, r.FormValue("token"))
		delete(w.refresh, r.FormValue("token"))
	default:
		http.NotFound(rw, r)
	}
}

func (w *world) token(rw http.ResponseWriter, r *http.Request) {
	if w.fail != nil && w.fail(rw, r) {
		return
	}
	form := func(k string) string { return r.FormValue(k) }
	_ = r.ParseForm()
	w.lastToken, w.basic = r.PostForm, r.Header.Get("Authorization")
	refuse := func(code string) {
		reply(rw, 400, map[string]any{"error": code, "error_description": "because"})
	}
	if form("resource") != w.url {
		refuse("invalid_target")
		return
	}
	scope := ""
	switch form("grant_type") {
	case "authorization_code":
		q, ok := w.codes[form("code")]
		delete(w.codes, form("code"))
		sum := sha256.Sum256([]byte(form("code_verifier")))
		if !ok || base64.RawURLEncoding.EncodeToString(sum[:]) != q.Get("code_challenge") || form("redirect_uri") != q.Get("redirect_uri") {
			refuse("invalid_grant")
			return
		}
		scope = q.Get("scope")
		w.grants++
	case "refresh_token":
		unused, known := w.refresh[form("refresh_token")]
		if !unused {
			if known { // a replay ends the whole grant
				w.replays++
				clear(w.access)
				clear(w.refresh)
			}
			refuse("invalid_grant")
			return
		}
		w.refreshes++
		if !w.keepOld {
			w.refresh[form("refresh_token")] = false
		}
		scope = w.lastAuth.Get("scope")
	case "client_credentials":
		scope = form("scope")
		w.grants++
	default:
		refuse("unsupported_grant_type")
		return
	}
	if w.scopes != "" {
		scope = w.scopes
	}
	access := rand.Text()
	w.access[access] = scope
	out := map[string]any{"access_token": access, "token_type": "bearer"}
	if scope != "" {
		out["scope"] = scope
	}
	if w.expiresIn > 0 {
		out["expires_in"] = w.expiresIn
	}
	if !w.noRefresh && !(w.keepOld && form("grant_type") == "refresh_token") {
		refresh := rand.Text()
		w.refresh[refresh] = true
		out["refresh_token"] = refresh
	}
	reply(rw, 200, out)
}

func (w *world) serveRS(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.HasPrefix(r.URL.Path, "/.well-known/oauth-protected-resource") {
		if w.noPRM {
			http.NotFound(rw, r)
			return
		}
		prm := map[string]any{"resource": w.url, "authorization_servers": []string{w.as.URL}}
		for k, v := range w.prm {
			prm[k] = v
		}
		reply(rw, 200, prm)
		return
	}
	if r.URL.Path != "/mcp" {
		http.NotFound(rw, r)
		return
	}
	scope, ok := w.access[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	switch {
	case !ok:
		ch := w.challenge
		if ch == "" {
			ch = fmt.Sprintf(`Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp", error="invalid_token"`, w.rs.URL)
		}
		rw.Header().Set("WWW-Authenticate", ch)
		rw.WriteHeader(401)
	case w.needs != "" && !slices.Contains(strings.Fields(scope), w.needs):
		rw.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer error="insufficient_scope", scope="%s"`, w.needs))
		rw.WriteHeader(403)
	default:
		w.served++
		io.WriteString(rw, "served")
	}
}

// do runs f while the world is locked.
func (w *world) do(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// fixture is a Service in a world.
type fixture struct {
	*Service
	t     *testing.T
	w     *world
	cfg   *upstream.Config
	store store.Store
	in    []string // upstreams that were logged in to
	dir   string
}

func openStore(t *testing.T, dir string) store.Store {
	t.Helper()
	cfg := store.DefaultConfig()
	cfg.Path = sqlitetest.Create(t, filepath.Join(dir, "junctor.db"))
	s, err := sqlite.Open(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func sealer(t *testing.T) func() (*store.Sealer, error) {
	s, err := store.NewSealer(bytes.Repeat([]byte{7}, store.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	return func() (*store.Sealer, error) { return s, nil }
}

func newFixture(t *testing.T, w *world) *fixture {
	t.Helper()
	cfg := upstream.DefaultConfig()
	cfg.Name, cfg.URL = "jira", w.url
	dir := t.TempDir()
	r := &fixture{t: t, w: w, cfg: &cfg, store: openStore(t, dir), dir: dir}
	r.Service = r.another()
	return r
}

// lockedBuffer is a log that is safe for concurrent use.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// another returns a Service for a second process on the same store.
func (r *fixture) another() *Service {
	r.t.Helper()
	s := New(Options{
		Servers: func(name string) (upstream.Config, bool) { return *r.cfg, name == r.cfg.Name },
		Store:   r.store, Sealer: sealer(r.t), RoundTripper: http1.New(mcpclient.NewRoundTripper(nil)), Redactor: &telemetry.Redactor{},
		Log: slog.New(slog.NewTextHandler(&lockedBuffer{}, nil)), Node: "test", Version: "1",
		LoggedIn: func(l upstream.Login) { r.in = append(r.in, l.Server) },
	})
	s.SetCallback("http://127.0.0.1:8787" + CallbackPath)
	r.t.Cleanup(s.Close)
	return s
}

// call sends a request to the protected server as upstream connections do:
// authorized by Authorize, and once more after a 401 and a 403.
func call(ctx context.Context, s *Service, cfg upstream.Config) (int, error) {
	var refused *mcpclient.HTTPError
	var tried401, tried403 bool
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, cfg.URL, strings.NewReader(`{}`))
		if err != nil {
			return 0, err
		}
		if err := s.Authorize(ctx, cfg.LoginOf(tool.CallerFrom(ctx).ID), req, refused); err != nil {
			return 0, err
		}
		resp, err := s.opts.RoundTripper.RoundTrip(req)
		if err != nil {
			return 0, err
		}
		resp.Body.Close()
		switch {
		case resp.StatusCode == 401 && !tried401:
			tried401 = true
		case resp.StatusCode == 403 && !tried403:
			tried403 = true
		default:
			return resp.StatusCode, nil
		}
		refused = &mcpclient.HTTPError{
			Status: resp.StatusCode, WWWAuthenticate: resp.Header.Values("WWW-Authenticate"),
			Credential: telemetry.Secret(req.Header.Get("Authorization")),
		}
	}
}

func (r *fixture) call() (int, error) { return call(as(r.t, tool.Local), r.Service, *r.cfg) }

// urlIn returns the sign-in URL of an error.
func urlIn(t *testing.T, err error) string {
	t.Helper()
	e, ok := errors.AsType[*tool.Error](err)
	if !ok || e.Kind != tool.UpstreamAuthRequired {
		t.Fatalf("error = %v, want %s", err, tool.UpstreamAuthRequired)
	}
	details, _ := e.Details.(map[string]any)
	address, _ := details["url"].(string)
	if address == "" || !strings.Contains(e.Msg, address) {
		t.Fatalf("no address in %v %q", e.Details, e.Msg)
	}
	return address
}

// visit opens a URL as a browser does and returns the query of the redirect.
func visit(t *testing.T, address string) url.Values {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	back, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || resp.StatusCode != http.StatusFound {
		t.Fatalf("authorization endpoint answered %s", resp.Status)
	}
	return back.Query()
}

// login signs the fixture in.
func (r *fixture) login() {
	r.t.Helper()
	_, err := r.call()
	if name, err := r.Complete(r.t.Context(), visit(r.t, urlIn(r.t, err))); err != nil || name != "jira" {
		r.t.Fatalf("Complete = %q, %v", name, err)
	}
	if status, err := r.call(); status != 200 || err != nil {
		r.t.Fatalf("after the login: %d, %v", status, err)
	}
}

// kept returns the login in the store.
func (r *fixture) kept() *record {
	r.t.Helper()
	rec, _, err := r.load(r.t.Context(), jira)
	if err != nil {
		r.t.Fatal(err)
	}
	return rec
}

// age makes the token older, in the store and in memory.
func (r *fixture) age(by time.Duration, all ...*Service) {
	r.t.Helper()
	rec := r.kept()
	rec.Obtained, rec.Expires = rec.Obtained.Add(-by), rec.Expires.Add(-by)
	if _, err := r.save(r.t.Context(), jira, rec, anyVersion); err != nil {
		r.t.Fatal(err)
	}
	for _, s := range append(all, r.Service) {
		st := s.state(jira)
		st.mu.Lock()
		st.read = time.Time{}
		st.mu.Unlock()
	}
}
