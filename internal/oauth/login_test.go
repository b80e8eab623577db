package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"junctor/internal/address/addresstest"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

func TestLoginWithConsent(t *testing.T) {
	w := newWorld(t)
	r := newFixture(t, w)
	_, err := r.call()
	address := urlIn(t, err)
	q, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]string{
		"response_type": "code", "client_id": "client-1", "redirect_uri": "http://127.0.0.1:8787/oauth/callback",
		"code_challenge_method": "S256", "resource": w.url, "tenant": "1", "scope": "",
	} {
		if got := q.Query().Get(key); got != want {
			t.Errorf("%s = %q, want %q", key, got, want)
		}
	}
	if _, err := r.call(); urlIn(t, err) != address {
		t.Error("a second call offers another login while the first one waits")
	}
	reg := w.registered[0]
	if fmt.Sprint(reg["redirect_uris"]) != "[http://127.0.0.1:8787/oauth/callback]" || reg["application_type"] != "native" ||
		fmt.Sprint(reg["grant_types"]) != "[authorization_code refresh_token]" || reg["token_endpoint_auth_method"] != "none" {
		t.Errorf("registered with %v", reg)
	}
	back := visit(t, address)
	if _, err := r.Complete(t.Context(), back); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.in, []string{"jira"}) {
		t.Errorf("told of logins to %v", r.in)
	}
	if status, err := r.call(); status != 200 || err != nil {
		t.Fatalf("call = %d, %v", status, err)
	}
	if _, err := r.Complete(t.Context(), back); tool.KindOf(err) != tool.InvalidRequest {
		t.Errorf("an answer was taken twice: %v", err)
	}
	info := r.Info(t.Context(), "jira", tool.Local.ID)
	if !info.HasToken || time.Since(info.Since) > time.Minute {
		t.Errorf("info = %+v", info)
	}
	// Another process finds the login, and the stored data reveals none of its
	// secrets.
	if status, err := call(as(t, tool.Local), r.another(), *r.cfg); status != 200 || err != nil {
		t.Errorf("another process: %d, %v", status, err)
	}
	rec := r.kept()
	values, err := r.store.Values(t.Context(), "")
	if err != nil || len(values) < 2 {
		t.Fatalf("values = %d, %v", len(values), err)
	}
	for _, v := range values {
		for _, secret := range rec.secrets() {
			if strings.Contains(string(v.Data), secret.Reveal()) {
				t.Errorf("%s/%s shows a secret", v.Space, v.Name)
			}
		}
	}
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if s := fmt.Sprintf(format, rec); s != telemetry.Redacted {
			t.Errorf("%s of a login shows %s", format, s)
		}
	}
	if got := r.opts.Redactor.String("x " + rec.Access + " " + rec.Refresh); strings.Contains(got, rec.Access) || strings.Contains(got, rec.Refresh) {
		t.Errorf("the redactor does not know the tokens: %s", got)
	}
	// The name now refers to another server: the token is not sent to it.
	r.cfg.URL += "?x=1"
	if info := r.Info(t.Context(), "jira", tool.Local.ID); info.HasToken {
		t.Error("a login is used for another address")
	}
}

func TestClientRegistrationIsReused(t *testing.T) {
	w := newWorld(t)
	w.meta = map[string]any{"token_endpoint_auth_methods_supported": []string{"client_secret_post"}}
	w.secret = "registered-secret"
	r := newFixture(t, w)
	r.login()
	if w.lastToken.Get("client_secret") != w.secret || w.basic != "" {
		t.Errorf("the client was not authenticated by post: %v %q", w.lastToken, w.basic)
	}
	if was, err := r.Logout(t.Context(), jira); !was || err != nil {
		t.Errorf("Logout = %v, %v", was, err)
	}
	if len(w.revoked) != 2 {
		t.Errorf("revoked %d tokens", len(w.revoked))
	}
	if was, err := r.Logout(t.Context(), jira); was || err != nil {
		t.Errorf("a second Logout = %v, %v", was, err)
	}
	r.login()
	if len(w.registered) != 1 {
		t.Errorf("registered %d times", len(w.registered))
	}
	// The authorization server has deleted the client: the next login
	// registers again.
	w.do(func() {
		w.fail = func(rw http.ResponseWriter, _ *http.Request) bool {
			reply(rw, 401, map[string]any{"error": "invalid_client"})
			return true
		}
	})
	r.age(2 * time.Hour)
	_, err := r.call()
	urlIn(t, err)
	w.do(func() { w.fail = nil })
	if len(w.registered) != 2 {
		t.Errorf("registered %d times after the client was forgotten", len(w.registered))
	}
}

func TestConfiguredClient(t *testing.T) {
	w := newWorld(t)
	w.meta = map[string]any{"client_id_metadata_document_supported": true}
	r := newFixture(t, w)
	r.cfg.OAuth = &upstream.OAuth{ClientID: "my id", ClientSecret: "my secret", ClientMetadataURL: "https://me.example/c.json", Scopes: []string{"a", "b"}}
	r.login()
	req := http.Request{Header: http.Header{"Authorization": {w.basic}}}
	if id, secret, ok := req.BasicAuth(); !ok || id != "my+id" || secret != "my+secret" {
		t.Errorf("authenticated as %q %q", id, secret)
	}
	if w.lastAuth.Get("scope") != "a b" || len(w.registered) != 0 {
		t.Errorf("scope %q, registrations %d", w.lastAuth.Get("scope"), len(w.registered))
	}
	r.cfg.OAuth = &upstream.OAuth{ClientMetadataURL: "https://me.example/c.json"}
	if _, err := r.Logout(t.Context(), jira); err != nil {
		t.Fatal(err)
	}
	r.login()
	if w.lastAuth.Get("client_id") != "https://me.example/c.json" || len(w.registered) != 0 {
		t.Errorf("client id %q", w.lastAuth.Get("client_id"))
	}
}

// TestConfiguredClientStaysWithItsIssuer checks that a client secret is not
// sent to another authorization server that the upstream starts to name.
func TestConfiguredClientStaysWithItsIssuer(t *testing.T) {
	w, evil := newWorld(t), newWorld(t)
	r := newFixture(t, w)
	r.cfg.OAuth = &upstream.OAuth{ClientID: "id", ClientSecret: "my secret"}
	r.login()
	w.do(func() {
		w.prm = map[string]any{"authorization_servers": []string{evil.as.URL}}
		clear(w.access)
		clear(w.refresh)
	})
	_, err := r.call()
	if tool.KindOf(err) != tool.UpstreamFailed || !strings.Contains(err.Error(), "oauth.issuer") {
		t.Errorf("error = %v", err)
	}
	r.cfg.OAuth.Issuer = w.as.URL
	if _, err := r.call(); tool.KindOf(err) != tool.UpstreamFailed || !strings.Contains(err.Error(), "oauth.issuer") {
		t.Errorf("with another issuer configured: %v", err)
	}
	if evil.grants != 0 || evil.lastAuth != nil {
		t.Error("the other authorization server was asked")
	}
}

func TestInvalidCallbacksAreRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		set  func(*world)
		with func(url.Values)
		kind tool.Kind
	}{
		"another issuer":    {set: func(w *world) { w.iss = "https://evil.example" }, kind: tool.InvalidRequest},
		"nearly the issuer": {set: func(w *world) { w.iss = w.as.URL + "/" }, kind: tool.InvalidRequest},
		"no issuer, announced": {set: func(w *world) {
			w.iss = "-"
			w.meta = map[string]any{"authorization_response_iss_parameter_supported": true}
		}, kind: tool.InvalidRequest},
		"no state":           {with: func(q url.Values) { q.Del("state") }, kind: tool.InvalidRequest},
		"another state":      {with: func(q url.Values) { q.Set("state", strings.Repeat("A", 52)) }, kind: tool.InvalidRequest},
		"a strange state":    {with: func(q url.Values) { q.Set("state", "\x00\n") }, kind: tool.InvalidRequest},
		"no code":            {with: func(q url.Values) { q.Del("code") }, kind: tool.InvalidRequest},
		"another code":       {with: func(q url.Values) { q.Set("code", "stolen") }, kind: tool.UpstreamFailed},
		"refused":            {with: func(q url.Values) { q.Set("error", "access_denied") }, kind: tool.Denied},
		"refused by another": {with: func(q url.Values) { q.Set("error", "access_denied"); q.Set("iss", "https://evil.example") }, kind: tool.InvalidRequest},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			if tt.set != nil {
				tt.set(w)
			}
			r := newFixture(t, w)
			_, err := r.call()
			q := visit(t, urlIn(t, err))
			if tt.with != nil {
				tt.with(q)
			}
			if _, err := r.Complete(t.Context(), q); tool.KindOf(err) != tt.kind {
				t.Errorf("Complete: %v, want %s", err, tt.kind)
			}
			if len(r.in) != 0 || r.kept() != nil {
				t.Error("there is a login")
			}
			if name != "another code" && w.lastToken != nil {
				t.Error("the code was sent to the token endpoint")
			}
		})
	}
}

func TestUnadvertisedIssuerIsChecked(t *testing.T) {
	w := newWorld(t)
	r := newFixture(t, w)
	r.login() // the world sends iss without announcing it
	w.do(func() { w.iss = "-" })
	if _, err := r.Logout(t.Context(), jira); err != nil {
		t.Fatal(err)
	}
	r.login()
}

func TestLegacyServers(t *testing.T) {
	w := newWorld(t)
	w.noPRM = true
	// The server is its own authorization server, with and without metadata.
	r := newFixture(t, w)
	r.cfg.URL = w.as.URL + "/mcp"
	w.url = r.cfg.URL
	address, err := r.Begin(as(t, tool.Local), "jira")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Complete(t.Context(), visit(t, address)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Logout(t.Context(), jira); err != nil {
		t.Fatal(err)
	}
	w.do(func() { w.metaPath = "/nowhere" })
	if address, err = r.Begin(as(t, tool.Local), "jira"); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Complete(t.Context(), visit(t, address)); err != nil {
		t.Fatal(err)
	}
	if len(w.registered) != 2 {
		t.Errorf("registered %d times", len(w.registered))
	}
}

func TestLoginErrorsExplainCause(t *testing.T) {
	for name, tt := range map[string]struct {
		set  func(*world, *upstream.Config)
		kind tool.Kind
		says string
	}{
		"no OAuth at all":  {func(w *world, _ *upstream.Config) { w.noPRM = true }, tool.UpstreamAuthRequired, "authorization_token"},
		"another resource": {func(w *world, _ *upstream.Config) { w.prm = map[string]any{"resource": "https://evil.example/mcp"} }, tool.UpstreamFailed, "different server"},
		"no metadata":      {func(w *world, _ *upstream.Config) { w.metaPath = "/x" }, tool.UpstreamFailed, "no metadata"},
		"another issuer":   {func(w *world, _ *upstream.Config) { w.meta = map[string]any{"issuer": "https://evil.example"} }, tool.UpstreamFailed, "different issuer"},
		"no PKCE": {func(w *world, _ *upstream.Config) {
			w.meta = map[string]any{"code_challenge_methods_supported": []string{"plain"}}
		}, tool.UpstreamFailed, "PKCE"},
		"no registration":   {func(w *world, _ *upstream.Config) { w.meta = map[string]any{"registration_endpoint": nil} }, tool.UpstreamFailed, "oauth.clientId"},
		"no authorization":  {func(w *world, _ *upstream.Config) { w.meta = map[string]any{"authorization_endpoint": nil} }, tool.UpstreamFailed, "client_credentials"},
		"no token endpoint": {func(w *world, _ *upstream.Config) { w.meta = map[string]any{"token_endpoint": nil} }, tool.UpstreamFailed, "token endpoint"},
		"a script as address": {func(w *world, _ *upstream.Config) {
			w.meta = map[string]any{"authorization_endpoint": "javascript:alert(1)"}
		}, tool.UpstreamFailed, "must be an http or https URL"},
		"metadata are no JSON": {func(w *world, _ *upstream.Config) { w.meta = map[string]any{"scopes_supported": 7} }, tool.UpstreamFailed, "cannot be read"},
		"prm is broken":        {func(w *world, _ *upstream.Config) { w.prm = map[string]any{"authorization_servers": "x"} }, tool.UpstreamFailed, "cannot be read"},
		"an odd method": {func(w *world, _ *upstream.Config) {
			w.meta = map[string]any{"registration_endpoint": w.rs.URL + "/.well-known/oauth-protected-resource"}
		}, tool.UpstreamFailed, "registration"},
		"registration elsewhere": {func(w *world, _ *upstream.Config) {
			w.meta = map[string]any{"registration_endpoint": w.as.URL + "/nope"}
		}, tool.UpstreamFailed, "manually"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := newFixture(t, w)
			tt.set(w, r.cfg)
			_, err := r.call()
			e := tool.AsError(err)
			if err == nil || e.Kind != tt.kind || !strings.Contains(e.Msg, tt.says) {
				t.Errorf("error = %v", err)
			}
			if e.Details != nil {
				t.Errorf("there is an address to open: %v", e.Details)
			}
		})
	}
}

func TestEndpointsConfiguredByHand(t *testing.T) {
	w := newWorld(t)
	w.noPRM, w.metaPath, w.iss = true, "/nowhere", "-"
	r := newFixture(t, w)
	r.cfg.OAuth = &upstream.OAuth{ClientID: "me", AuthorizationURL: w.as.URL + "/authorize", TokenURL: w.as.URL + "/token"}
	r.login()
}

func TestBeginAndFind(t *testing.T) {
	w := newWorld(t)
	r := newFixture(t, w)
	for name, tt := range map[string]struct {
		server string
		set    func()
		kind   tool.Kind
	}{
		"unknown":      {"nope", func() {}, tool.ServerNotFound},
		"a program":    {"jira", func() { r.cfg.URL, r.cfg.Command = "", "x" }, tool.InvalidRequest},
		"static token": {"jira", func() { r.cfg.AuthorizationToken = "tok" }, tool.InvalidRequest},
		"header":       {"jira", func() { r.cfg.Headers = map[string]telemetry.Secret{"authorization": "tok"} }, tool.InvalidRequest},
		"down":         {"jira", func() { r.cfg.URL = "http://127.0.0.1:1/mcp" }, tool.UpstreamFailed},
	} {
		t.Run(name, func(t *testing.T) {
			before := *r.cfg
			defer func() { *r.cfg = before }()
			tt.set()
			if _, err := r.Begin(as(t, tool.Local), tt.server); tool.KindOf(err) != tt.kind {
				t.Errorf("Begin: %v, want %s", err, tt.kind)
			}
		})
	}
	// A server that requires no login and publishes nothing.
	open := newWorld(t)
	open.noPRM = true
	r.cfg.URL = open.rs.URL + "/elsewhere"
	if _, err := r.Begin(as(t, tool.Local), "jira"); tool.KindOf(err) != tool.InvalidRequest {
		t.Errorf("Begin: %v", err)
	}
	if err := r.Authorize(t.Context(), upstream.Login{Server: "nobody"}, &http.Request{Header: http.Header{}}, nil); err != nil {
		t.Errorf("Authorize for an unknown server: %v", err)
	}
}

// TestLoginWithOwnListener checks that a process without a redirect URI opens
// a listener, on the port of the last registration.
func TestLoginWithOwnListener(t *testing.T) {
	w := newWorld(t)
	r := newFixture(t, w)
	var redirects []string
	for range 2 {
		s := r.another()
		s.SetCallback("")
		ctx, cancel := context.WithTimeout(as(t, tool.Local), time.Minute)
		err := s.Login(ctx, "jira", func(address string) {
			u, _ := url.Parse(address)
			redirects = append(redirects, u.Query().Get("redirect_uri"))
			resp, err := http.Get(address) // follows the redirect to the listener
			if err != nil || resp.StatusCode != 200 {
				t.Errorf("the browser ends with %v, %v", resp, err)
				return
			}
			resp.Body.Close()
		})
		cancel()
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
	}
	if redirects[0] != redirects[1] || len(w.registered) != 1 {
		t.Errorf("redirects %v, %d registrations", redirects, len(w.registered))
	}
	// If the port is taken, another port is registered.
	u, _ := url.Parse(redirects[0])
	blocker, err := r.listen(u.Host)
	if err != nil {
		t.Fatal(err)
	}
	defer blocker.close()
	s := r.another()
	s.SetCallback("")
	if _, err := s.Begin(as(t, tool.Local), "jira"); err != nil || len(w.registered) != 2 {
		t.Errorf("Begin: %v, %d registrations", err, len(w.registered))
	}
	// The user does not complete the sign-in.
	ctx, cancel := context.WithCancel(as(t, tool.Local))
	err = s.Login(ctx, "jira", func(string) { cancel() })
	if tool.KindOf(err) != tool.Timeout {
		t.Errorf("Login: %v", err)
	}
	// Configured redirect URIs.
	for redirect, want := range map[string]string{
		"http://localhost:0/cb":  "http://localhost:",
		"https://me.example/cb":  "https://me.example/cb",
		"http://127.0.0.1/other": "http://127.0.0.1:",
		"http://127.0.0.1":       "http://127.0.0.1:", // without a path
		"http://127.0.0.1/{a":    "http://127.0.0.1:",
	} {
		s := r.another()
		s.SetCallback("")
		got, err := s.redirect(t.Context(), upstream.Config{OAuth: &upstream.OAuth{RedirectURI: redirect}}, "x")
		if err != nil || !strings.HasPrefix(got, want) {
			t.Errorf("redirect for %s = %q, %v", redirect, got, err)
		}
		s.Close()
	}
}

// Sign-ins with the same port share a listener, and it stays open while other
// sign-ins open theirs.
func TestListenersOfPendingSignIns(t *testing.T) {
	s := newFixture(t, newWorld(t)).another()
	s.SetCallback("")
	t.Cleanup(s.Close)
	fixed := &upstream.OAuth{CallbackPort: addresstest.UnusedPort(t)}
	var redirects []string
	for _, own := range []*upstream.OAuth{
		fixed, nil, {RedirectURI: "http://127.0.0.1/other"}, fixed, nil,
		{RedirectURI: fmt.Sprintf("http://localhost:%d/of/another/server", fixed.CallbackPort)},
	} {
		redirect, err := s.redirect(t.Context(), upstream.Config{OAuth: own}, "x")
		if err != nil {
			t.Fatal(err)
		}
		redirects = append(redirects, redirect)
	}
	if redirects[0] != redirects[3] || redirects[1] != redirects[4] || !strings.HasSuffix(redirects[5], "/of/another/server") {
		t.Errorf("redirects %q", redirects)
	}
	// Request by number the port that another sign-in was assigned.
	again, err := s.redirect(t.Context(), upstream.Config{OAuth: &upstream.OAuth{RedirectURI: redirects[1]}}, "x")
	if err != nil || again != redirects[1] {
		t.Errorf("redirect for %s = %q, %v", redirects[1], again, err)
	}
	for _, redirect := range redirects {
		for suffix, want := range map[string]int{"": http.StatusBadRequest, "/elsewhere": http.StatusNotFound} {
			resp, err := http.Get(redirect + suffix)
			if err != nil {
				t.Errorf("the callback of a pending sign-in: %v", err)
				continue
			}
			resp.Body.Close()
			if resp.StatusCode != want {
				t.Errorf("GET %s: %d, want %d", redirect+suffix, resp.StatusCode, want)
			}
		}
	}
	s.Close()
	if _, err := s.redirect(t.Context(), upstream.Config{OAuth: &upstream.OAuth{RedirectURI: "http://127.0.0.1/late"}}, "x"); !errors.Is(err, errStopping) {
		t.Errorf("after Close: %v", err)
	}
}
