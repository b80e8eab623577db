package oauth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"junctor/internal/store"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

const (
	// refreshTimeout bounds one refresh, saveTimeout the storing of its result.
	// The lease is longer than both.
	refreshTimeout = 30 * time.Second
	saveTimeout    = 20 * time.Second
	leaseTTL       = 90 * time.Second

	// leasePoll is how often a process checks whether the lease is free.
	leasePoll = 100 * time.Millisecond

	minBackoff = time.Second
	maxBackoff = time.Minute
)

// errLoginEnded means that a login cannot be refreshed and a user must sign
// in.
var errLoginEnded = errors.New("the login has ended")

func asRefused(err error) (*errRefused, bool) { return errors.AsType[*errRefused](err) }

// refreshCall is a token refresh in progress. rec and err are set when done is
// closed.
type refreshCall struct {
	done chan struct{}
	rec  *record
	err  error
}

// refresh refreshes the token old and waits for the outcome. Canceling ctx
// does not cancel the refresh, because the new token must be stored.
func (s *Service) refresh(ctx context.Context, cfg upstream.Config, st *state, old string) (*record, error) {
	f := s.startRefresh(cfg, st, old)
	select {
	case <-f.done:
		return f.rec, f.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// startRefresh starts the refresh of the token old, or joins the one in
// progress.
func (s *Service) startRefresh(cfg upstream.Config, st *state, old string) *refreshCall {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.refreshing != nil {
		return st.refreshing
	}
	f := &refreshCall{done: make(chan struct{})}
	switch {
	case st.rec != nil && st.rec.Access != old && !st.rec.expired(time.Now()): // just refreshed
		f.rec = st.rec
		close(f.done)
		return f
	case time.Now().Before(st.retryAt):
		f.err = st.lastErr
		close(f.done)
		return f
	}
	if !s.spawn(func() {
		f.rec, f.err = s.refreshLocked(cfg, st, old)
		st.mu.Lock()
		st.refreshing = nil
		if f.err != nil && !errors.Is(f.err, errLoginEnded) {
			st.failures++
			wait := min(minBackoff<<min(st.failures-1, 10), maxBackoff)
			st.retryAt, st.lastErr = time.Now().Add(wait), f.err
			if e, ok := errors.AsType[*tool.Error](f.err); ok {
				e.RetryAfter = wait
			}
		} else {
			st.failures, st.retryAt = 0, time.Time{}
		}
		failures := st.failures
		st.mu.Unlock()
		switch {
		case errors.Is(f.err, errLoginEnded):
			s.log.Warn("login lost; a person has to sign in again", "server", cfg.Name, "caller", st.login.Caller, "err", f.err)
		case f.err != nil && failures == 1:
			s.log.Warn("cannot refresh the token; retrying", "server", cfg.Name, "caller", st.login.Caller, "err", f.err)
		case f.err == nil:
			s.log.Debug("token refreshed", "server", cfg.Name)
		}
		close(f.done)
	}) {
		f.err = errStopping
		close(f.done)
		return f
	}
	st.refreshing = f
	return f
}

// refreshLocked refreshes a token while holding its lease.
func (s *Service) refreshLocked(cfg upstream.Config, st *state, old string) (*record, error) {
	st.leased.Lock()
	defer st.leased.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), refreshTimeout)
	defer cancel()
	for {
		l, held, err := s.opts.Store.Acquire(ctx, leaseOf(st.login), s.owner, leaseTTL)
		if err != nil { // better to fail than to redeem a refresh token twice
			return nil, &tool.Error{Kind: tool.Unavailable, Msg: "its token cannot be refreshed while the store is unavailable", Err: err}
		}
		if held {
			break
		}
		timer := time.NewTimer(min(max(l.Left, time.Millisecond), leasePoll))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, &tool.Error{Kind: tool.Unavailable, Msg: "another process is still refreshing its token", Err: ctx.Err()}
		}
	}
	defer s.release(st.login)
	// Read the current token again under the lease: another process may have
	// refreshed it, and a replaced refresh token must not be used again.
	rec, version, err := s.latest(ctx, st)
	switch {
	case err != nil:
		return nil, err
	case rec == nil || rec.URL != cfg.URL:
		return nil, fmt.Errorf("%w: it was signed out", errLoginEnded)
	case rec.Access != old && !rec.expired(time.Now()):
		return rec, nil
	case !rec.refreshable():
		return nil, fmt.Errorf("%w: it has no refresh token", errLoginEnded)
	}
	var t tokens
	if rec.Own {
		t, err = s.ownTokens(ctx, cfg, rec)
	} else {
		t, err = s.exchange(ctx, rec.Reach.policy(), rec.Token, rec.client(cfg), rec.grant())
	}
	if err != nil {
		return s.refreshFailed(st, rec, version, err)
	}
	next := *rec
	t.applyTo(&next, time.Now())
	s.redactTokens(&next)
	return s.storeRefreshed(st, &next, version)
}

func leaseOf(l upstream.Login) string { return "oauth/" + nameOf(l) }

func (s *Service) release(l upstream.Login) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_ = s.opts.Store.Release(ctx, leaseOf(l), s.owner) // otherwise the lease expires
}

// latest returns the login from the store, or from this process if it could not
// be stored.
func (s *Service) latest(ctx context.Context, st *state) (*record, int64, error) {
	st.mu.Lock()
	rec, version, unsaved := st.rec, st.version, st.unsaved
	st.mu.Unlock()
	if unsaved {
		return rec, version, nil
	}
	rec, version, err := s.load(ctx, st.login)
	if err != nil {
		return nil, 0, err
	}
	st.put(rec, version)
	return rec, version, nil
}

// storeRefreshed stores a refreshed login that replaces the stored version.
// The lease is held. The login must not be lost, because the previous token is
// invalid: if the store does not accept it, it stays in memory and is written
// later, unless a user has signed in or out in the meantime. It returns the
// login that is then in use.
func (s *Service) storeRefreshed(st *state, rec *record, version int64) (*record, error) {
	ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
	defer cancel()
	next, before := rec, version
	written, err := s.save(ctx, st.login, rec, version)
	for errors.Is(err, store.ErrConflict) {
		stored, found, failed := s.load(ctx, st.login)
		if failed != nil {
			err = failed
			break
		}
		if !rec.isNewerThan(stored) {
			next, written, err = stored, found, nil
			break
		}
		version = found
		written, err = s.save(ctx, st.login, rec, version)
	}
	if err != nil {
		written = version
	}
	st.mu.Lock()
	if st.version == before { // otherwise this process has a later login or none
		st.rec, st.version, st.read, st.unsaved = next, written, time.Now(), err != nil
	}
	current := st.rec
	st.mu.Unlock()
	switch {
	case current == nil: // the sign-out could not revoke the new token
		ctx, cancel := context.WithTimeout(context.Background(), 2*requestTimeout)
		defer cancel()
		if err := s.revoke(ctx, st.login, rec); err != nil {
			s.log.Warn("cannot revoke the token of an ended login", "server", st.login.Server, "caller", st.login.Caller, "err", err)
		}
		return nil, fmt.Errorf("%w: it was signed out", errLoginEnded)
	case err != nil && current == rec:
		s.log.Error("cannot store the refreshed token; retrying", "server", st.login.Server, "caller", st.login.Caller, "err", err)
	}
	return current, nil
}

// storeUnsaved stores a refreshed login that the store did not accept before.
// It does nothing during a refresh, here or in another process, because the
// refresh stores its result.
func (s *Service) storeUnsaved(ctx context.Context, st *state) {
	if !st.leased.TryLock() {
		return
	}
	defer st.leased.Unlock()
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	_, held, err := s.opts.Store.Acquire(ctx, leaseOf(st.login), s.owner, leaseTTL)
	if err != nil || !held {
		s.log.DebugContext(ctx, "cannot store the refreshed token yet", "server", st.login.Server, "caller", st.login.Caller, "err", err)
		return
	}
	defer s.release(st.login)
	st.mu.Lock()
	rec, version, unsaved := st.rec, st.version, st.unsaved
	st.mu.Unlock()
	if unsaved {
		_, _ = s.storeRefreshed(st, rec, version) // logs its errors
	}
}

// refreshFailed distinguishes a rejected login from a transient failure.
func (s *Service) refreshFailed(st *state, rec *record, version int64, err error) (*record, error) {
	refused, definite := asRefused(err)
	if !definite {
		return nil, unreachable("its token endpoint", err)
	}
	if rec.Own {
		return nil, fmt.Errorf("%w: %w", errLoginEnded, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), saveTimeout)
	defer cancel()
	if refused.code == "invalid_client" {
		_ = s.deleteRegistration(ctx, cmp.Or(rec.Issuer, rec.Token), rec.Client.Redirect) // the next login registers again
	}
	spent := *rec
	spent.Refresh = "" // must not be redeemed again; the access token may still be valid
	if _, kept := s.storeRefreshed(st, &spent, version); kept != nil {
		return nil, kept
	}
	return nil, fmt.Errorf("%w: %w", errLoginEnded, err)
}

// refreshDue refreshes the tokens that are due, so that those of idle
// upstreams do not expire, and retries writes that the store did not accept.
func (s *Service) refreshDue(ctx context.Context) {
	s.mu.Lock()
	states := make([]*state, 0, len(s.states))
	for _, st := range s.states {
		states = append(states, st)
	}
	s.mu.Unlock()
	for _, st := range states {
		if s.removeUnused(st) {
			continue
		}
		cfg, ok := s.opts.Servers(st.login.Server)
		if !ok {
			continue
		}
		st.mu.Lock()
		rec, unsaved := st.rec, st.unsaved
		st.mu.Unlock()
		if unsaved {
			s.storeUnsaved(ctx, st)
			continue
		}
		if rec == nil || !rec.refreshable() || !rec.due(time.Now()) {
			continue
		}
		if rec, err := s.known(ctx, cfg, st, true); err == nil && rec != nil && rec.refreshable() && rec.due(time.Now()) {
			s.startRefresh(cfg, st, rec.Access)
		}
	}
}

// idleLoginTTL is how long the login of an idle caller stays in memory and is
// refreshed. After that it is read from the store when needed.
const idleLoginTTL = time.Hour

// removeUnused removes a caller's own login from memory if it is idle, and
// reports whether it did. Without this, memory use would grow with the number
// of callers. It locks st.mu before s.mu, as startRefresh does, and holds both
// so that no request starts to use the login meanwhile.
func (s *Service) removeUnused(st *state) bool {
	if st.login.Caller == "" {
		return false
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	idle := time.Since(time.Unix(0, st.asked.Load()))
	if idle <= idleLoginTTL && (st.rec != nil || idle <= flowTTL) || st.unsaved || st.refreshing != nil || len(st.beginning) > 0 {
		return false
	}
	delete(s.states, st.login)
	return true
}
