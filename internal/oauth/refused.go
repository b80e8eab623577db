package oauth

import (
	"context"
	"errors"
	"strings"
	"time"

	"junctor/internal/mcpclient"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// afterUnauthorized handles a 401. It returns a token that another request has
// obtained in the meantime or a refreshed one, or the error that requires a
// sign-in.
func (s *Service) afterUnauthorized(ctx context.Context, cfg upstream.Config, st *state, refused *mcpclient.HTTPError) (*record, error) {
	_, used, _ := strings.Cut(refused.Credential.Reveal(), " ")
	rec, err := s.known(ctx, cfg, st, true)
	if err != nil {
		return nil, err
	}
	if rec != nil && rec.Scheme == schemeDPoP && st.wantsNonce(refused) {
		return rec, nil
	}
	if rec != nil && rec.Access != used && !rec.expired(time.Now()) {
		return rec, nil
	}
	if rec != nil && rec.refreshable() && !st.wasForced(used) {
		refreshed, err := s.refresh(ctx, cfg, st, rec.Access)
		if err == nil {
			st.force(refreshed.Access)
			return refreshed, nil
		}
		if !errors.Is(err, errLoginEnded) {
			return nil, err
		}
	}
	ch := parseChallenge(refused.WWWAuthenticate)
	var asked []string
	if rec != nil {
		asked = rec.Asked
	}
	return s.newLogin(ctx, cfg, st, ch, asked)
}

// wasForced reports whether the token was itself obtained after a 401.
// Refreshing it again would not help.
func (st *state) wasForced(token string) bool {
	st.mu.Lock()
	defer st.mu.Unlock()
	return token != "" && st.forced == token && st.rec != nil && time.Since(st.rec.Obtained) < time.Minute
}

func (st *state) force(token string) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.forced = token
}

// afterForbidden handles a 403. It returns the error that requires a sign-in
// with the current scopes and the missing ones.
func (s *Service) afterForbidden(ctx context.Context, cfg upstream.Config, st *state, refused *mcpclient.HTTPError) (*record, error) {
	ch := parseChallenge(refused.WWWAuthenticate)
	denied := &tool.Error{Kind: tool.UpstreamFailed, Msg: "the server refuses access (HTTP 403), and a new login would not change that"}
	if ch.err != "insufficient_scope" && len(ch.scopes) == 0 {
		return nil, denied
	}
	_, used, _ := strings.Cut(refused.Credential.Reveal(), " ")
	rec, err := s.known(ctx, cfg, st, true)
	if err != nil {
		return nil, err
	}
	var asked []string
	if rec != nil {
		if rec.Access != used && !rec.expired(time.Now()) {
			return rec, nil
		}
		if len(ch.scopes) > 0 && covers(rec.Scope, ch.scopes) {
			return nil, denied
		}
		asked = union(rec.Asked, rec.Scope)
	}
	return s.newLogin(ctx, cfg, st, ch, asked)
}

// newLogin obtains a login if there is none. With the client's own credentials
// it requests a token; otherwise it returns an error with the URL that a
// person has to open. The URL is only for the caller of the request:
// background work gets none, and neither does a caller that must not replace
// the current login.
func (s *Service) newLogin(ctx context.Context, cfg upstream.Config, st *state, ch challenge, asked []string) (*record, error) {
	caller := tool.CallerFrom(ctx)
	st.mu.Lock()
	st.wanted = &loginRequest{challenge: ch, asked: asked}
	st.mu.Unlock()
	if !ownCredentials(cfg) && s.mayBegin(ctx, cfg, st, caller) != nil {
		return nil, consentRequired(st.login, "")
	}
	b := s.begin(cfg, st, loginRequest{challenge: ch, asked: asked, owner: caller})
	select {
	case <-b.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	switch {
	case b.err != nil:
		return nil, b.err
	case b.rec != nil:
		return b.rec, nil
	}
	return nil, consentRequired(st.login, b.login.url)
}
