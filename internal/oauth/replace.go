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

// The login to an upstream is shared: who replaces it decides with whose
// account every caller's requests are made. So a login that works is replaced
// only by an administrator, when the attempt begins and when it completes, and
// a login that was made meanwhile ends the attempts from before it.

// usable reports whether callers can still use the login.
func (r *record) usable(now time.Time) bool { return r != nil && (!r.expired(now) || r.renewable()) }

// mayBegin refuses a caller that must not replace the login that there is, and
// one with limits where there is none: all callers would use its account.
func (s *Service) mayBegin(ctx context.Context, cfg upstream.Config, st *state, caller tool.Caller) error {
	if caller.Admin {
		return nil
	}
	if caller.Limited() {
		return &tool.Error{Kind: tool.Denied, Msg: "a key or token that is limited to servers or tools cannot sign in to " + cfg.Name + "; ask an administrator to do it"}
	}
	rec, _ := s.known(ctx, cfg, st, true) // what cannot be read is replaced
	if rec.usable(time.Now()) {
		return &tool.Error{Kind: tool.Denied, Msg: cfg.Name + " is already signed in; only an administrator can replace the login"}
	}
	return nil
}

// replaceable reports whether an attempt may still become the login of its
// upstream, and the version of what it replaces.
func (s *Service) replaceable(ctx context.Context, cfg upstream.Config, f flow) (version int64, err error) {
	rec, version, err := s.load(ctx, f.Server)
	if err != nil && tool.KindOf(err) == tool.Internal {
		return 0, err
	}
	if err != nil || rec == nil || rec.URL != cfg.URL || rec.Own {
		return version, nil // what cannot be used is replaced
	}
	if !rec.Since.Equal(f.Replaces) {
		return 0, &tool.Error{Kind: tool.Denied, Msg: "somebody else signed in to " + f.Server + " meanwhile; nothing has changed. Begin again if another account is meant"}
	}
	if !rec.usable(time.Now()) {
		return version, nil
	}
	if !f.Admin || s.opts.IsAdmin != nil && !s.opts.IsAdmin(ctx, f.Owner) {
		return 0, &tool.Error{Kind: tool.Denied, Msg: f.Server + " is already signed in; nothing changed. Only an administrator can replace the login"}
	}
	return version, nil
}

// adoptFlow makes rec the login of the upstream, if the attempt may still do
// so; else the tokens that it got are given back.
func (s *Service) adoptFlow(ctx context.Context, cfg upstream.Config, st *state, f flow, rec *record) error {
	for {
		version, err := s.replaceable(ctx, cfg, f)
		if err == nil {
			err = s.replaceLogin(ctx, f.Server, st, rec, version)
		}
		if err == nil {
			return nil
		}
		if errors.Is(err, store.ErrConflict) && ctx.Err() == nil {
			continue // renewed, or replaced, in between
		}
		if lost := s.revoke(ctx, rec); lost != nil {
			s.log.WarnContext(ctx, "tokens of a refused sign-in not revoked", "server", f.Server, "err", lost)
		}
		return err
	}
}

// SignIn returns why a call needs a person first, with the address that the
// context's caller has to open. It waits a moment for the address: without it
// the error says what to do instead.
func (s *Service) SignIn(ctx context.Context, server string) error {
	caller := tool.CallerFrom(ctx)
	if caller.ID == "" {
		return consentRequired(server, "")
	}
	ctx, cancel := context.WithTimeout(ctx, signInWait)
	defer cancel()
	cfg, err := s.find(server)
	st := s.state(server)
	if err == nil {
		err = s.mayBegin(ctx, cfg, st, caller)
	}
	var address string
	if err == nil {
		address, err = s.signInOfferFor(ctx, cfg, st, caller)
	}
	if err != nil {
		s.log.DebugContext(ctx, "no sign-in offered", "server", server, "caller", caller.ID, "err", err)
	}
	return consentRequired(server, address)
}

// signInOfferFor returns the address of an attempt of the caller's that brings what
// the last refused request needs.
func (s *Service) signInOfferFor(ctx context.Context, cfg upstream.Config, st *state, caller tool.Caller) (string, error) {
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
	if b.err != nil || b.offer == nil {
		return "", b.err
	}
	return b.offer.url, nil
}

// usable reports whether an attempt can be offered again.
func (o *signInOffer) usable(cfg upstream.Config) bool {
	return o != nil && o.server == cfg.URL && time.Until(o.expires) > offerLeft
}

// signInWait bounds how long a failed call waits for the address to open.
const signInWait = 10 * time.Second

// consentRequired is the error of a call that needs a person first; address is
// "" where the caller gets none.
func consentRequired(server, address string) error {
	e := &tool.Error{Kind: tool.UpstreamAuthRequired}
	if address == "" {
		e.Msg = fmt.Sprintf("it wants a sign-in; an administrator can run: junctor servers login %s, or sign in on the page", server)
		e.Details = map[string]any{"server": server}
		return e
	}
	e.Msg = fmt.Sprintf("it wants a sign-in. Open %s within %d minutes, or run: junctor servers login %s", address, int(flowLife.Minutes()), server)
	e.Details = map[string]any{"server": server, "url": address}
	return e
}
