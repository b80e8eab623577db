package oauth

import (
	"context"
	"errors"
	"fmt"
	"time"

	"junctor/internal/store"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// A shared login determines the account for every caller's requests. Therefore
// only an administrator may replace one that works, which is checked when the
// attempt begins and when it completes, and a new login invalidates the
// attempts that began before it. A caller may always replace its own login.

// usable reports whether callers can still use the login.
func (r *record) usable(now time.Time) bool { return r != nil && (!r.expired(now) || r.refreshable()) }

// isAnonymous reports whether the caller is not authenticated, or there is none.
func isAnonymous(caller tool.Caller) bool { return caller.ID == "" || caller.ID == tool.AnonymousID }

// mayBegin returns an error for a caller that must not replace the current
// login, and for a restricted caller if there is none, because all callers
// would use its account. An anonymous caller may not begin its own login
// either, because all anonymous callers would share it.
func (s *Service) mayBegin(ctx context.Context, cfg upstream.Config, st *state, caller tool.Caller) error {
	if isAnonymous(caller) {
		return &tool.Error{Kind: tool.Denied, Msg: "signing in to " + cfg.Name + " requires an authenticated caller; sign in to the gateway or use a key"}
	}
	if st.login.Caller != "" {
		if st.login.Caller != caller.ID {
			return &tool.Error{Kind: tool.Denied, Msg: "only the caller itself can sign in to " + cfg.Name + ": each caller has a login of its own"}
		}
		return nil
	}
	if caller.Admin {
		return nil
	}
	if caller.Limited() {
		return &tool.Error{Kind: tool.Denied, Msg: "a key or token that is limited to servers or tools cannot sign in to " + cfg.Name + "; ask an administrator to do it"}
	}
	rec, _ := s.known(ctx, cfg, st, true) // an undecryptable login is replaced
	if rec.usable(time.Now()) {
		return &tool.Error{Kind: tool.Denied, Msg: cfg.Name + " is already signed in; only an administrator can replace the login"}
	}
	return nil
}

// checkOwner returns an error if the key of the caller that began the attempt was
// revoked.
func (s *Service) checkOwner(ctx context.Context, f flow) error {
	if s.opts.Revoked == nil {
		return nil
	}
	revoked, err := s.opts.Revoked(ctx, f.Owner)
	if err != nil {
		return fmt.Errorf("read the key that started the sign-in to %s: %w", f.Server, err)
	}
	if revoked {
		return &tool.Error{Kind: tool.Denied, Msg: "the key that started this sign-in to " + f.Server + " was revoked; nothing has changed. Start the sign-in again with another key"}
	}
	return nil
}

// replaceable returns the version of the login that an attempt may replace, or
// an error if it may not.
func (s *Service) replaceable(ctx context.Context, cfg upstream.Config, f flow) (version int64, err error) {
	if err := s.checkOwner(ctx, f); err != nil {
		return 0, err
	}
	rec, version, err := s.load(ctx, f.login())
	if err != nil && tool.KindOf(err) == tool.Internal {
		return 0, err
	}
	if err != nil || rec == nil || rec.URL != cfg.URL || rec.Own || f.Personal {
		return version, nil // an unusable login can be replaced
	}
	if !rec.Since.Equal(f.Replaces) {
		return 0, &tool.Error{Kind: tool.Denied, Msg: "somebody else signed in to " + f.Server + " in the meantime; nothing has changed. Start the sign-in again to use a different account"}
	}
	if !rec.usable(time.Now()) {
		return version, nil
	}
	if !f.Admin || s.opts.IsAdmin != nil && !s.opts.IsAdmin(ctx, f.Owner) {
		return 0, &tool.Error{Kind: tool.Denied, Msg: f.Server + " is already signed in; nothing changed. Only an administrator can replace the login"}
	}
	return version, nil
}

// adoptFlow stores rec as the login of the upstream if the attempt is still
// allowed to; otherwise it revokes the tokens.
func (s *Service) adoptFlow(ctx context.Context, cfg upstream.Config, st *state, f flow, rec *record) error {
	for {
		version, err := s.replaceable(ctx, cfg, f)
		if err == nil {
			err = s.replaceLogin(ctx, st, rec, version)
		}
		if err == nil {
			return s.endIfRevoked(ctx, f)
		}
		if errors.Is(err, store.ErrConflict) && ctx.Err() == nil {
			continue // refreshed or replaced in the meantime
		}
		if lost := s.revoke(ctx, f.login(), rec); lost != nil {
			s.log.WarnContext(ctx, "cannot revoke the tokens of a refused sign-in", "server", f.Server, "err", lost)
		}
		return err
	}
}

// endIfRevoked ends the caller's own login that an attempt has just stored if
// its key was revoked in the meantime: EndLogins may have run before the login
// was stored.
func (s *Service) endIfRevoked(ctx context.Context, f flow) error {
	if !f.Personal {
		return nil
	}
	err := s.checkOwner(ctx, f)
	if err != nil {
		_, failed := s.Logout(ctx, f.login())
		err = errors.Join(err, failed)
	}
	return err
}

// SignIn returns the error of a call that requires a sign-in, with the URL that
// the context's caller has to open. It waits briefly for the URL; without it
// the error explains what to do instead.
func (s *Service) SignIn(ctx context.Context, server string) error {
	caller := tool.CallerFrom(ctx)
	cfg, err := s.find(server)
	login := cfg.LoginOf(caller.ID)
	login.Server = server
	if isAnonymous(caller) {
		return consentRequired(login, "")
	}
	ctx, cancel := context.WithTimeout(ctx, signInTimeout)
	defer cancel()
	st := s.state(login)
	if err == nil {
		err = s.mayBegin(ctx, cfg, st, caller)
	}
	var address string
	if err == nil {
		address, err = s.loginURLFor(ctx, cfg, st, caller)
	}
	if err != nil {
		s.log.DebugContext(ctx, "no sign-in offered", "server", server, "caller", caller.ID, "err", err)
	}
	return consentRequired(login, address)
}

// loginURLFor returns the URL of a login attempt for the caller, with the
// scopes that the last refused request needs.
func (s *Service) loginURLFor(ctx context.Context, cfg upstream.Config, st *state, caller tool.Caller) (string, error) {
	st.mu.Lock()
	wanted := st.wanted
	st.mu.Unlock()
	if wanted == nil {
		return s.Begin(ctx, cfg.Name)
	}
	w := *wanted
	w.owner = caller
	b := s.begin(cfg, st, w)
	select {
	case <-b.done:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if b.err != nil || b.login == nil {
		return "", b.err
	}
	return b.login.url, nil
}

// usable reports whether an attempt can be offered again.
func (o *pendingLogin) usable(cfg upstream.Config) bool {
	return o != nil && o.server == cfg.URL && time.Until(o.expires) > minPendingTTL
}

// signInTimeout bounds how long a failed call waits for the sign-in URL.
const signInTimeout = 10 * time.Second

// consentRequired returns the error of a call that requires a sign-in; address
// is "" if the caller must not get a URL.
func consentRequired(l upstream.Login, address string) error {
	server := l.Server
	e := &tool.Error{Kind: tool.UpstreamAuthRequired}
	if l.Caller != "" {
		e.Msg = fmt.Sprintf("it requires you to sign in with your own account; sign in on the page, or ask an administrator to run: junctor servers login %s --caller CALLER", server)
		e.Details = map[string]any{"server": server, "caller": l.Caller}
		if address != "" {
			e.Msg = fmt.Sprintf("it requires you to sign in with your own account. Open %s within %d minutes, sign in and confirm, then try again", address, int(flowTTL.Minutes()))
			e.Details = map[string]any{"server": server, "caller": l.Caller, "url": address}
		}
		return e
	}
	if address == "" {
		e.Msg = fmt.Sprintf("it requires a sign-in; an administrator can run: junctor servers login %s, or sign in on the page", server)
		e.Details = map[string]any{"server": server}
		return e
	}
	e.Msg = fmt.Sprintf("it requires a sign-in. Open %s within %d minutes, or run: junctor servers login %s", address, int(flowTTL.Minutes()), server)
	e.Details = map[string]any{"server": server, "url": address}
	return e
}
