package auth

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"junctor/internal/setting"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// memory is an in-memory key store that can be made to fail.
type memory struct {
	mu      sync.Mutex
	keys    map[string]store.Key
	lookups int
	err     error
	touched map[string]time.Time
}

func (m *memory) KeyByHash(_ context.Context, h []byte) (store.Key, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lookups++
	if m.err != nil {
		return store.Key{}, m.err
	}
	k, ok := m.keys[string(h)]
	if !ok {
		return store.Key{}, store.ErrNotFound
	}
	return k, nil
}

func (m *memory) TouchKeys(_ context.Context, used map[string]time.Time) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.touched = used
	return m.err
}

func (m *memory) add(t testing.TB, name string, edit func(*store.Key)) string {
	t.Helper()
	secret, k := NewKey(name)
	if edit != nil {
		edit(&k)
	}
	if m.keys == nil {
		m.keys = map[string]store.Key{}
	}
	m.keys[string(k.Hash)] = k
	return secret.Reveal()
}

func gate(keys KeyStore, edit func(*Options)) *Gate {
	o := Options{
		Config: DefaultConfig(), Listen: "127.0.0.1:8787", Keys: keys, Sessions: &values{}, LocalToken: localToken,
		Log:    slog.New(slog.DiscardHandler),
		Public: func(r *http.Request) bool { return r.URL.Path == "/" || r.URL.Path == "/api/session" },
	}
	if edit != nil {
		edit(&o)
	}
	return NewGate(o)
}

// ask sends a request through the gate. It returns the response and the caller
// that reached the handler, or nil.
func ask(g *Gate, edit func(*http.Request)) (*httptest.ResponseRecorder, *tool.Caller) {
	var arrived *tool.Caller
	h := g.Wrap(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		c := tool.CallerFrom(r.Context())
		arrived = &c
	}))
	r := httptest.NewRequest("GET", "http://127.0.0.1:8787/tools", nil)
	if edit != nil {
		edit(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w, arrived
}

func set(pairs ...string) func(*http.Request) {
	return func(r *http.Request) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == "Host" {
				r.Host = pairs[i+1]
			} else {
				r.Header.Set(pairs[i], pairs[i+1])
			}
		}
	}
}

func TestGateOnOpenLoopback(t *testing.T) {
	keys := &memory{}
	key := keys.add(t, "ci", func(k *store.Key) { k.Servers = []string{"fs"}; k.Rate = tool.Rate{Calls: 3, Per: time.Minute} })
	g := gate(keys, func(o *Options) { o.Origins = []string{"https://app.example.com"} })
	for name, tt := range map[string]struct {
		edit   func(*http.Request)
		status int
		caller string
		admin  bool
	}{
		"a program":                    {nil, 200, "local", false},
		"localhost":                    {set("Host", "localhost:8787"), 200, "local", false},
		"any loopback name":            {set("Host", "junctor.localhost:8787"), 200, "local", false},
		"IPv6":                         {set("Host", "[::1]:8787"), 200, "local", false},
		"no port":                      {set("Host", "localhost"), 200, "local", false},
		"own page without a session":   {set("Origin", "http://127.0.0.1:8787"), 200, "local", false},
		"own page reads without one":   {set("Sec-Fetch-Site", "same-origin"), 200, "local", false},
		"both headers of the own page": {set("Origin", "http://127.0.0.1:8787", "Sec-Fetch-Site", "same-origin"), 200, "local", false},
		"the token is no session":      {set(SessionHeader, localToken), 401, "", false},
		"the token is no key":          {set("Authorization", "Bearer "+localToken), 401, "", false},
		"an unknown session":           {set(SessionHeader, "AAAAAAAAAAAAAAAAAAAAAAAAAA"), 401, "", false},
		"another port's page embeds":   {set("Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors"), 403, "", false},
		"another site's page embeds":   {set("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"), 403, "", false},
		"another site's page links":    {set("Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"), 200, "local", false},
		"typed address":                {set("Sec-Fetch-Site", "none"), 200, "local", false},
		"rebound name reads":           {set("Host", "evil.example:8787", "Sec-Fetch-Site", "same-origin"), 403, "", false},
		"rebound name":                 {set("Host", "evil.example:8787"), 403, "", false},
		"rebound name with its origin": {set("Host", "evil.example:8787", "Origin", "http://evil.example:8787"), 403, "", false},
		"foreign origin":               {set("Origin", "https://evil.example"), 403, "", false},
		"null origin":                  {set("Origin", "null"), 403, "", false},
		"another port is foreign":      {set("Origin", "http://127.0.0.1:9999"), 403, "", false},
		"WebSocket of a foreign page":  {set("Origin", "https://evil.example", "Upgrade", "websocket", "Connection", "Upgrade"), 403, "", false},
		"allowed origin":               {set("Origin", "https://app.example.com"), 200, "local", false},
		"host of an allowed origin":    {set("Host", "app.example.com"), 200, "local", false},
		"key":                          {set("Authorization", "Bearer "+key), 200, "key:ci", false},
		"key in its own header":        {set("X-API-Key", key), 200, "key:ci", false},
		"wrong key":                    {set("Authorization", "Bearer nope"), 401, "", false},
		"another scheme is no key":     {set("Authorization", "Basic abc"), 200, "local", false},
	} {
		t.Run(name, func(t *testing.T) {
			w, c := ask(g, tt.edit)
			if w.Code != tt.status {
				t.Fatalf("status = %d, want %d: %s", w.Code, tt.status, w.Body)
			}
			if tt.status == 200 && (c == nil || who(c) != tt.caller || c.Admin != tt.admin) {
				t.Errorf("caller = %+v, want %s admin=%v", c, tt.caller, tt.admin)
			}
			if tt.status != 200 && c != nil {
				t.Errorf("the request went through as %+v", c)
			}
		})
	}
	_, c := ask(g, set("X-API-Key", key))
	if len(c.Servers) != 1 || c.Rate.Calls != 3 {
		t.Errorf("the key's limits are lost: %+v", c)
	}
}

func TestGateWithKeys(t *testing.T) {
	keys := &memory{}
	old := keys.add(t, "old", func(k *store.Key) { k.Expires = time.Now().Add(-time.Hour) })
	revoked := keys.add(t, "revoked", func(k *store.Key) { k.Revoked = time.Now() })
	g := gate(keys, func(o *Options) {
		o.Listen = "0.0.0.0:8787"
		o.AdminKey = "the-admin-key-of-the-environment"
		o.Config.Keys = []KeyConfig{{Name: "filed", Key: "a-key-in-the-file-x", Rate: &setting.Rate{Calls: 5}}}
	})
	for name, tt := range map[string]struct {
		edit   func(*http.Request)
		status int
		caller string
		admin  bool
	}{
		"nothing":         {nil, 401, "", false},
		"any host":        {set("Host", "junctor.example", "X-API-Key", "a-key-in-the-file-x"), 200, "key:filed", false},
		"the environment": {set("X-API-Key", "the-admin-key-of-the-environment"), 200, "key:admin", true},
		"expired":         {set("X-API-Key", old), 401, "", false},
		"revoked":         {set("X-API-Key", revoked), 401, "", false},
		"public path":     {func(r *http.Request) { r.URL.Path = "/" }, 200, "anonymous", false},
		"public, bad key": {func(r *http.Request) { r.URL.Path = "/"; r.Header.Set("X-API-Key", "x") }, 200, "anonymous", false},
	} {
		t.Run(name, func(t *testing.T) {
			w, c := ask(g, tt.edit)
			if w.Code != tt.status || tt.status == 200 && (who(c) != tt.caller || c.Admin != tt.admin) {
				t.Fatalf("status = %d, caller %+v: %s", w.Code, c, w.Body)
			}
			if tt.status == 401 && w.Header().Get("WWW-Authenticate") == "" {
				t.Error("401 without WWW-Authenticate")
			}
		})
	}
	anonymous := tool.Anonymous
	if anonymous.MaySee("anything") || anonymous.MayUse(tool.Name{Server: "a", Tool: "b"}) {
		t.Error("anonymous may do something")
	}
	closed := gate(keys, func(o *Options) { o.Config.Loopback = LoopbackKey })
	if w, _ := ask(closed, nil); w.Code != 401 {
		t.Errorf("loopback with keys lets a caller without one in: %d", w.Code)
	}
}

func TestCORS(t *testing.T) {
	g := gate(&memory{}, func(o *Options) { o.Origins = []string{"https://app.example.com"} })
	w, arrived := ask(g, func(r *http.Request) {
		r.Method = "OPTIONS"
		set("Origin", "https://app.example.com", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers", "authorization")(r)
	})
	if w.Code != 204 || arrived != nil || w.Header().Get("Access-Control-Allow-Origin") != "https://app.example.com" || w.Header().Get("Access-Control-Allow-Headers") != "authorization" {
		t.Errorf("preflight: %d %v", w.Code, w.Header())
	}
	if got := w.Header().Get("Access-Control-Allow-Credentials"); got != "" {
		t.Error("another page may use the page's cookie")
	}
	w, _ = ask(g, set("Origin", "https://evil.example"))
	if w.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Error("a foreign origin is allowed")
	}
	keys := &memory{}
	key := keys.add(t, "k", nil)
	any := gate(keys, func(o *Options) { o.Origins, o.Config.Loopback = []string{"*"}, LoopbackKey })
	if w, _ := ask(any, set("Origin", "https://whoever.example", "X-API-Key", key)); w.Code != 200 || w.Header().Get("Access-Control-Allow-Origin") != "https://whoever.example" {
		t.Errorf("any origin with *: %d %v", w.Code, w.Header())
	}
	// A sandboxed frame of any page has the origin null.
	for _, origins := range [][]string{{"*"}, {"null"}} {
		odd := gate(keys, func(o *Options) { o.Origins, o.Config.Loopback = origins, LoopbackKey })
		if w, _ := ask(odd, set("Origin", "null", "X-API-Key", key)); w.Code != 403 || w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("null with %v: %d %v", origins, w.Code, w.Header())
		}
	}
	open := gate(keys, func(o *Options) { o.Origins = []string{"*"} }) // a debug port next to a listener that requires keys
	if w, _ := ask(open, set("Origin", "https://whoever.example")); w.Code != 403 {
		t.Errorf("any page calls an open listener: %d", w.Code)
	}
}

func TestKeysAreCachedBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := &memory{}
		key := keys.add(t, "k", nil)
		g := gate(keys, func(o *Options) { o.Listen = "10.0.0.1:80" })
		status := func() int { w, _ := ask(g, set("X-API-Key", key)); return w.Code }
		for range 10 {
			status()
		}
		if keys.lookups != 1 {
			t.Errorf("%d look-ups for 10 requests", keys.lookups)
		}
		keys.err = errors.New("database away")
		time.Sleep(time.Minute)
		if got := status(); got != 200 {
			t.Errorf("a known key while the store is away: %d", got)
		}
		time.Sleep(5 * time.Minute)
		if got := status(); got != 503 {
			t.Errorf("after a long time: %d", got)
		}
		keys.err = nil
		if got := status(); got != 200 {
			t.Errorf("after its return: %d", got)
		}
		clear(keys.keys)
		time.Sleep(keyCacheTTL)
		if got := status(); got != 401 {
			t.Errorf("a deleted key: %d", got)
		}
	})
}

func TestKnownKeysAreBounded(t *testing.T) {
	keys := &memory{}
	r := newKeyring(keys)
	for range maxKnownKeys + 5 {
		key := keys.add(t, "k", nil)
		if _, err := r.find(t.Context(), hash(key)); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.known) > maxKnownKeys {
		t.Errorf("%d keys in memory", len(r.known))
	}
}

func TestRunWritesLastUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		keys := &memory{}
		key := keys.add(t, "k", nil)
		g := gate(keys, nil)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- g.Run(ctx) }()
		ask(g, set("X-API-Key", key))
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if len(keys.touched) != 1 {
			t.Errorf("touched %v", keys.touched)
		}
		keys.err = errors.New("away") // logged, not fatal
		ask(g, set("X-API-Key", key))
		time.Sleep(10 * time.Second)
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestReadyRequiresKeyOffLoopback(t *testing.T) {
	for name, tt := range map[string]struct {
		listen string
		cfg    Config
		key    bool
		ok     bool
	}{
		"loopback":     {"127.0.0.1:1", Config{}, false, true},
		"localhost":    {"localhost:1", Config{}, false, true},
		"IPv6":         {"[::1]:1", Config{}, false, true},
		"all":          {"0.0.0.0:1", Config{}, false, false},
		"empty is all": {":8787", Config{}, false, false},
		"no address":   {"nonsense", Config{}, false, false},
		"with a key":   {":8787", Config{}, true, true},
		"in the file":  {":8787", Config{Keys: []KeyConfig{{}}}, false, true},
		"an issuer":    {":8787", Config{JWT: &JWTConfig{}}, false, true},
	} {
		if err := Ready(tt.listen, tt.cfg, tt.key); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// authority is an issuer of tokens.
type authority struct {
	*httptest.Server
	key  *rsa.PrivateKey
	down bool
	odd  string // an issuer to claim instead of its own URL
	path string // of the issuer, as those with several tenants have
	huge bool   // responds with an endless body

	asked atomic.Int64 // how often its keys were fetched
}

func newAuthority(t testing.TB) *authority {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{key: key}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/oauth-authorization-server/", func(w http.ResponseWriter, r *http.Request) {
		a.metadata(w, r.URL.Path)
	})
	mux.HandleFunc("/.well-known/oauth-authorization-server", func(w http.ResponseWriter, r *http.Request) {
		a.metadata(w, r.URL.Path)
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		a.asked.Add(1)
		if a.huge {
			w.Write(bytes.Repeat([]byte(" "), maxIssuerResponse+10))
		}
		json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1", Algorithm: "RS256", Use: "sig"}}})
	})
	a.Server = httptest.NewServer(mux)
	t.Cleanup(a.Close)
	return a
}

func (a *authority) metadata(w http.ResponseWriter, path string) {
	switch {
	case a.down:
		http.Error(w, "down", 500)
		return
	case path != "/.well-known/oauth-authorization-server"+a.path:
		http.Error(w, "no such tenant", 404)
		return
	}
	issuer := a.URL + a.path
	if a.odd != "" {
		issuer = a.odd
	}
	json.NewEncoder(w).Encode(map[string]string{"issuer": issuer, "jwks_uri": a.URL + "/keys"})
}

func (a *authority) token(t testing.TB, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: a.key, KeyID: "1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]any{"iss": a.URL, "aud": "https://junctor.example/mcp", "sub": "alice", "exp": time.Now().Add(time.Hour).Unix()}
	for k, v := range claims {
		if v == nil {
			delete(all, k)
		} else {
			all[k] = v
		}
	}
	raw, err := jwt.Signed(signer).Claims(all).Serialize()
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestJWTValidation(t *testing.T) {
	a := newAuthority(t)
	g := gate(&memory{}, func(o *Options) {
		o.Listen = "10.0.0.1:80"
		o.Config.JWT = &JWTConfig{Issuer: a.URL, Audience: "https://junctor.example/mcp", Scopes: []string{"tools"}, AdminScope: "admin", Rules: []JWTRule{{Scopes: []string{"tools"}}}}
	})
	with := func(claims map[string]any) func(*http.Request) {
		if _, ok := claims["scope"]; !ok {
			claims["scope"] = "tools"
		}
		return set("Authorization", "Bearer "+a.token(t, claims))
	}
	for name, tt := range map[string]struct {
		claims map[string]any
		status int
		caller string
		admin  bool
	}{
		"good":           {map[string]any{}, 200, "alice", false},
		"admin":          {map[string]any{"scope": "tools admin"}, 200, "alice", true},
		"scp list":       {map[string]any{"scope": nil, "scp": []string{"tools"}}, 200, "alice", false},
		"scp text":       {map[string]any{"scope": nil, "scp": "other tools"}, 200, "alice", false},
		"scope list":     {map[string]any{"scope": []string{"tools", "admin"}}, 200, "alice", true},
		"client":         {map[string]any{"sub": nil, "client_id": "svc"}, 200, "svc", false},
		"anonymous":      {map[string]any{"sub": nil}, 401, "", false},
		"named":          {map[string]any{"preferred_username": "Alice A."}, 200, "alice", false},
		"wrong audience": {map[string]any{"aud": "https://other.example"}, 401, "", false},
		"wrong issuer":   {map[string]any{"iss": "https://other.example"}, 401, "", false},
		"expired":        {map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}, 401, "", false},
		"missing scope":  {map[string]any{"scope": "other"}, 403, "", false},
		"odd claims":     {map[string]any{"scope": 7}, 401, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			w, c := ask(g, with(tt.claims))
			if w.Code != tt.status {
				t.Fatalf("status = %d: %s", w.Code, w.Body)
			}
			kind := "sub:"
			if name == "client" { // must not be taken for a person
				kind = "client:"
			}
			if tt.status == 200 && (c.ID != kind+a.URL+"|"+tt.caller || c.Admin != tt.admin) {
				t.Errorf("caller = %+v", c)
			}
			challenge := w.Header().Get("WWW-Authenticate")
			const at = `resource_metadata="https://junctor.example/.well-known/oauth-protected-resource/mcp", scope="tools"`
			if want := map[int]string{401: `Bearer error="invalid_token", ` + at, 403: `Bearer error="insufficient_scope", ` + at}[tt.status]; challenge != want {
				t.Errorf("challenge = %q, want %q", challenge, want)
			}
		})
	}
	if w, _ := ask(g, nil); w.Header().Get("WWW-Authenticate") != `Bearer resource_metadata="https://junctor.example/.well-known/oauth-protected-resource/mcp", scope="tools"` {
		t.Errorf("challenge without credentials = %q", w.Header().Get("WWW-Authenticate"))
	}
	// Tokens with unknown keys do not flood the issuer with requests.
	other := newAuthority(t)
	asked := a.asked.Load()
	for range 50 {
		ask(g, set("Authorization", "Bearer "+other.token(t, map[string]any{"iss": a.URL})))
	}
	if n := a.asked.Load() - asked; n > 1 {
		t.Errorf("its keys were fetched %d times", n)
	}
	forged := other.token(t, map[string]any{"iss": a.URL, "scope": "tools"})
	if w, _ := ask(g, set("Authorization", "Bearer "+forged)); w.Code != 401 {
		t.Errorf("a token with another's signature opens: %d", w.Code)
	}

	w := httptest.NewRecorder()
	g.Metadata(w, httptest.NewRequest("GET", MetadataPath, nil))
	if !strings.Contains(w.Body.String(), a.URL) || !strings.Contains(w.Body.String(), "https://junctor.example/mcp") {
		t.Errorf("metadata = %s", w.Body)
	}
	w = httptest.NewRecorder()
	gate(&memory{}, nil).Metadata(w, httptest.NewRequest("GET", MetadataPath, nil))
	if w.Code != 404 {
		t.Errorf("metadata without an issuer: %d", w.Code)
	}
}

func TestUnreachableIssuer(t *testing.T) {
	a := newAuthority(t)
	cfg := JWTConfig{Issuer: a.URL, Audience: "https://junctor.example/mcp", Rules: []JWTRule{{}}}
	token := a.token(t, nil)
	a.down = true
	i := newIssuer(cfg, nil)
	for range 2 { // the second attempt sends no request
		if _, err := i.verify(t.Context(), token); tool.KindOf(err) != tool.Unavailable {
			t.Fatalf("error = %v", err)
		}
	}
	a.down, a.odd, i.failed = false, "https://other.example", time.Time{}
	if _, err := i.verify(t.Context(), token); tool.KindOf(err) != tool.Unavailable {
		t.Fatalf("metadata of another issuer: %v", err)
	}
	a.odd, i = "", newIssuer(cfg, nil)
	if _, err := i.verify(t.Context(), token); err != nil {
		t.Fatalf("after its return: %v", err)
	}
	direct := newIssuer(JWTConfig{Issuer: a.URL, Audience: cfg.Audience, JWKSURL: a.URL + "/keys", Rules: cfg.Rules}, nil)
	if _, err := direct.verify(t.Context(), token); err != nil {
		t.Errorf("with jwksUrl: %v", err)
	}
	a.path = "/tenant"
	tenant := newIssuer(JWTConfig{Issuer: a.URL + "/tenant", Audience: cfg.Audience, Rules: cfg.Rules}, nil)
	if _, err := tenant.verify(t.Context(), a.token(t, map[string]any{"iss": a.URL + "/tenant"})); err != nil {
		t.Errorf("an issuer with a path: %v", err)
	}
	a.huge = true
	greedy := newIssuer(JWTConfig{Issuer: a.URL, Audience: cfg.Audience, JWKSURL: a.URL + "/keys", Rules: cfg.Rules}, nil)
	if _, err := greedy.verify(t.Context(), token); err == nil {
		t.Error("an answer without end was read")
	}
}

func TestConfigValidate(t *testing.T) {
	bad := Config{
		Loopback: "maybe",
		Keys: []KeyConfig{
			{Name: "a b", Key: "short"},
			{Name: "twice", Key: "long enough but with spaces", Expires: "soon", Rate: &setting.Rate{}},
			{Name: "twice", Key: telemetry.Secret(strings.Repeat("x", 20))},
		},
		JWT: &JWTConfig{Issuer: "ftp://x", JWKSURL: "::"},
	}
	var got []string
	for _, p := range setting.Problems(bad.Validate()) {
		got = append(got, p.Key)
	}
	want := "loopback keys[0].name keys[0].key keys[1].key keys[1].expires keys[1].rate.calls keys[2].name jwt.issuer jwt.jwksUrl jwt.audience"
	if strings.Join(got, " ") != want {
		t.Errorf("problems with %s, want %s", strings.Join(got, " "), want)
	}
	good := KeyConfig{Name: "k", Key: "0123456789abcdef", Expires: "2027-01-31"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	if when, err := good.Expiry(); err != nil || when.Year() != 2027 {
		t.Errorf("Expiry = %s, %v", when, err)
	}
}

// TestRulesChangeWhileRunning removes a key from the file, closes loopback and
// changes the allowed origins.
func TestRulesChangeWhileRunning(t *testing.T) {
	const filed = "a-key-in-the-file-x"
	before := DefaultConfig()
	before.Keys = []KeyConfig{{Name: "filed", Key: filed}}
	before.JWT = &JWTConfig{Issuer: "https://issuer.example", Audience: "https://me.example"}
	page := set("Origin", "https://app.example")
	g := gate(&memory{}, func(o *Options) { o.Config, o.Origins = before, []string{"https://app.example"} })
	if w, c := ask(g, set("X-API-Key", filed)); w.Code != 200 || c.Name != "filed" {
		t.Fatalf("the key: %d", w.Code)
	}
	if w, _ := ask(g, page); w.Code != 200 {
		t.Fatalf("the page: %d", w.Code)
	}
	issuer := g.rules.Load().jwt
	g.SetConfig(before, nil)
	if g.rules.Load().jwt != issuer {
		t.Error("the issuer's keys are forgotten though nothing changed")
	}
	after := DefaultConfig()
	after.Loopback = LoopbackKey
	g.SetConfig(after, nil)
	if w, _ := ask(g, set("X-API-Key", filed)); w.Code != 401 {
		t.Errorf("a key that was taken out: %d", w.Code)
	}
	if w, _ := ask(g, nil); w.Code != 401 {
		t.Errorf("closed loopback: %d", w.Code)
	}
	if w, _ := ask(g, page); w.Code != 403 {
		t.Errorf("a page that may no longer call: %d", w.Code)
	}
	if g.rules.Load().jwt != nil {
		t.Error("tokens of an issuer that was taken out are accepted")
	}
}
