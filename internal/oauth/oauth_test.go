package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

func TestLogin(t *testing.T) {
	w := newWorld(t)
	r := newRig(t, w)
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
	info := r.Info(t.Context(), "jira")
	if !info.HasToken || time.Since(info.Since) > time.Minute || info.Expires.IsZero() {
		t.Errorf("info = %+v", info)
	}
	// Another process finds the login, and what the store holds shows none of
	// it.
	if status, err := call(t.Context(), r.another(), *r.cfg); status != 200 || err != nil {
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
	// The name comes to mean another server: no token for it.
	r.cfg.URL += "?x=1"
	if info := r.Info(t.Context(), "jira"); info.HasToken {
		t.Error("a login is used for another address")
	}
}

func TestRegistrationIsKept(t *testing.T) {
	w := newWorld(t)
	w.meta = map[string]any{"token_endpoint_auth_methods_supported": []string{"client_secret_post"}}
	w.secret = "registered-secret"
	r := newRig(t, w)
	r.login()
	if w.lastToken.Get("client_secret") != w.secret || w.basic != "" {
		t.Errorf("the client was not authenticated by post: %v %q", w.lastToken, w.basic)
	}
	if was, err := r.Logout(t.Context(), "jira"); !was || err != nil {
		t.Errorf("Logout = %v, %v", was, err)
	}
	if len(w.revoked) != 2 {
		t.Errorf("revoked %d tokens", len(w.revoked))
	}
	if was, err := r.Logout(t.Context(), "jira"); was || err != nil {
		t.Errorf("a second Logout = %v, %v", was, err)
	}
	r.login()
	if len(w.registered) != 1 {
		t.Errorf("registered %d times", len(w.registered))
	}
	// The authorization server forgot the client: the next login registers.
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
	r := newRig(t, w)
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
	if _, err := r.Logout(t.Context(), "jira"); err != nil {
		t.Fatal(err)
	}
	r.login()
	if w.lastAuth.Get("client_id") != "https://me.example/c.json" || len(w.registered) != 0 {
		t.Errorf("client id %q", w.lastAuth.Get("client_id"))
	}
}

// TestConfiguredClientStaysWithItsIssuer keeps a secret from a server that
// comes to name another authorization server.
func TestConfiguredClientStaysWithItsIssuer(t *testing.T) {
	w, evil := newWorld(t), newWorld(t)
	r := newRig(t, w)
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

func TestAnswersThatAreRefused(t *testing.T) {
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
			r := newRig(t, w)
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

func TestAnUnadvertisedIssuerIsCompared(t *testing.T) {
	w := newWorld(t)
	r := newRig(t, w)
	r.login() // the world sends iss and does not announce it
	w.do(func() { w.iss = "-" })
	if _, err := r.Logout(t.Context(), "jira"); err != nil {
		t.Fatal(err)
	}
	r.login()
}

// TestExpiry is the moment of expiry under load, in two processes that share
// a store: one refresh, and nobody notices.
func TestExpiry(t *testing.T) {
	w := newWorld(t)
	r := newRig(t, w)
	r.login()
	second := r.another()
	if status, err := call(t.Context(), second, *r.cfg); status != 200 || err != nil {
		t.Fatalf("second process: %d %v", status, err)
	}
	for round := range 5 {
		w.do(func() { clear(w.access) }) // they have ended over there too
		r.age(2*time.Hour, second)
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				s := r.Service
				if i%2 == 1 {
					s = second
				}
				if status, err := call(t.Context(), s, *r.cfg); status != 200 || err != nil {
					t.Errorf("call %d: %d, %v", i, status, err)
				}
			})
		}
		wg.Wait()
		if w.refreshes != round+1 || w.replays != 0 {
			t.Fatalf("round %d: %d refreshes, %d replays", round, w.refreshes, w.replays)
		}
	}
}

// TestRefusedAtOnce is the same for tokens that the server stops accepting
// before they end: everybody gets a 401 with the same token.
func TestRefusedAtOnce(t *testing.T) {
	w := newWorld(t)
	r := newRig(t, w)
	r.login()
	second := r.another()
	w.do(func() { clear(w.access) })
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			s := r.Service
			if i%2 == 1 {
				s = second
			}
			if status, err := call(t.Context(), s, *r.cfg); status != 200 || err != nil {
				t.Errorf("call %d: %d, %v", i, status, err)
			}
		})
	}
	wg.Wait()
	if w.refreshes != 1 || w.replays != 0 {
		t.Errorf("%d refreshes, %d replays", w.refreshes, w.replays)
	}
}

func TestDueTokensAreRenewedInTheBackground(t *testing.T) {
	w := newWorld(t)
	r := newRig(t, w)
	r.login()
	r.age(47 * time.Minute) // of 60: not due yet
	if status, err := r.call(); status != 200 || err != nil || r.state("jira").flight != nil {
		t.Fatalf("at 78 %%: %d, %v", status, err)
	}
	r.age(2 * time.Minute)
	hold := make(chan struct{})
	w.do(func() {
		w.fail = func(http.ResponseWriter, *http.Request) bool { w.mu.Unlock(); <-hold; w.mu.Lock(); return false }
	})
	old := r.kept().Access
	if status, err := r.call(); status != 200 || err != nil {
		t.Fatalf("call = %d, %v: it waited for the renewal", status, err)
	}
	st := r.state("jira")
	st.mu.Lock()
	f := st.flight
	st.mu.Unlock()
	if f == nil {
		t.Fatal("no renewal under way at 82 %")
	}
	close(hold)
	<-f.done
	if f.err != nil || r.kept().Access == old || w.refreshes != 1 || w.lastToken.Get("resource") != w.url {
		t.Errorf("renewal: %v, %d refreshes with %v", f.err, w.refreshes, w.lastToken)
	}
	// Nobody calls: Run does it.
	w.do(func() { w.fail = nil })
	r.age(50 * time.Minute)
	if _, err := r.known(t.Context(), *r.cfg, st, true); err != nil {
		t.Fatal(err)
	}
	r.renewDue(t.Context())
	r.work.Wait()
	if w.refreshes != 2 {
		t.Errorf("%d refreshes", w.refreshes)
	}
}

func TestNetworkDownIsNoLostLogin(t *testing.T) {
	w := newWorld(t)
	r := newRig(t, w)
	r.login()
	for name, fail := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"503": func(rw http.ResponseWriter, _ *http.Request) bool { rw.WriteHeader(503); return true },
		"429": func(rw http.ResponseWriter, _ *http.Request) bool {
			reply(rw, 429, map[string]any{"error": "slow_down"})
			return true
		},
		"a proxy's page": func(rw http.ResponseWriter, _ *http.Request) bool { rw.WriteHeader(403); return true },
		"a broken line":  func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) },
		"unavailable": func(rw http.ResponseWriter, _ *http.Request) bool {
			reply(rw, 400, map[string]any{"error": "temporarily_unavailable"})
			return true
		},
		"no JSON": func(rw http.ResponseWriter, _ *http.Request) bool { fmt.Fprint(rw, "<html>"); return true },
		"too much": func(rw http.ResponseWriter, _ *http.Request) bool {
			fmt.Fprint(rw, strings.Repeat(" ", maxAnswer+1))
			return true
		},
		"elsewhere": func(rw http.ResponseWriter, q *http.Request) bool {
			http.Redirect(rw, q, "/token2", http.StatusTemporaryRedirect)
			return true
		},
	} {
		t.Run(name, func(t *testing.T) {
			w.do(func() { w.fail = fail })
			r.age(55 * time.Minute) // due, still valid
			if status, err := r.call(); status != 200 || err != nil {
				t.Errorf("with a valid token: %d, %v", status, err)
			}
			r.work.Wait()
			r.age(time.Hour) // ended
			_, err := r.call()
			if k := tool.KindOf(err); k != tool.UpstreamFailed {
				t.Errorf("with an ended token: %v", err)
			}
			st := r.state("jira")
			st.mu.Lock()
			if !st.retryAt.After(time.Now()) {
				t.Error("the next call would try at once")
			}
			st.retryAt = time.Time{} // as if that time were over
			st.mu.Unlock()
			w.do(func() { w.fail = nil })
			if status, err := r.call(); status != 200 || err != nil {
				t.Errorf("after the network is back: %d, %v", status, err)
			}
		})
	}
	if w.replays != 0 {
		t.Errorf("%d replays", w.replays)
	}
	// Both servers down: the network's own error, and no request for consent.
	w.as.Close()
	r.age(2 * time.Hour)
	if _, err := r.call(); tool.KindOf(err) != tool.UpstreamFailed {
		t.Errorf("error = %v", err)
	}
	if r.kept().Refresh == "" {
		t.Error("the login is gone")
	}
}

func TestLostLogin(t *testing.T) {
	w := newWorld(t)
	r := newRig(t, w)
	r.login()
	first := r.kept()
	w.do(func() { clear(w.access); clear(w.refresh) })
	_, err := r.call()
	address := urlIn(t, err)
	if rec := r.kept(); rec == nil || rec.Refresh != "" {
		t.Error("a refresh token that was refused is kept")
	}
	w.do(func() { w.refresh[first.Refresh] = true })
	_, err = r.call() // does not redeem it again
	if urlIn(t, err) != address || w.refreshes != 0 {
		t.Errorf("%d refreshes", w.refreshes)
	}
	if _, err := r.Complete(t.Context(), visit(t, address)); err != nil {
		t.Fatal(err)
	}
	if status, err := r.call(); status != 200 || err != nil {
		t.Errorf("after a new login: %d, %v", status, err)
	}
}

func TestNoRefreshToken(t *testing.T) {
	w := newWorld(t)
	w.noRefresh, w.life = true, 0
	r := newRig(t, w)
	r.login()
	if rec := r.kept(); !rec.Expires.IsZero() || rec.due(time.Now().Add(1000*time.Hour)) {
		t.Error("a token without an end ends")
	}
	w.do(func() { clear(w.access) })
	_, err := r.call()
	urlIn(t, err)
	// One that ends and cannot be renewed is not sent.
	w.do(func() { w.life = 3600 })
	if _, err := r.Complete(t.Context(), visit(t, urlIn(t, err))); err != nil {
		t.Fatal(err)
	}
	r.age(2 * time.Hour)
	_, err = r.call()
	urlIn(t, err)
}

func TestServersThatDoNotRotate(t *testing.T) {
	w := newWorld(t)
	w.keepOld = true
	r := newRig(t, w)
	r.login()
	first := r.kept().Refresh
	for range 3 {
		r.age(2 * time.Hour)
		if status, err := r.call(); status != 200 || err != nil {
			t.Fatalf("call = %d, %v", status, err)
		}
	}
	if r.kept().Refresh != first || w.refreshes != 3 {
		t.Errorf("%d refreshes", w.refreshes)
	}
}

// TestRefusedForGood ends the circle of a server that refuses fresh tokens.
func TestRefusedForGood(t *testing.T) {
	w := newWorld(t)
	r := newRig(t, w)
	r.login()
	forget := func() { w.do(func() { clear(w.access) }) }
	forget()
	if status, err := r.call(); status != 200 || err != nil {
		t.Fatalf("call = %d, %v", status, err)
	}
	forget()
	_, err := r.call() // the token came from a refusal a moment ago
	urlIn(t, err)
	if w.refreshes != 1 {
		t.Errorf("%d refreshes", w.refreshes)
	}
}

func TestStepUp(t *testing.T) {
	w := newWorld(t)
	w.prm = map[string]any{"scopes_supported": []string{"read"}}
	w.meta = map[string]any{"scopes_supported": []string{"read", "write", "offline_access"}}
	r := newRig(t, w)
	r.login()
	if got := w.lastAuth.Get("scope"); got != "read offline_access" || w.lastAuth.Get("prompt") != "consent" {
		t.Errorf("scope %q, prompt %q", got, w.lastAuth.Get("prompt"))
	}
	w.do(func() { w.needs = "write" })
	_, err := r.call()
	q := visit(t, urlIn(t, err))
	if got := w.lastAuth.Get("scope"); got != "read offline_access write" {
		t.Errorf("scope after the step up: %q", got)
	}
	w.do(func() { w.needs = "" })
	if status, err := r.call(); status != 200 || err != nil {
		t.Errorf("what the old login may do while the new one waits: %d, %v", status, err)
	}
	w.do(func() { w.needs = "write" })
	if _, err := r.Complete(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	if status, err := r.call(); status != 200 || err != nil {
		t.Errorf("after the step up: %d, %v", status, err)
	}
	// A server that wants what was granted is not asked for it again.
	rec := r.kept()
	w.do(func() { w.needs, w.access[rec.Access] = "write", "" })
	if _, err := r.call(); tool.KindOf(err) != tool.UpstreamFailed {
		t.Errorf("error = %v", err)
	}
}

func TestClientCredentials(t *testing.T) {
	w := newWorld(t)
	w.meta = map[string]any{"authorization_endpoint": nil, "code_challenge_methods_supported": nil, "grant_types_supported": []string{"client_credentials"}}
	w.noRefresh = true
	r := newRig(t, w)
	r.cfg.OAuth = &upstream.OAuth{ClientID: "robot", ClientSecret: "robot secret", Grant: upstream.ClientCredentials, Scopes: []string{"x"}}
	if status, err := r.call(); status != 200 || err != nil {
		t.Fatalf("call = %d, %v", status, err)
	}
	if w.lastToken.Get("scope") != "x" || w.lastToken.Get("resource") != w.url || w.lastToken.Get("grant_type") != "client_credentials" {
		t.Errorf("asked with %v", w.lastToken)
	}
	r.age(2 * time.Hour)
	w.do(func() { clear(w.access) })
	if status, err := r.call(); status != 200 || err != nil || w.grants != 2 {
		t.Errorf("after the end: %d, %v, %d grants", status, err, w.grants)
	}
	w.do(func() { w.needs = "y" })
	if status, err := r.call(); status != 200 || err != nil || w.lastToken.Get("scope") != "x y" {
		t.Errorf("step up: %d, %v, %v", status, err, w.lastToken)
	}
	w.do(func() {
		clear(w.access)
		w.fail = func(rw http.ResponseWriter, _ *http.Request) bool {
			reply(rw, 401, map[string]any{"error": "invalid_client", "error_description": "robot secret?"})
			return true
		}
	})
	_, err := r.call()
	e := tool.AsError(err)
	if e.Kind != tool.UpstreamAuthRequired || strings.Contains(e.Msg, "secret?") {
		t.Errorf("error = %v", err)
	}
	if address, err := r.Begin(t.Context(), "jira", ""); err == nil {
		t.Errorf("Begin = %q", address)
	}
	w.do(func() { w.fail = nil })
	if address, err := r.Begin(t.Context(), "jira", ""); err != nil || address != "" {
		t.Errorf("Begin = %q, %v", address, err)
	}
}

func TestLegacyServers(t *testing.T) {
	w := newWorld(t)
	w.noPRM = true
	// The server is its own authorization server, with and without metadata.
	r := newRig(t, w)
	r.cfg.URL = w.as.URL + "/mcp"
	w.url = r.cfg.URL
	address, err := r.Begin(t.Context(), "jira", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Complete(t.Context(), visit(t, address)); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Logout(t.Context(), "jira"); err != nil {
		t.Fatal(err)
	}
	w.do(func() { w.metaPath = "/nowhere" })
	if address, err = r.Begin(t.Context(), "jira", ""); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Complete(t.Context(), visit(t, address)); err != nil {
		t.Fatal(err)
	}
	if len(w.registered) != 2 {
		t.Errorf("registered %d times", len(w.registered))
	}
}

func TestWhatCannotBeLoggedInTo(t *testing.T) {
	for name, tt := range map[string]struct {
		set  func(*world, *upstream.Config)
		kind tool.Kind
		says string
	}{
		"no OAuth at all":  {func(w *world, _ *upstream.Config) { w.noPRM = true }, tool.UpstreamAuthRequired, "authorization_token"},
		"another resource": {func(w *world, _ *upstream.Config) { w.prm = map[string]any{"resource": "https://evil.example/mcp"} }, tool.UpstreamFailed, "another server"},
		"no metadata":      {func(w *world, _ *upstream.Config) { w.metaPath = "/x" }, tool.UpstreamFailed, "no metadata"},
		"another issuer":   {func(w *world, _ *upstream.Config) { w.meta = map[string]any{"issuer": "https://evil.example"} }, tool.UpstreamFailed, "another issuer"},
		"no PKCE": {func(w *world, _ *upstream.Config) {
			w.meta = map[string]any{"code_challenge_methods_supported": []string{"plain"}}
		}, tool.UpstreamFailed, "PKCE"},
		"no registration":   {func(w *world, _ *upstream.Config) { w.meta = map[string]any{"registration_endpoint": nil} }, tool.UpstreamFailed, "oauth.clientId"},
		"no authorization":  {func(w *world, _ *upstream.Config) { w.meta = map[string]any{"authorization_endpoint": nil} }, tool.UpstreamFailed, "client_credentials"},
		"no token endpoint": {func(w *world, _ *upstream.Config) { w.meta = map[string]any{"token_endpoint": nil} }, tool.UpstreamFailed, "token endpoint"},
		"a script as address": {func(w *world, _ *upstream.Config) {
			w.meta = map[string]any{"authorization_endpoint": "javascript:alert(1)"}
		}, tool.UpstreamFailed, "no web address"},
		"metadata are no JSON": {func(w *world, _ *upstream.Config) { w.meta = map[string]any{"scopes_supported": 7} }, tool.UpstreamFailed, "cannot be read"},
		"prm is broken":        {func(w *world, _ *upstream.Config) { w.prm = map[string]any{"authorization_servers": "x"} }, tool.UpstreamFailed, "cannot be read"},
		"an odd method": {func(w *world, _ *upstream.Config) {
			w.meta = map[string]any{"registration_endpoint": w.rs.URL + "/.well-known/oauth-protected-resource"}
		}, tool.UpstreamFailed, "registration"},
		"registration elsewhere": {func(w *world, _ *upstream.Config) {
			w.meta = map[string]any{"registration_endpoint": w.as.URL + "/nope"}
		}, tool.UpstreamFailed, "by hand"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := newRig(t, w)
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
	r := newRig(t, w)
	r.cfg.OAuth = &upstream.OAuth{ClientID: "me", AuthorizationURL: w.as.URL + "/authorize", TokenURL: w.as.URL + "/token"}
	r.login()
}

func TestBeginAndFind(t *testing.T) {
	w := newWorld(t)
	r := newRig(t, w)
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
			if _, err := r.Begin(t.Context(), tt.server, ""); tool.KindOf(err) != tt.kind {
				t.Errorf("Begin: %v, want %s", err, tt.kind)
			}
		})
	}
	// A server that asks for nothing and publishes nothing.
	open := newWorld(t)
	open.noPRM = true
	r.cfg.URL = open.rs.URL + "/elsewhere"
	if _, err := r.Begin(t.Context(), "jira", ""); tool.KindOf(err) != tool.InvalidRequest {
		t.Errorf("Begin: %v", err)
	}
	if err := r.Authorize(t.Context(), "nobody", &http.Request{Header: http.Header{}}, nil); err != nil {
		t.Errorf("Authorize for an unknown server: %v", err)
	}
}

// TestLoginHere is a process without a callback: it listens by itself, on the
// port that the last login was registered with.
func TestLoginHere(t *testing.T) {
	w := newWorld(t)
	r := newRig(t, w)
	var redirects []string
	for range 2 {
		s := r.another()
		s.SetCallback("")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		err := s.Login(ctx, "jira", func(address string) {
			u, _ := url.Parse(address)
			redirects = append(redirects, u.Query().Get("redirect_uri"))
			resp, err := http.Get(address) // follows to the listener
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
	// Taken by someone else: another port, and a registration for it.
	u, _ := url.Parse(redirects[0])
	blocker, err := r.listen("127.0.0.1", u.Port(), "/")
	if err != nil {
		t.Fatal(err)
	}
	defer blocker.close()
	s := r.another()
	s.SetCallback("")
	if _, err := s.Begin(t.Context(), "jira", ""); err != nil || len(w.registered) != 2 {
		t.Errorf("Begin: %v, %d registrations", err, len(w.registered))
	}
	// A person who does not come.
	ctx, cancel := context.WithCancel(t.Context())
	err = s.Login(ctx, "jira", func(string) { cancel() })
	if tool.KindOf(err) != tool.Timeout {
		t.Errorf("Login: %v", err)
	}
	// Redirect addresses of the user's own.
	for redirect, want := range map[string]string{
		"http://localhost:0/cb":  "http://localhost:",
		"https://me.example/cb":  "https://me.example/cb",
		"http://127.0.0.1/other": "http://127.0.0.1:",
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

func TestStoreTroubles(t *testing.T) {
	w := newWorld(t)
	r := newRig(t, w)
	r.login()
	broken := &brokenStore{Store: r.store}
	s := r.another()
	s.opts.Store = broken
	if status, err := call(t.Context(), s, *r.cfg); status != 200 || err != nil {
		t.Fatalf("call = %d, %v", status, err)
	}
	st := s.state("jira")
	stale := func() {
		st.mu.Lock()
		defer st.mu.Unlock()
		st.read = time.Now().Add(-time.Hour)
	}
	broken.set(errors.New("disk gone"), nil, nil)
	stale()
	if status, err := call(t.Context(), s, *r.cfg); status != 200 || err != nil {
		t.Errorf("with a store that cannot be read: %d, %v", status, err)
	}
	// A renewed token that cannot be written holds, and is written later.
	broken.set(nil, errors.New("disk full"), nil)
	r.age(2*time.Hour, s)
	if status, err := call(t.Context(), s, *r.cfg); status != 200 || err != nil {
		t.Errorf("with a store that cannot be written: %d, %v", status, err)
	}
	stale()
	if status, err := call(t.Context(), s, *r.cfg); status != 200 || err != nil || w.refreshes != 1 {
		t.Errorf("again: %d, %v, %d refreshes", status, err, w.refreshes)
	}
	broken.set(nil, nil, nil)
	s.renewDue(t.Context())
	if r.kept().Access != st.rec.Access || st.unsaved {
		t.Error("the renewed token was not written")
	}
	// Without a lease nothing is redeemed.
	broken.set(nil, nil, errors.New("no lease"))
	r.age(2*time.Hour, s)
	if _, err := call(t.Context(), s, *r.cfg); tool.KindOf(err) != tool.Unavailable || w.refreshes != 1 {
		t.Errorf("without a lease: %v, %d refreshes", err, w.refreshes)
	}
	// Another key.
	other, err := store.NewSealer(make([]byte, store.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	s = r.another()
	s.opts.Sealer = func() (*store.Sealer, error) { return other, nil }
	if _, err := call(t.Context(), s, *r.cfg); tool.KindOf(err) != tool.UpstreamFailed || !strings.Contains(err.Error(), "JUNCTOR_SECRET_KEY") {
		t.Errorf("with another key: %v", err)
	}
	if address, err := s.Begin(t.Context(), "jira", ""); err != nil || address == "" {
		t.Errorf("a new login with another key: %q, %v", address, err)
	}
	s.opts.Sealer = func() (*store.Sealer, error) { return nil, errors.New("no key") }
	stale()
	if _, err := s.Logout(t.Context(), "jira"); err == nil {
		t.Error("Logout without a key")
	}
}

// TestLogoutWhileRenewing does not bring a login back that was given up.
func TestLogoutWhileRenewing(t *testing.T) {
	w := newWorld(t)
	r := newRig(t, w)
	r.login()
	entered, hold := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.do(func() {
		w.fail = func(http.ResponseWriter, *http.Request) bool {
			w.mu.Unlock()
			once.Do(func() { close(entered) })
			<-hold
			w.mu.Lock()
			return false
		}
	})
	r.age(2 * time.Hour)
	done := make(chan error)
	go func() {
		_, err := r.call()
		done <- err
	}()
	<-entered
	if was, err := r.another().Logout(t.Context(), "jira"); !was || err != nil {
		t.Fatalf("Logout = %v, %v", was, err)
	}
	close(hold)
	urlIn(t, <-done)
	if r.kept() != nil {
		t.Error("the login came back")
	}
}

// brokenStore fails where it is told to.
type brokenStore struct {
	store.Store
	mu                 sync.Mutex
	read, write, lease error
}

func (b *brokenStore) set(read, write, lease error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.read, b.write, b.lease = read, write, lease
}

func (b *brokenStore) errs() (read, write, lease error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.read, b.write, b.lease
}

func (b *brokenStore) Value(ctx context.Context, space, name string) (store.Value, error) {
	if err, _, _ := b.errs(); err != nil {
		return store.Value{}, err
	}
	return b.Store.Value(ctx, space, name)
}

func (b *brokenStore) PutValue(ctx context.Context, v store.Value, ifVersion int64) (store.Value, error) {
	if _, err, _ := b.errs(); err != nil {
		return store.Value{}, err
	}
	return b.Store.PutValue(ctx, v, ifVersion)
}

func (b *brokenStore) Acquire(ctx context.Context, name, owner string, ttl time.Duration) (store.Lease, bool, error) {
	if _, _, err := b.errs(); err != nil {
		return store.Lease{}, false, err
	}
	return b.Store.Acquire(ctx, name, owner, ttl)
}

func TestAfterClose(t *testing.T) {
	w := newWorld(t)
	r := newRig(t, w)
	r.login()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if status, err := r.call(); status != 200 || err != nil {
		t.Errorf("a valid token after the end: %d, %v", status, err)
	}
	r.age(2 * time.Hour)
	if _, err := r.call(); tool.KindOf(err) != tool.Unavailable {
		t.Errorf("a renewal after the end: %v", err)
	}
	if _, err := r.Begin(t.Context(), "jira", ""); tool.KindOf(err) != tool.Unavailable {
		t.Errorf("a login after the end: %v", err)
	}
}

func TestTokensThatCannotBeSent(t *testing.T) {
	for name, body := range map[string]string{
		"line break":    `{"access_token":"a\r\nX-Evil: 1","token_type":"bearer"}`,
		"no token":      `{"token_type":"bearer"}`,
		"bad refresh":   `{"access_token":"a","refresh_token":"a b"}`,
		"another type":  `{"access_token":"a","token_type":"DPoP"}`,
		"error in 200":  `{"error":"bad_verification_code"}`,
		"huge token":    `{"access_token":"` + strings.Repeat("a", 70_000) + `"}`,
		"deeply nested": `{"access_token":` + strings.Repeat("[", 20_000),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.fail = func(rw http.ResponseWriter, _ *http.Request) bool {
				rw.Header().Set("Content-Type", "application/json")
				fmt.Fprint(rw, body)
				return true
			}
			r := newRig(t, w)
			_, err := r.call()
			if _, err := r.Complete(t.Context(), visit(t, urlIn(t, err))); tool.KindOf(err) != tool.UpstreamFailed {
				t.Errorf("Complete: %v", err)
			}
			if r.kept() != nil {
				t.Error("there is a login")
			}
		})
	}
}

func TestLifeOfTokens(t *testing.T) {
	now := time.Now()
	for life, want := range map[string]time.Duration{
		`3600`: time.Hour, `"3600"`: time.Hour, `3600.5`: time.Hour + 500*time.Millisecond, `-1`: 0, `"soon"`: 0, `null`: 0, `1e300`: 10 * 365 * 24 * time.Hour,
	} {
		w := newWorld(t)
		w.fail = func(rw http.ResponseWriter, _ *http.Request) bool {
			fmt.Fprintf(rw, `{"access_token":"a","expires_in":%s}`, life)
			return true
		}
		r := newRig(t, w)
		got, err := r.exchange(t.Context(), reach{loopback: true, plain: true}, w.as.URL+"/token", client{ID: "x", Method: methodNone}, url.Values{})
		if err != nil || got.life != want {
			t.Errorf("expires_in %s: %s, %v", life, got.life, err)
		}
		rec := &record{Asked: []string{"a"}}
		got.into(rec, now)
		if rec.Expires.IsZero() != (want == 0) || !slices.Equal(rec.Scope, []string{"a"}) {
			t.Errorf("expires_in %s: %v, scope %v", life, rec.Expires, rec.Scope)
		}
	}
	var e errRefused
	if json.Unmarshal([]byte(`{}`), &e) != nil || errorCode("evil\n") != "an error" || errorCode("access_denied") != "access_denied" {
		t.Error("codes")
	}
}
