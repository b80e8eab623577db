package oauth

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"junctor/internal/store"
)

// hookStore calls put instead of writing a token. put may call write to write
// it.
type hookStore struct {
	store.Store
	put func(write func() (store.Value, error)) (store.Value, error)
}

func (h *hookStore) PutValue(ctx context.Context, v store.Value, ifVersion int64) (store.Value, error) {
	write := func() (store.Value, error) { return h.Store.PutValue(ctx, v, ifVersion) }
	if !strings.HasPrefix(v.Name, tokenPrefix) {
		return write()
	}
	return h.put(write)
}

// failWrites returns a hook that fails the first n writes of a token.
func failWrites(n int) func(func() (store.Value, error)) (store.Value, error) {
	return func(write func() (store.Value, error)) (store.Value, error) {
		if n--; n >= 0 {
			return store.Value{}, errors.New("disk full")
		}
		return write()
	}
}

// withStore returns a second process on the store, which writes tokens with
// put.
func (r *fixture) withStore(put func(func() (store.Value, error)) (store.Value, error)) *Service {
	r.t.Helper()
	s := r.another()
	s.opts.Store = &hookStore{Store: r.store, put: put}
	return s
}

// redeem starts a refresh of the current token of s.
func (r *fixture) redeem(s *Service) *refreshCall {
	r.t.Helper()
	st := s.state(jira)
	rec, err := s.known(r.t.Context(), *r.cfg, st, true)
	if err != nil || rec == nil {
		r.t.Fatalf("the login is %v, %v", rec, err)
	}
	return s.startRefresh(*r.cfg, st, rec.Access)
}

// redeemSlowly starts a refresh in a second process. It returns when the first
// write of the token is in progress; that write fails when fail is closed.
func (r *fixture) redeemSlowly() (s *Service, f *refreshCall, fail chan struct{}) {
	r.t.Helper()
	writing, fail := make(chan struct{}), make(chan struct{})
	first := true
	s = r.withStore(func(write func() (store.Value, error)) (store.Value, error) {
		if !first {
			return write()
		}
		first = false
		close(writing)
		<-fail
		return store.Value{}, errors.New("connection lost")
	})
	f = r.redeem(s)
	<-writing
	return s, f, fail
}

// stopped blocks refreshes at the token endpoint until release is closed. It
// sends to arrived for each of them.
func (w *world) stopped() (arrived, release chan struct{}) {
	arrived, release = make(chan struct{}, 10), make(chan struct{})
	w.do(func() {
		w.fail = func(http.ResponseWriter, *http.Request) bool {
			w.mu.Unlock()
			arrived <- struct{}{}
			<-release
			w.mu.Lock()
			return false
		}
	})
	return arrived, release
}

// TestLogoutWhileTokenIsWritten checks that a refreshed token that the store
// rejects after a sign-out is revoked and not written later.
func TestLogoutWhileTokenIsWritten(t *testing.T) {
	w := newWorld(t)
	r := newFixture(t, w)
	r.login()
	s, f, fail := r.redeemSlowly()
	if was, err := s.Logout(t.Context(), jira); !was || err != nil {
		t.Fatalf("Logout = %v, %v", was, err)
	}
	close(fail)
	<-f.done
	s.refreshDue(t.Context())
	if r.kept() != nil {
		t.Error("the login came back")
	}
	if !errors.Is(f.err, errLoginEnded) {
		t.Errorf("the refresh ended with %v", f.err)
	}
	w.do(func() {
		for token := range w.refresh {
			if w.refresh[token] && !slices.Contains(w.revoked, token) {
				t.Error("the refresh token is still valid")
			}
		}
	})
}

// TestLogoutRevokesUnsavedToken checks that a sign-out revokes the unsaved
// token rather than the stored one.
func TestLogoutRevokesUnsavedToken(t *testing.T) {
	w := newWorld(t)
	r := newFixture(t, w)
	r.login()
	s := r.withStore(failWrites(1))
	f := r.redeem(s)
	<-f.done
	if was, err := s.Logout(t.Context(), jira); !was || err != nil {
		t.Fatalf("Logout = %v, %v", was, err)
	}
	w.do(func() {
		if !slices.Contains(w.revoked, f.rec.Refresh) {
			t.Error("the refresh token is still valid")
		}
	})
}

// TestUnsavedTokenIsNotWrittenDuringRefresh checks that the next token is not
// lost if the store recovers during its refresh.
func TestUnsavedTokenIsNotWrittenDuringRefresh(t *testing.T) {
	w := newWorld(t)
	r := newFixture(t, w)
	r.login()
	s := r.withStore(failWrites(1))
	<-r.redeem(s).done
	arrived, release := w.stopped()
	f := r.redeem(s)
	<-arrived
	s.refreshDue(t.Context())
	close(release)
	<-f.done
	if f.err != nil || w.refreshes != 2 || w.replays != 0 {
		t.Fatalf("%v, %d refreshes, %d replays", f.err, w.refreshes, w.replays)
	}
	if kept := r.kept(); !w.refresh[kept.Refresh] {
		t.Error("the store has a refresh token that was redeemed already")
	}
}

// TestRefreshedTokenReplacesOlderOfSameLogin checks that a write that keeps
// the login, such as encrypting it with a new key, does not discard a
// refreshed token, even if the store then fails.
func TestRefreshedTokenReplacesOlderOfSameLogin(t *testing.T) {
	for name, fails := range map[string]bool{"the store works": false, "the store fails": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := newFixture(t, w)
			r.login()
			writes := 0
			s := r.withStore(func(write func() (store.Value, error)) (store.Value, error) {
				if writes++; writes == 2 && fails {
					return store.Value{}, errors.New("disk full")
				}
				return write()
			})
			arrived, release := w.stopped()
			f := r.redeem(s)
			<-arrived
			if _, err := r.save(t.Context(), jira, r.kept(), anyVersion); err != nil {
				t.Fatal(err)
			}
			close(release)
			<-f.done
			s.refreshDue(t.Context())
			if kept := r.kept(); f.err != nil || !w.refresh[kept.Refresh] {
				t.Errorf("%v, or the store has a refresh token that was redeemed already", f.err)
			}
		})
	}
}

// TestUnsavedTokenDoesNotReplaceNewerOfSameLogin covers a failed write that
// did reach the store, after which another process refreshed the token again.
func TestUnsavedTokenDoesNotReplaceNewerOfSameLogin(t *testing.T) {
	w := newWorld(t)
	r := newFixture(t, w)
	r.login()
	first := true
	s := r.withStore(func(write func() (store.Value, error)) (store.Value, error) {
		v, err := write()
		if first {
			first, err = false, errors.New("connection lost")
		}
		return v, err
	})
	<-r.redeem(s).done
	f := r.redeem(r.Service)
	if <-f.done; f.err != nil {
		t.Fatal(f.err)
	}
	s.refreshDue(t.Context())
	if kept := r.kept(); kept.Refresh != f.rec.Refresh || w.replays != 0 {
		t.Errorf("an older token was written over a newer one; %d replays", w.replays)
	}
	if rec, err := s.known(t.Context(), *r.cfg, s.state(jira), false); err != nil || rec.Refresh != f.rec.Refresh {
		t.Errorf("the older token is still in use: %v", err)
	}
}

// TestNewLoginDuringRefresh checks that a refresh that the store rejects does
// not replace the login of a user who signed in in the meantime.
func TestNewLoginDuringRefresh(t *testing.T) {
	w := newWorld(t)
	r := newFixture(t, w)
	r.login()
	s, f, fail := r.redeemSlowly()
	_, version, err := r.load(t.Context(), jira)
	if err != nil {
		t.Fatal(err)
	}
	signedIn := *r.kept()
	signedIn.Since, signedIn.Access = time.Now(), "another account"
	if err := s.replaceLogin(t.Context(), s.state(jira), &signedIn, version); err != nil {
		t.Fatal(err)
	}
	close(fail)
	<-f.done
	s.refreshDue(t.Context())
	if f.err != nil || f.rec.Access != signedIn.Access || r.kept().Access != signedIn.Access {
		t.Errorf("the new login was replaced: %v", f.err)
	}
}
