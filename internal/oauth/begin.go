package oauth

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"junctor/internal/telemetry"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

const (
	// flowTTL is the time that a user has to consent.
	flowTTL = 10 * time.Minute
	// minPendingTTL is the minimum remaining lifetime of a login that is offered
	// again.
	minPendingTTL = 3 * time.Minute
	// maxPending bounds the pending logins of one upstream that are kept in
	// memory. Others can still be completed.
	maxPending = 8
	// beginTimeout bounds the preparation of a login.
	beginTimeout = 30 * time.Second
)

// loginRequest describes a requested login.
type loginRequest struct {
	challenge challenge
	asked     []string // scopes of the previous login
	owner     tool.Caller
}

// attemptKey distinguishes the attempts of callers, and attempts with and
// without administrator rights.
func (req loginRequest) attemptKey() string {
	if req.owner.Admin {
		return "admin " + req.owner.ID
	}
	return req.owner.ID
}

// pendingLogin is a login that waits for the user to open its URL.
type pendingLogin struct {
	url     string
	server  string // address of the upstream
	scopes  []string
	expires time.Time
}

// preparedLogin is a login in preparation. login, rec and err are set when done
// is closed.
type preparedLogin struct {
	done  chan struct{}
	login *pendingLogin
	rec   *record // the login itself, if no user is needed
	err   error
}

// begin prepares a login, or returns the current or a recent preparation for
// the same caller. It does not block. An attempt belongs to the caller that
// began it and is never offered to others, because anyone with its URL can
// complete it with their own account.
func (s *Service) begin(cfg upstream.Config, st *state, req loginRequest) *preparedLogin {
	key := req.attemptKey()
	st.mu.Lock()
	defer st.mu.Unlock()
	if b := st.beginning[key]; b != nil {
		return b
	}
	b := &preparedLogin{done: make(chan struct{})}
	if o := st.pending[key]; o.usable(cfg) && covers(o.scopes, req.challenge.scopes) {
		b.login = o
		close(b.done)
		return b
	}
	if !s.spawn(func() {
		ctx, cancel := context.WithTimeout(context.Background(), beginTimeout)
		defer cancel()
		b.login, b.rec, b.err = s.prepare(ctx, cfg, st, req)
		st.mu.Lock()
		delete(st.beginning, key)
		if b.err == nil {
			if st.pending == nil || len(st.pending) >= maxPending {
				st.pending = map[string]*pendingLogin{}
			}
			st.pending[key] = b.login
		}
		st.mu.Unlock()
		close(b.done)
	}) {
		b.err = errStopping
		close(b.done)
		return b
	}
	if st.beginning == nil {
		st.beginning = map[string]*preparedLogin{}
	}
	st.beginning[key] = b
	return b
}

// prepare discovers the authorization server, registers this client if needed,
// and creates the URL that the user has to open.
func (s *Service) prepare(ctx context.Context, cfg upstream.Config, st *state, req loginRequest) (*pendingLogin, *record, error) {
	before, err := s.known(ctx, cfg, st, false)
	if err != nil && tool.KindOf(err) != tool.UpstreamFailed { // an undecryptable login is replaced
		return nil, nil, err
	}
	f, err := s.discover(ctx, cfg, s.addressPolicyOf(cfg, st), req.challenge, issuerOf(before))
	if err != nil {
		return nil, nil, err
	}
	own := oauthOf(cfg)
	if own.ClientID != "" && own.Issuer == "" && before != nil && before.Issuer != "" && before.Issuer != f.meta.Issuer {
		return nil, nil, &tool.Error{Kind: tool.UpstreamFailed, Msg: fmt.Sprintf(
			"it now names a different authorization server (%s), which must not receive the configured client's secret; set oauth.issuer if the change is intended", hostOf(f.meta.Issuer))}
	}
	scopes := chooseScopes(own.Scopes, req, f)
	if ownCredentials(cfg) {
		rec, err := s.ownLogin(ctx, cfg, st, f, req.challenge, scopes)
		return nil, rec, err
	}
	switch {
	case f.meta.Authorization == "":
		return nil, nil, &tool.Error{Kind: tool.UpstreamFailed, Msg: "its authorization server offers no interactive login; set oauth.grant to client_credentials if it has given you a client"}
	case !f.unstated && !slices.Contains(f.meta.PKCE, "S256"):
		return nil, nil, &tool.Error{Kind: tool.UpstreamFailed, Msg: fmt.Sprintf(
			"its authorization server %s does not advertise PKCE (S256), which MCP requires", hostOf(f.meta.Issuer))}
	}
	redirect, err := s.redirect(ctx, cfg, f.meta.Issuer)
	if err != nil {
		return nil, nil, err
	}
	c, err := s.clientFor(ctx, cfg, f, redirect)
	if err != nil {
		return nil, nil, err
	}
	if err := c.bindKey(own, req.challenge, f.meta); err != nil {
		return nil, nil, err
	}
	o, err := s.newPendingLogin(ctx, cfg, f, flow{
		Client: c, Redirect: redirect, Scopes: scopes, Owner: req.owner.ID, Name: req.owner.Name, Admin: req.owner.Admin,
		Personal: st.login.Caller != "", Replaces: sinceOf(before),
	})
	return o, nil, err
}

func issuerOf(rec *record) string {
	if rec == nil {
		return ""
	}
	return rec.Issuer
}

// sinceOf returns the time of a login, which identifies it; zero if there is
// none.
func sinceOf(rec *record) time.Time {
	if rec == nil {
		return time.Time{}
	}
	return rec.Since
}

// chooseScopes returns the scopes to request: those of the configuration,
// otherwise those that the refused request needs, otherwise those that the
// server supports, and those of the previous login. offline_access is added if
// the server supports it.
func chooseScopes(configured []string, req loginRequest, f discovered) []string {
	scopes := configured
	if len(scopes) == 0 {
		if scopes = req.challenge.scopes; len(scopes) == 0 {
			scopes = f.scopes
		}
		scopes = union(req.asked, scopes)
	} else {
		scopes = union(scopes, req.challenge.scopes)
	}
	const offline = "offline_access"
	if slices.Contains(f.meta.Scopes, offline) && len(configured) == 0 {
		scopes = union(scopes, []string{offline})
	}
	return scopes
}

// newPendingLogin creates the URL and stores the state for checking the
// callback. The URL is only for the caller that began the login; logs show it
// without its state.
func (s *Service) newPendingLogin(ctx context.Context, cfg upstream.Config, f discovered, fl flow) (*pendingLogin, error) {
	u, err := url.Parse(f.meta.Authorization)
	if err != nil {
		return nil, unreachable("its authorization endpoint", &errForbidden{"it is not a valid URL"})
	}
	state := rand.Text() + rand.Text()
	verifier := oauth2.GenerateVerifier()
	q := u.Query()
	q.Set("response_type", "code")
	q.Set("client_id", fl.Client.ID)
	q.Set("redirect_uri", fl.Redirect)
	q.Set("state", state)
	q.Set("code_challenge", oauth2.S256ChallengeFromVerifier(verifier))
	q.Set("code_challenge_method", "S256")
	q.Set("resource", f.resource)
	if len(fl.Scopes) > 0 {
		q.Set("scope", strings.Join(fl.Scopes, " "))
	}
	if slices.Contains(fl.Scopes, "offline_access") {
		q.Set("prompt", "consent") // OpenID providers give no refresh token without it
	}
	u.RawQuery, u.Fragment = q.Encode(), ""
	fl.Server, fl.URL, fl.Resource, fl.Meta, fl.Reach = cfg.Name, cfg.URL, f.resource, f.meta, f.reach.json()
	fl.Verifier, fl.Expires = verifier, time.Now().Add(flowTTL)
	s.opts.Redactor.Add(telemetry.Secret(verifier), telemetry.Secret(state))
	time.AfterFunc(flowTTL, func() { s.opts.Redactor.Forget(telemetry.Secret(verifier), telemetry.Secret(state)) })
	if err := s.storeFlow(ctx, state, fl); err != nil {
		return nil, err
	}
	return &pendingLogin{url: u.String(), server: cfg.URL, scopes: fl.Scopes, expires: fl.Expires}, nil
}

// Complete handles the callback of an authorization server and stores the
// login. It returns the upstream's name if it is known, even with an error.
func (s *Service) Complete(ctx context.Context, q url.Values) (server string, err error) {
	f, err := s.takeFlow(ctx, q.Get("state"))
	if err != nil {
		return "", err
	}
	err = s.complete(ctx, q, f)
	s.notifyWaiting(f.login(), err)
	return f.Server, err
}

func (s *Service) complete(ctx context.Context, q url.Values, f flow) error {
	st := s.state(f.login())
	st.mu.Lock()
	st.pending = nil // drop the cached attempts: each can be used only once
	st.mu.Unlock()
	// A callback from another issuer is rejected before its code or error is
	// read.
	iss := q.Get("iss")
	if f.Meta.NamesIssuer && iss == "" || iss != "" && f.Meta.Issuer != "" && iss != f.Meta.Issuer {
		return &tool.Error{Kind: tool.InvalidRequest, Msg: "the response is not from the expected authorization server and was rejected. Start the sign-in again, and tell the server's operator if it happens again"}
	}
	if code := q.Get("error"); code != "" {
		return &tool.Error{
			Kind: tool.Denied, Msg: fmt.Sprintf("the authorization server answered %s; nothing has changed", errorCode(code)),
			Err: errors.New(tool.Shorten(q.Get("error_description"), 300)),
		}
	}
	code := q.Get("code")
	if code == "" || len(code) > 8192 {
		return &tool.Error{Kind: tool.InvalidRequest, Msg: "the authorization server's response has no code; start the sign-in again"}
	}
	cfg, ok := s.opts.Servers(f.Server)
	if !ok || cfg.URL != f.URL || cfg.LoginOf(f.Owner) != f.login() {
		return &tool.Error{Kind: tool.ServerNotFound, Msg: "the server that this login was for is no longer configured"}
	}
	if _, err := s.replaceable(ctx, cfg, f); err != nil {
		return err
	}
	s.opts.Redactor.Add(telemetry.Secret(code))
	defer s.opts.Redactor.Forget(telemetry.Secret(code))
	t, err := s.exchange(ctx, f.Reach.policy(), f.Meta.Token, f.Client.withKey(cfg, f.Meta.Issuer), url.Values{
		"grant_type": {"authorization_code"}, "code": {code}, "redirect_uri": {f.Redirect},
		"code_verifier": {f.Verifier}, "resource": {f.Resource},
	})
	if err != nil {
		if refused, ok := errors.AsType[*errRefused](err); ok && refused.code == "invalid_client" {
			_ = s.deleteRegistration(ctx, f.Meta.name(), f.Redirect) // the next login registers again
		}
		return completionError(err)
	}
	now := time.Now()
	rec := &record{
		URL: f.URL, Resource: f.Resource, Issuer: f.Meta.Issuer, Token: f.Meta.Token, Revocation: f.Meta.Revocation,
		Reach: f.Reach, Client: f.Client, Asked: f.Scopes, Since: now,
	}
	if f.Personal {
		rec.Name = f.Name
	}
	t.applyTo(rec, now)
	if err := s.adoptFlow(ctx, cfg, st, f, rec); err != nil {
		return err
	}
	s.log.InfoContext(ctx, "signed in", "server", f.Server, "caller", f.Owner, "issuer", rec.Issuer, "refreshable", rec.Refresh != "")
	s.audit(tool.WithCaller(ctx, tool.Caller{ID: f.Owner, Name: f.Name}), "login.complete", f.Server, nil)
	s.opts.LoggedIn(st.login)
	return nil
}

// completionError explains why a code could not be exchanged for a token.
func completionError(err error) error {
	if refused, ok := errors.AsType[*errRefused](err); ok {
		return &tool.Error{Kind: tool.UpstreamFailed, Msg: fmt.Sprintf("the authorization server issued no token (%s); start the sign-in again", errorCode(refused.code)), Err: err}
	}
	return unreachable("the authorization server's token endpoint", err)
}

// replaceLogin stores rec as the login of an upstream if the stored one still
// has the version.
func (s *Service) replaceLogin(ctx context.Context, st *state, rec *record, version int64) error {
	s.redactTokens(rec)
	version, err := s.save(ctx, st.login, rec, version)
	if err != nil {
		return fmt.Errorf("store the login of %s: %w", st.login.Server, err)
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	st.rec, st.version, st.read, st.unsaved = rec, version, time.Now(), false
	st.failures, st.retryAt, st.forced, st.wanted = 0, time.Time{}, "", nil
	return nil
}
