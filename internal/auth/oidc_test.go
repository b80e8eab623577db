package auth

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"junctor/internal/store"
)

// provider is an OpenID provider. It signs in the person named in next.
type provider struct {
	*httptest.Server
	key *rsa.PrivateKey

	mu     sync.Mutex
	next   string                // who signs in
	claims map[string]Claims     // by person
	codes  map[string]url.Values // the request, by code
	spoil  func(idToken, userInfo map[string]any)
}

func startProvider(t *testing.T) *provider {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	p := &provider{key: key, codes: map[string]url.Values{}, claims: map[string]Claims{}}
	mux := http.NewServeMux()
	reply := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, map[string]any{
			"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/jwks",
			"userinfo_endpoint": p.URL + "/userinfo", "id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("/jwks", func(w http.ResponseWriter, _ *http.Request) {
		reply(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1", Algorithm: "RS256", Use: "sig"}}})
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		p.mu.Lock()
		code := p.next + "-" + rand.Text()
		p.codes[code] = q
		p.mu.Unlock()
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {p.URL}}.Encode(), http.StatusSeeOther)
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		code := r.FormValue("code")
		q, ok := p.codes[code]
		delete(p.codes, code)
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		user, secret, _ := r.BasicAuth()
		if !ok || base64.RawURLEncoding.EncodeToString(sum[:]) != q.Get("code_challenge") || q.Get("code_challenge_method") != "S256" || user != "page" || secret != "s3cret" {
			w.WriteHeader(http.StatusBadRequest)
			reply(w, map[string]any{"error": "invalid_grant"})
			return
		}
		person, _, _ := strings.Cut(code, "-")
		id := map[string]any{"iss": p.URL, "aud": "page", "sub": person, "nonce": q.Get("nonce"), "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix()}
		if p.spoil != nil {
			p.spoil(id, nil)
		}
		signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: key, KeyID: "1"}}, nil)
		if err != nil {
			t.Error(err)
			return
		}
		raw, err := jwt.Signed(signer).Claims(id).Serialize()
		if err != nil {
			t.Error(err)
			return
		}
		reply(w, map[string]any{"access_token": person, "token_type": "Bearer", "id_token": raw})
	})
	mux.HandleFunc("/userinfo", func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		person := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		info := map[string]any{"sub": person}
		for k, v := range p.claims[person] {
			info[k] = v
		}
		if p.spoil != nil {
			p.spoil(nil, info)
		}
		reply(w, info)
	})
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

// guarded is a gate in front of a page.
type guarded struct {
	*httptest.Server
	gate *Gate
	cfg  Config
}

func startGuarded(t *testing.T, p *provider) *guarded {
	t.Helper()
	g := &guarded{cfg: Config{Loopback: LoopbackKey, OIDC: &OIDCConfig{
		Issuer: p.URL, ClientID: "page", ClientSecret: "s3cret", Name: "Example",
		Rules: []JWTRule{{Claims: map[string][]string{"groups": {"eng-*"}}, Servers: []string{"git"}}, {Claims: map[string][]string{"email": {"*@example.com"}}, Admin: true}},
	}}}
	if err := g.cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	g.gate = NewGate(Options{
		Config: g.cfg, Listen: "127.0.0.1:1", Keys: noKeys{}, Sessions: &values{}, Log: slog.New(slog.DiscardHandler),
		Public: func(r *http.Request) bool {
			return r.URL.Path == "/" || r.URL.Path == "/api/session" || strings.HasPrefix(r.URL.Path, "/api/oidc/")
		},
	})
	mux := http.NewServeMux()
	g.gate.Routes(mux)
	mux.HandleFunc("/whoami", func(w http.ResponseWriter, r *http.Request) {
		c := identityFrom(r.Context()).caller
		fmt.Fprintf(w, "%s %s admin=%v %v", c.ID, c.Name, c.Admin, c.Servers)
	})
	mux.HandleFunc("/{$}", func(http.ResponseWriter, *http.Request) {})
	g.Server = httptest.NewServer(g.gate.Wrap(mux))
	t.Cleanup(g.Close)
	return g
}

type noKeys struct{ KeyStore }

func (noKeys) KeyByHash(_ context.Context, _ []byte) (store.Key, error) {
	return store.Key{}, store.ErrNotFound
}

// window is a browser window.
type window struct {
	t       *testing.T
	g       *guarded
	client  *http.Client
	session string
}

func (g *guarded) browser(t *testing.T) *window {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	return &window{t: t, g: g, client: &http.Client{Jar: jar}}
}

func (b *window) do(method, target, body string) (int, string, *url.URL) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(b.t.Context(), method, target, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if b.session != "" {
		req.Header.Set(SessionHeader, b.session)
	}
	res, err := b.client.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return res.StatusCode, string(data), res.Request.URL
}

// visit signs in at the provider and returns the final status, body and URL.
func (b *window) visit(p *provider, person string) (int, string, *url.URL) {
	b.t.Helper()
	p.mu.Lock()
	p.next = person
	p.mu.Unlock()
	return b.do("GET", b.g.URL+OIDCStartPath, "")
}

// redeem makes the page fetch its session.
func (b *window) redeem(ticket string) int {
	b.t.Helper()
	code, body, _ := b.do("POST", b.g.URL+"/api/session", `{"signin":"`+ticket+`"}`)
	var out struct{ Session string }
	if json.Unmarshal([]byte(body), &out) == nil {
		b.session = out.Session
	}
	return code
}

func TestPeopleSignIn(t *testing.T) {
	p := startProvider(t)
	p.claims["ada"] = Claims{"groups": []string{"eng-tools"}, "preferred_username": "Ada"}
	p.claims["bob"] = Claims{"groups": []string{"sales"}, "email": "bob@example.com"} // not verified
	p.claims["eve"] = Claims{"email": "eve@example.com", "email_verified": true}
	g := startGuarded(t, p)
	if _, body, _ := g.browser(t).do("GET", g.URL+"/api/session", ""); !strings.Contains(body, `"oidc":"Example"`) || !strings.Contains(body, `"needsSignIn":true`) {
		t.Errorf("the page does not know of the provider: %s", body)
	}
	for person, want := range map[string]string{
		"ada": "sub:" + p.URL + "|ada Ada admin=false [git]",
		"eve": "sub:" + p.URL + "|eve eve@example.com admin=true []",
		"bob": "",
	} {
		b := g.browser(t)
		code, body, at := b.visit(p, person)
		if want == "" {
			if code != http.StatusForbidden || !strings.Contains(body, "no rule grants you access") {
				t.Errorf("%s: %d %s", person, code, body)
			}
			continue
		}
		ticket := at.Query().Get("signin")
		if code != http.StatusOK || at.Path != "/" || ticket == "" {
			t.Fatalf("%s: %d at %s: %s", person, code, at, body)
		}
		if code := b.redeem(ticket); code != http.StatusOK {
			t.Fatalf("%s gets no session: %d", person, code)
		}
		if code, body, _ := b.do("GET", g.URL+"/whoami", ""); code != http.StatusOK || body != want {
			t.Errorf("%s: %d %s, want %s", person, code, body, want)
		}
		if code, body, _ := b.do("GET", g.URL+"/api/page-sessions", ""); code != http.StatusOK || !strings.Contains(body, `"current":true`) {
			t.Errorf("sessions of %s: %d %s", person, code, body)
		}
		again := b.session
		if code := b.redeem(ticket); code != http.StatusUnauthorized {
			t.Errorf("a ticket opens twice: %d", code)
		}
		b.session = again
		if code, _, _ := b.do("DELETE", g.URL+"/api/session", ""); code != http.StatusNoContent {
			t.Errorf("sign-out: %d", code)
		}
		if code, _, _ := b.do("GET", g.URL+"/whoami", ""); code != http.StatusUnauthorized {
			t.Errorf("after the sign-out: %d", code)
		}
	}
}

func TestSessionOfPersonFollowsRules(t *testing.T) {
	p := startProvider(t)
	p.claims["ada"] = Claims{"groups": []string{"eng-tools"}}
	g := startGuarded(t, p)
	b := g.browser(t)
	_, _, at := b.visit(p, "ada")
	if code := b.redeem(at.Query().Get("signin")); code != http.StatusOK {
		t.Fatal(code)
	}
	apply := func(rules []JWTRule) {
		cfg, changed := g.cfg, *g.cfg.OIDC
		cfg.OIDC, changed.Rules = &changed, rules
		g.gate.SetConfig(cfg, nil)
	}
	apply([]JWTRule{{Claims: map[string][]string{"groups": {"eng-*"}}, Servers: []string{"db"}}})
	if _, body, _ := b.do("GET", g.URL+"/whoami", ""); !strings.HasSuffix(body, "[db]") {
		t.Errorf("after a change of the rules: %s", body)
	}
	apply([]JWTRule{})
	if code, _, _ := b.do("GET", g.URL+"/whoami", ""); code != http.StatusUnauthorized {
		t.Errorf("without a rule: %d", code)
	}
	g.gate.SetConfig(Config{Loopback: LoopbackKey}, nil)
	if code, _, _ := b.do("GET", g.URL+"/whoami", ""); code != http.StatusUnauthorized {
		t.Errorf("without the provider: %d", code)
	}
}

func TestForeignAndForgedSignInsAreRefused(t *testing.T) {
	p := startProvider(t)
	p.claims["ada"] = Claims{"groups": []string{"eng-tools"}}
	g := startGuarded(t, p)

	// A sign-in of one browser is not completed in another.
	mallory, victim := g.browser(t), g.browser(t)
	_, _, at := mallory.visit(p, "ada")
	if code := victim.redeem(at.Query().Get("signin")); code != http.StatusUnauthorized {
		t.Errorf("another's ticket: %d", code)
	}
	mallory.client.CheckRedirect = func(r *http.Request, _ []*http.Request) error {
		if r.URL.Path == OIDCCallbackPath {
			return http.ErrUseLastResponse
		}
		return nil
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", g.URL+OIDCStartPath, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := mallory.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	callback := res.Header.Get("Location")
	if code, body, _ := victim.do("GET", callback, ""); code != http.StatusUnauthorized || !strings.Contains(body, "not started in this browser") {
		t.Errorf("another's callback: %d %s", code, body)
	}
	_, _, _ = victim.visit(p, "ada") // leaves a cookie in the victim's browser
	if code, _, _ := victim.do("GET", callback, ""); code != http.StatusUnauthorized {
		t.Errorf("another's callback, with a sign-in of its own: %d", code)
	}

	for name, spoil := range map[string]func(id, info map[string]any){
		"another nonce":           func(id, _ map[string]any) { setClaim(id, "nonce", "x") },
		"another audience":        func(id, _ map[string]any) { setClaim(id, "aud", "other") },
		"another issuer":          func(id, _ map[string]any) { setClaim(id, "iss", "https://other.example") },
		"expired":                 func(id, _ map[string]any) { setClaim(id, "exp", time.Now().Add(-time.Hour).Unix()) },
		"claims of somebody else": func(_, info map[string]any) { setClaim(info, "sub", "eve") },
		"no subject":              func(id, _ map[string]any) { setClaim(id, "sub", "") },
	} {
		p.mu.Lock()
		p.spoil = spoil
		p.mu.Unlock()
		if code, body, _ := g.browser(t).visit(p, "ada"); code != http.StatusUnauthorized || !strings.Contains(body, "could not be completed") {
			t.Errorf("%s: %d %s", name, code, body)
		}
	}
	if code, _, _ := g.browser(t).do("GET", g.URL+OIDCCallbackPath+"?error=access_denied&state=x", ""); code != http.StatusUnauthorized {
		t.Errorf("an error without a sign-in: %d", code)
	}
}

func setClaim(claims map[string]any, name string, value any) {
	if claims != nil {
		claims[name] = value
	}
}

func TestOIDCConfigProblems(t *testing.T) {
	err := Config{Loopback: LoopbackOpen, OIDC: &OIDCConfig{Issuer: "x", Scopes: []string{"email"}}}.Validate()
	for _, want := range []string{"oidc.issuer", "oidc.clientId", "oidc.scopes"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	// Rules for tokens of another issuer do not apply to people.
	c := Config{OIDC: &OIDCConfig{Issuer: "https://a.example"}, JWT: &JWTConfig{Issuer: "https://b.example", Rules: []JWTRule{{Admin: true}}}}
	if rules := c.personRules(); len(rules) != 0 {
		t.Errorf("rules of another issuer: %v", rules)
	}
	c.JWT.Issuer = "https://a.example"
	if rules := c.personRules(); len(rules) != 1 {
		t.Errorf("rules of the same issuer: %v", rules)
	}
}
