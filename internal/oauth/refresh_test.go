package oauth

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// TestConcurrentExpiryRefreshesOnce checks that a token that expires under
// load, in two processes with one store, is refreshed once and no call fails.
func TestConcurrentExpiryRefreshesOnce(t *testing.T) {
	w := newWorld(t)
	r := newFixture(t, w)
	r.login()
	second := r.another()
	if status, err := call(as(t, tool.Local), second, *r.cfg); status != 200 || err != nil {
		t.Fatalf("second process: %d %v", status, err)
	}
	for round := range 5 {
		w.do(func() { clear(w.access) }) // expire them on the server, too
		r.age(2*time.Hour, second)
		var wg sync.WaitGroup
		for i := range 50 {
			wg.Go(func() {
				s := r.Service
				if i%2 == 1 {
					s = second
				}
				if status, err := call(as(t, tool.Local), s, *r.cfg); status != 200 || err != nil {
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

// TestConcurrentRefusalRefreshesOnce checks the same for a token that the
// server rejects before it expires: all calls get a 401 with the same token.
func TestConcurrentRefusalRefreshesOnce(t *testing.T) {
	w := newWorld(t)
	r := newFixture(t, w)
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
			if status, err := call(as(t, tool.Local), s, *r.cfg); status != 200 || err != nil {
				t.Errorf("call %d: %d, %v", i, status, err)
			}
		})
	}
	wg.Wait()
	if w.refreshes != 1 || w.replays != 0 {
		t.Errorf("%d refreshes, %d replays", w.refreshes, w.replays)
	}
}

func TestTokensAreRefreshedInBackground(t *testing.T) {
	w := newWorld(t)
	r := newFixture(t, w)
	r.login()
	r.age(47 * time.Minute) // of 60: not due yet
	if status, err := r.call(); status != 200 || err != nil || r.state(jira).refreshing != nil {
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
	st := r.state(jira)
	st.mu.Lock()
	f := st.refreshing
	st.mu.Unlock()
	if f == nil {
		t.Fatal("no renewal under way at 82 %")
	}
	close(hold)
	<-f.done
	if f.err != nil || r.kept().Access == old || w.refreshes != 1 || w.lastToken.Get("resource") != w.url {
		t.Errorf("renewal: %v, %d refreshes with %v", f.err, w.refreshes, w.lastToken)
	}
	// Without calls, Run refreshes the token.
	w.do(func() { w.fail = nil })
	r.age(50 * time.Minute)
	if _, err := r.known(t.Context(), *r.cfg, st, true); err != nil {
		t.Fatal(err)
	}
	r.refreshDue(t.Context())
	r.work.Wait()
	if w.refreshes != 2 {
		t.Errorf("%d refreshes", w.refreshes)
	}
}

func TestNetworkFailureKeepsLogin(t *testing.T) {
	w := newWorld(t)
	r := newFixture(t, w)
	r.login()
	for name, fail := range map[string]func(http.ResponseWriter, *http.Request) bool{
		"503": func(rw http.ResponseWriter, _ *http.Request) bool { rw.WriteHeader(503); return true },
		"429": func(rw http.ResponseWriter, _ *http.Request) bool {
			reply(rw, 429, map[string]any{"error": "slow_down"})
			return true
		},
		"a proxy's page": func(rw http.ResponseWriter, _ *http.Request) bool { rw.WriteHeader(403); return true },
		"a router's page in JSON": func(rw http.ResponseWriter, _ *http.Request) bool {
			reply(rw, 404, map[string]any{"error": "Not Found", "status": 404})
			return true
		},
		"a firewall's page in JSON": func(rw http.ResponseWriter, _ *http.Request) bool {
			reply(rw, 403, map[string]any{"error": "forbidden"})
			return true
		},
		"a framework's page in JSON": func(rw http.ResponseWriter, _ *http.Request) bool {
			reply(rw, 401, map[string]any{"error": "Unauthorized"})
			return true
		},
		"server error in 200": func(rw http.ResponseWriter, _ *http.Request) bool {
			reply(rw, 200, map[string]any{"error": "server_error"})
			return true
		},
		"no token in 200": func(rw http.ResponseWriter, _ *http.Request) bool {
			reply(rw, 200, map[string]any{"message": "down for maintenance"})
			return true
		},
		"a broken line": func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) },
		"unavailable": func(rw http.ResponseWriter, _ *http.Request) bool {
			reply(rw, 400, map[string]any{"error": "temporarily_unavailable"})
			return true
		},
		"no JSON": func(rw http.ResponseWriter, _ *http.Request) bool { fmt.Fprint(rw, "<html>"); return true },
		"too much": func(rw http.ResponseWriter, _ *http.Request) bool {
			fmt.Fprint(rw, strings.Repeat(" ", maxResponse+1))
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
			r.age(time.Hour) // expired
			_, err := r.call()
			if k := tool.KindOf(err); k != tool.UpstreamFailed {
				t.Errorf("with an ended token: %v", err)
			}
			st := r.state(jira)
			st.mu.Lock()
			if !st.retryAt.After(time.Now()) {
				t.Error("the next call would try at once")
			}
			st.retryAt = time.Time{} // skip the backoff
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
	// With both servers down, the error is a network error and does not
	// require a sign-in.
	w.as.Close()
	r.age(2 * time.Hour)
	if _, err := r.call(); tool.KindOf(err) != tool.UpstreamFailed {
		t.Errorf("error = %v", err)
	}
	if r.kept().Refresh == "" {
		t.Error("the login is gone")
	}
}

func TestInvalidRefreshTokenRequiresLogin(t *testing.T) {
	w := newWorld(t)
	r := newFixture(t, w)
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
	w.noRefresh, w.expiresIn = true, 0
	r := newFixture(t, w)
	r.login()
	if rec := r.kept(); !rec.Expires.IsZero() || rec.due(time.Now().Add(1000*time.Hour)) {
		t.Error("a token without an end ends")
	}
	w.do(func() { clear(w.access) })
	_, err := r.call()
	urlIn(t, err)
	// An expired token that cannot be refreshed is not sent.
	w.do(func() { w.expiresIn = 3600 })
	if _, err := r.Complete(t.Context(), visit(t, urlIn(t, err))); err != nil {
		t.Fatal(err)
	}
	r.age(2 * time.Hour)
	_, err = r.call()
	urlIn(t, err)
}

func TestRefreshTokenWithoutRotation(t *testing.T) {
	w := newWorld(t)
	w.keepOld = true
	r := newFixture(t, w)
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

// TestRepeatedlyRefusedTokensStopRefreshing checks that a server that rejects
// fresh tokens does not cause endless refreshes.
func TestRepeatedlyRefusedTokensStopRefreshing(t *testing.T) {
	w := newWorld(t)
	r := newFixture(t, w)
	r.login()
	forget := func() { w.do(func() { clear(w.access) }) }
	forget()
	if status, err := r.call(); status != 200 || err != nil {
		t.Fatalf("call = %d, %v", status, err)
	}
	forget()
	_, err := r.call() // the token was itself obtained after a 401
	urlIn(t, err)
	if w.refreshes != 1 {
		t.Errorf("%d refreshes", w.refreshes)
	}
}

func TestStepUp(t *testing.T) {
	w := newWorld(t)
	w.prm = map[string]any{"scopes_supported": []string{"read"}}
	w.meta = map[string]any{"scopes_supported": []string{"read", "write", "offline_access"}}
	r := newFixture(t, w)
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
	// A server that requires an already granted scope causes no new sign-in.
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
	r := newFixture(t, w)
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
	if address, err := r.Begin(as(t, tool.Local), "jira"); err == nil {
		t.Errorf("Begin = %q", address)
	}
	w.do(func() { w.fail = nil })
	if address, err := r.Begin(as(t, tool.Local), "jira"); err != nil || address != "" {
		t.Errorf("Begin = %q, %v", address, err)
	}
}
