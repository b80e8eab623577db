package oauth

import (
	"context"
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
	"junctor/internal/tool"
)

func TestStoreErrors(t *testing.T) {
	w := newWorld(t)
	r := newFixture(t, w)
	r.login()
	broken := &brokenStore{Store: r.store}
	s := r.another()
	s.opts.Store = broken
	if status, err := call(as(t, tool.Local), s, *r.cfg); status != 200 || err != nil {
		t.Fatalf("call = %d, %v", status, err)
	}
	st := s.state(jira)
	stale := func() {
		st.mu.Lock()
		defer st.mu.Unlock()
		st.read = time.Now().Add(-time.Hour)
	}
	broken.set(errors.New("disk gone"), nil, nil)
	stale()
	if status, err := call(as(t, tool.Local), s, *r.cfg); status != 200 || err != nil {
		t.Errorf("with a store that cannot be read: %d, %v", status, err)
	}
	// A refreshed token that cannot be written is used, and is written later.
	broken.set(nil, errors.New("disk full"), nil)
	r.age(2*time.Hour, s)
	if status, err := call(as(t, tool.Local), s, *r.cfg); status != 200 || err != nil {
		t.Errorf("with a store that cannot be written: %d, %v", status, err)
	}
	stale()
	if status, err := call(as(t, tool.Local), s, *r.cfg); status != 200 || err != nil || w.refreshes != 1 {
		t.Errorf("again: %d, %v, %d refreshes", status, err, w.refreshes)
	}
	broken.set(nil, nil, nil)
	s.refreshDue(t.Context())
	if r.kept().Access != st.rec.Access || st.unsaved {
		t.Error("the renewed token was not written")
	}
	// Without a lease no refresh token is redeemed.
	broken.set(nil, nil, errors.New("no lease"))
	r.age(2*time.Hour, s)
	if _, err := call(as(t, tool.Local), s, *r.cfg); tool.KindOf(err) != tool.Unavailable || w.refreshes != 1 {
		t.Errorf("without a lease: %v, %d refreshes", err, w.refreshes)
	}
	// A store encrypted with another key.
	other, err := store.NewSealer(make([]byte, store.KeySize))
	if err != nil {
		t.Fatal(err)
	}
	s = r.another()
	s.opts.Sealer = func() (*store.Sealer, error) { return other, nil }
	if _, err := call(as(t, tool.Local), s, *r.cfg); tool.KindOf(err) != tool.UpstreamFailed || !strings.Contains(err.Error(), "JUNCTOR_SECRET_KEY") {
		t.Errorf("with another key: %v", err)
	}
	if address, err := s.Begin(as(t, tool.Local), "jira"); err != nil || address == "" {
		t.Errorf("a new login with another key: %q, %v", address, err)
	}
	s.opts.Sealer = func() (*store.Sealer, error) { return nil, errors.New("no key") }
	stale()
	if _, err := s.Logout(t.Context(), jira); err == nil {
		t.Error("Logout without a key")
	}
}

// TestLogoutDuringRefresh checks that a refresh in progress does not restore a
// deleted login.
func TestLogoutDuringRefresh(t *testing.T) {
	w := newWorld(t)
	r := newFixture(t, w)
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
	if was, err := r.another().Logout(t.Context(), jira); !was || err != nil {
		t.Fatalf("Logout = %v, %v", was, err)
	}
	close(hold)
	urlIn(t, <-done)
	if r.kept() != nil {
		t.Error("the login came back")
	}
}

// brokenStore returns the configured errors.
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

func TestRefreshAfterClose(t *testing.T) {
	w := newWorld(t)
	r := newFixture(t, w)
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
	if _, err := r.Begin(as(t, tool.Local), "jira"); tool.KindOf(err) != tool.Unavailable {
		t.Errorf("a login after the end: %v", err)
	}
}

// TestRefusalsAreDistinguishedFromPages checks that only an OAuth error of the
// authorization server ends a login.
func TestRefusalsAreDistinguishedFromPages(t *testing.T) {
	for _, tt := range []struct {
		status  int
		body    string
		refused bool
	}{
		{400, `{"error":"invalid_grant"}`, true},
		{401, `{"error":"invalid_client"}`, true},
		{403, `{"error":"unauthorized_client","error_description":"refresh_token is invalid"}`, true}, // Atlassian
		{200, `{"error":"bad_refresh_token"}`, true},                                                  // GitHub
		{400, `{"error":"Invalid refresh token"}`, true},
		{400, `{"error":"Bad Request","status":400}`, false},
		{401, `{"error":"unauthorized"}`, false},
		{403, `{"error":"forbidden"}`, false},
		{404, `{"error":"not_found"}`, false},
		{429, `{"error":"invalid_request"}`, false},
		{503, `{"error":"invalid_grant"}`, false},
		{400, `{"error":{"code":"invalid_grant"}}`, false},
		{400, `<html>`, false},
	} {
		err := refusal(answer{status: tt.status, body: []byte(tt.body)})
		if _, refused := asRefused(err); refused != tt.refused {
			t.Errorf("%d %s: %v, refused %t", tt.status, tt.body, err, refused)
		}
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
			r := newFixture(t, w)
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

func TestTokenLifetime(t *testing.T) {
	now := time.Now()
	for expiresIn, want := range map[string]time.Duration{
		`3600`: time.Hour, `"3600"`: time.Hour, `3600.5`: time.Hour + 500*time.Millisecond, `-1`: 0, `"soon"`: 0, `null`: 0, `1e300`: 10 * 365 * 24 * time.Hour,
	} {
		w := newWorld(t)
		w.fail = func(rw http.ResponseWriter, _ *http.Request) bool {
			fmt.Fprintf(rw, `{"access_token":"a","expires_in":%s}`, expiresIn)
			return true
		}
		r := newFixture(t, w)
		got, err := r.exchange(t.Context(), addressPolicy{loopback: true, plain: true}, w.as.URL+"/token", client{ID: "x", Method: methodNone}, url.Values{})
		if err != nil || got.lifetime != want {
			t.Errorf("expires_in %s: %s, %v", expiresIn, got.lifetime, err)
		}
		rec := &record{Asked: []string{"a"}}
		got.applyTo(rec, now)
		if rec.Expires.IsZero() != (want == 0) || !slices.Equal(rec.Scope, []string{"a"}) {
			t.Errorf("expires_in %s: %v, scope %v", expiresIn, rec.Expires, rec.Scope)
		}
	}
	if errorCode("evil\n") != "an error" || errorCode("access_denied") != "access_denied" {
		t.Error("codes")
	}
}

// TestCallbackIsAcceptedOnce sends the same callback concurrently from many
// browsers.
func TestCallbackIsAcceptedOnce(t *testing.T) {
	r := newFixture(t, newWorld(t))
	services := []*Service{r.Service, r.another()}
	for round := range 5 {
		state := fmt.Sprintf("state-%d", round)
		if err := r.storeFlow(t.Context(), state, flow{Server: "jira", Expires: time.Now().Add(time.Minute)}); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		taken := make(chan struct{}, 40)
		for i := range 40 {
			wg.Go(func() {
				if _, err := services[i%2].takeFlow(t.Context(), state); err == nil {
					taken <- struct{}{}
				}
			})
		}
		wg.Wait()
		if len(taken) != 1 {
			t.Errorf("taken %d times", len(taken))
		}
	}
	if err := r.storeFlow(t.Context(), "late", flow{Server: "jira", Expires: time.Now().Add(-time.Minute)}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.takeFlow(t.Context(), "late"); err == nil {
		t.Error("a login that took too long was taken")
	}
}
