package auth

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"golang.org/x/oauth2"

	"junctor/internal/setting"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// OIDCConfig is an OpenID provider with which people sign in on the page.
type OIDCConfig struct {
	// URL of the issuer, exactly as in its metadata.
	Issuer string `json:"issuer"`
	// Client ID of this gateway at the issuer. The path of its redirect URI is /api/oidc/callback.
	ClientID string `json:"clientId"`
	// Client secret. Use ${VAR} to keep it out of the file. PKCE is used with and without a secret. Default: none, for a public client.
	ClientSecret telemetry.Secret `json:"clientSecret,omitempty"`
	// Name of the provider on the page's button, after "Sign in with". Default: the issuer's host.
	Name string `json:"name,omitempty"`
	// Scopes to request. Default: openid, profile and email.
	Scopes []string `json:"scopes,omitempty"`
	// Rights of people, by their claims. Without a matching rule, access is denied. Default: the rules of auth.jwt, if it has the same issuer.
	Rules []JWTRule `json:"rules,omitempty"`
}

// Validate reports everything that is wrong with the provider.
func (c OIDCConfig) Validate() error {
	var errs []error
	if u, err := url.Parse(c.Issuer); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		errs = append(errs, setting.Wrong("issuer", "must be an http or https address"))
	}
	if c.ClientID == "" {
		errs = append(errs, setting.Wrong("clientId", "is missing; register this gateway at the issuer"))
	}
	if c.Scopes != nil && !slices.Contains(c.Scopes, oidc.ScopeOpenID) {
		errs = append(errs, setting.Wrong("scopes", `must have "openid" among them`))
	}
	for i, r := range c.Rules {
		errs = append(errs, setting.PrefixIndex("rules", i, r.Validate()))
	}
	return errors.Join(errs...)
}

// label returns the name of the provider as the page shows it.
func (c OIDCConfig) label() string {
	if u, err := url.Parse(c.Issuer); err == nil && c.Name == "" {
		return u.Host
	}
	return c.Name
}

// personRules returns the rules for people who sign in.
func (c Config) personRules() []JWTRule {
	switch {
	case c.OIDC == nil:
		return nil
	case c.OIDC.Rules != nil:
		return c.OIDC.Rules
	case c.JWT != nil && strings.TrimSuffix(c.JWT.Issuer, "/") == strings.TrimSuffix(c.OIDC.Issuer, "/"):
		return c.JWT.allRules()
	}
	return nil
}

const (
	// OIDCCallbackPath is the path to which the provider redirects browsers.
	OIDCCallbackPath = "/api/oidc/callback"
	// OIDCStartPath begins a sign-in.
	OIDCStartPath = "/api/oidc/start"

	spaceSignIns = "page-signins" // people who have signed in and whose page has no session yet

	oidcFlowTTL    = 10 * time.Minute    // to sign in at the provider
	oidcSignInTTL  = time.Minute         // for the page to fetch its session
	oidcSessionTTL = 12 * time.Hour      // then people sign in again
	oidcClaimsTTL  = 30 * 24 * time.Hour // how long the provider's claims are valid for clients that act for the person
	maxClaims      = 32 << 10
)

// oidcPerson is a person who signed in at the provider.
type oidcPerson struct {
	Issuer   string    `json:"issuer"`
	Subject  string    `json:"subject"`
	Claims   Claims    `json:"claims"`
	Verified time.Time `json:"verified"`
}

func (p *oidcPerson) id() string { return "sub:" + p.Issuer + "|" + p.Subject }

// byPersonClaims returns the caller of a person according to the current rules.
func (g *Gate) byPersonClaims(p *oidcPerson) (tool.Caller, error) {
	r := g.rules.Load()
	if r.oidc == nil || r.oidc.cfg.Issuer != p.Issuer || time.Since(p.Verified) > oidcClaimsTTL {
		return tool.Caller{}, errNoSession
	}
	caller := tool.Caller{ID: p.id(), Name: p.Subject}
	for _, claim := range []string{"preferred_username", "email", "name"} {
		if name, _ := p.Claims[claim].(string); name != "" {
			caller.Name = tool.Shorten(name, 100)
			break
		}
	}
	if !ApplyRules(r.config.personRules(), p.Claims, &caller, g.opts.Profiles) {
		return tool.Caller{}, &tool.Error{Kind: tool.Denied, Msg: "you have signed in, but no rule grants you access; an administrator can add one to auth.oidc.rules or auth.jwt.rules"}
	}
	return caller, nil
}

// oidcProvider is the client of an OpenID provider. The provider's metadata is
// fetched for the first sign-in; a failure is retried with a later one.
type oidcProvider struct {
	cfg    OIDCConfig
	client *http.Client

	mu       sync.Mutex
	provider *oidc.Provider
	failed   time.Time
}

func newOIDCProvider(cfg OIDCConfig) *oidcProvider {
	return &oidcProvider{cfg: cfg, client: &http.Client{Timeout: 10 * time.Second}}
}

func (o *oidcProvider) ready() (*oidc.Provider, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.provider != nil {
		return o.provider, nil
	}
	if time.Since(o.failed) < discoveryRetryDelay {
		return nil, errors.New("the provider could not be reached a moment ago")
	}
	// The key set fetches the keys again whenever the provider rotates them,
	// so its context must outlive this request.
	p, err := oidc.NewProvider(oidc.ClientContext(context.Background(), o.client), o.cfg.Issuer)
	if err != nil {
		o.failed = time.Now()
		return nil, err
	}
	o.provider = p
	return p, nil
}

func (o *oidcProvider) oauth(p *oidc.Provider, redirect string) *oauth2.Config {
	scopes := o.cfg.Scopes
	if scopes == nil {
		scopes = []string{oidc.ScopeOpenID, "profile", "email"}
	}
	return &oauth2.Config{ClientID: o.cfg.ClientID, ClientSecret: o.cfg.ClientSecret.Reveal(), Endpoint: p.Endpoint(), RedirectURL: redirect, Scopes: scopes}
}

// oidcFlow is the state of a sign-in in progress. It is stored in a cookie, so
// that only the browser that started the sign-in can complete it, on any node.
type oidcFlow struct {
	State    string `json:"s"`
	Nonce    string `json:"n"`
	Verifier string `json:"v"`
	// Authorization is the query of the authorization request to return to.
	Authorization string `json:"a,omitempty"`
}

func flowCookie(r *http.Request, value string, age int) *http.Cookie {
	c := &http.Cookie{Name: "junctor_oidc", Value: value, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteLaxMode}
	if secure(r) {
		c.Name, c.Secure = "__Host-junctor_oidc", true
	}
	return c
}

// flowOf returns the sign-in in progress from the request's cookie.
func flowOf(r *http.Request) (oidcFlow, bool) {
	var f oidcFlow
	c, err := r.Cookie(flowCookie(r, "", 0).Name)
	if err != nil {
		return f, false
	}
	data, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil || json.Unmarshal(data, &f) != nil {
		return f, false
	}
	return f, f.State != "" && f.Nonce != "" && f.Verifier != ""
}

// redirectURL returns the address to which the provider redirects the browser.
func (g *Gate) redirectURL(r *http.Request) string {
	if g.opts.BrowserURL != "" {
		return strings.TrimSuffix(g.opts.BrowserURL, "/") + OIDCCallbackPath
	}
	scheme := "http"
	if secure(r) {
		scheme = "https"
	}
	return scheme + "://" + r.Host + OIDCCallbackPath
}

var errNoOIDC = &tool.Error{Kind: tool.MethodNotFound, Msg: "people do not sign in here; auth.oidc is not configured"}

// beginOIDC redirects the browser to the provider.
func (g *Gate) beginOIDC(w http.ResponseWriter, r *http.Request) {
	o := g.rules.Load().oidc
	f := oidcFlow{State: rand.Text(), Nonce: rand.Text(), Verifier: oauth2.GenerateVerifier()}
	if query := r.URL.Query().Get(authorizationParameter); secure(r) && len(query) <= maxAuthorization {
		f.Authorization = query
	}
	if o == nil {
		g.oidcFailed(w, r, f, errNoOIDC)
		return
	}
	p, err := o.ready()
	if err != nil {
		g.oidcFailed(w, r, f, &tool.Error{Kind: tool.Unavailable, Msg: "the sign-in service cannot be reached now; try again shortly", RetryAfter: discoveryRetryDelay, Err: err})
		return
	}
	data, err := json.Marshal(f)
	if err != nil {
		g.oidcFailed(w, r, f, err)
		return
	}
	http.SetCookie(w, flowCookie(r, base64.RawURLEncoding.EncodeToString(data), int(oidcFlowTTL.Seconds())))
	w.Header().Set("Cache-Control", "no-store")
	http.Redirect(w, r, o.oauth(p, g.redirectURL(r)).AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), http.StatusSeeOther)
}

// finishOIDC handles the provider's redirect. Without TLS the session is
// stored by the page, not in a cookie, so the page gets a ticket with which it
// fetches the session. A sign-in that started on the consent page gets its
// session immediately.
func (g *Gate) finishOIDC(w http.ResponseWriter, r *http.Request) {
	person, flow, err := g.personFromCallback(r)
	if err == nil {
		_, err = g.byPersonClaims(person) // a person without rights gets no session
	}
	var ticket string
	if err == nil {
		ticket, err = g.storeSignIn(r.Context(), person, flow)
	}
	to := authorizationAddress(flow.Authorization)
	if to == "/" || !secure(r) {
		to = "/?signin=" + url.QueryEscape(ticket)
	} else if err == nil {
		var p pageSession
		if p, err = g.redeemSignIn(w, r, ticket); err == nil {
			_, _, err = g.beginSession(w, r, p)
		}
	}
	if err != nil {
		g.oidcFailed(w, r, flow, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, to, http.StatusSeeOther)
}

func (g *Gate) personFromCallback(r *http.Request) (*oidcPerson, oidcFlow, error) {
	o := g.rules.Load().oidc
	if o == nil {
		return nil, oidcFlow{}, errNoOIDC
	}
	q := r.URL.Query()
	f, ok := flowOf(r)
	if !ok || subtle.ConstantTimeCompare([]byte(f.State), []byte(q.Get("state"))) != 1 {
		return nil, f, &tool.Error{Kind: tool.Unauthenticated, Msg: "this sign-in was not started in this browser, or is too old; sign in again"}
	}
	if problem := q.Get("error"); problem != "" {
		return nil, f, &tool.Error{Kind: tool.Unauthenticated, Msg: "the sign-in service refused: " + tool.Shorten(cmp.Or(q.Get("error_description"), problem), 300)}
	}
	if iss := q.Get("iss"); iss != "" && iss != o.cfg.Issuer { // RFC 9207
		return nil, f, &tool.Error{Kind: tool.Unauthenticated, Msg: "the response is from a different sign-in service"}
	}
	p, err := o.ready()
	if err != nil {
		return nil, f, &tool.Error{Kind: tool.Unavailable, Msg: "the sign-in service cannot be reached now; try again shortly", RetryAfter: discoveryRetryDelay, Err: err}
	}
	ctx := oidc.ClientContext(r.Context(), o.client)
	person, err := o.exchange(ctx, p, g.redirectURL(r), q.Get("code"), f)
	if err != nil {
		return nil, f, &tool.Error{Kind: tool.Unauthenticated, Msg: "the sign-in could not be completed; sign in again", Err: err}
	}
	return person, f, nil
}

// exchange redeems the code and returns the person who signed in.
func (o *oidcProvider) exchange(ctx context.Context, p *oidc.Provider, redirect, code string, f oidcFlow) (*oidcPerson, error) {
	config := o.oauth(p, redirect)
	token, err := config.Exchange(ctx, code, oauth2.VerifierOption(f.Verifier))
	if err != nil {
		return nil, fmt.Errorf("redeem the code: %w", err)
	}
	raw, _ := token.Extra("id_token").(string)
	checked, err := p.VerifierContext(ctx, &oidc.Config{ClientID: o.cfg.ClientID, SupportedSigningAlgs: algorithms}).Verify(ctx, raw)
	if err != nil {
		return nil, fmt.Errorf("check the ID token: %w", err)
	}
	if subtle.ConstantTimeCompare([]byte(checked.Nonce), []byte(f.Nonce)) != 1 {
		return nil, errors.New("the ID token has the wrong nonce")
	}
	person := &oidcPerson{Issuer: o.cfg.Issuer, Subject: checked.Subject, Claims: Claims{}, Verified: time.Now().UTC()}
	if person.Subject == "" {
		return nil, errors.New("the ID token has no subject")
	}
	if p.UserInfoEndpoint() != "" { // many providers return groups and email only there
		info, err := p.UserInfo(ctx, config.TokenSource(ctx, token))
		if err != nil {
			return nil, fmt.Errorf("read the claims: %w", err)
		}
		if info.Subject != checked.Subject {
			return nil, errors.New("the claims are about a different subject")
		}
		if err := info.Claims(&person.Claims); err != nil {
			return nil, fmt.Errorf("read the claims: %w", err)
		}
	}
	if err := checked.Claims(&person.Claims); err != nil { // the signed claims take precedence over the endpoint's
		return nil, fmt.Errorf("read the ID token: %w", err)
	}
	return person, nil
}

// signedInPerson is a person who has signed in and has no session yet.
type signedInPerson struct {
	Person *oidcPerson `json:"person"`
	Flow   []byte      `json:"flow"` // hash of the state: the browser must be the same
}

func (g *Gate) storeSignIn(ctx context.Context, p *oidcPerson, f oidcFlow) (string, error) {
	data, err := json.Marshal(signedInPerson{p, hash(f.State)})
	if err != nil {
		return "", err
	}
	if len(data) > maxClaims {
		return "", &tool.Error{Kind: tool.TooLarge, Msg: fmt.Sprintf("the sign-in service sent %d bytes of claims about you; at most %d are allowed", len(data), maxClaims)}
	}
	ticket := rand.Text()
	_, err = g.opts.Sessions.PutValue(ctx, store.Value{Space: spaceSignIns, Name: nameOf(ticket), Data: data, Expires: time.Now().Add(oidcSignInTTL)}, 0)
	if err != nil {
		return "", unavailable(err)
	}
	return ticket, nil
}

// redeemSignIn returns the session for a ticket. A ticket works once, and only
// in the browser that signed in.
func (g *Gate) redeemSignIn(w http.ResponseWriter, r *http.Request, ticket string) (pageSession, error) {
	again := &tool.Error{Kind: tool.Unauthenticated, Msg: "the sign-in is too old, or was started in another browser; sign in again"}
	v, err := g.opts.Sessions.Value(r.Context(), spaceSignIns, nameOf(ticket))
	if errors.Is(err, store.ErrNotFound) || err == nil && len(v.Data) == 0 {
		return pageSession{}, again
	}
	if err != nil {
		return pageSession{}, unavailable(err)
	}
	var s signedInPerson
	if err := json.Unmarshal(v.Data, &s); err != nil {
		return pageSession{}, err
	}
	f, ok := flowOf(r)
	if !ok || subtle.ConstantTimeCompare(s.Flow, hash(f.State)) != 1 {
		return pageSession{}, again
	}
	// Of two concurrent requests with the same ticket, only one write
	// succeeds.
	_, err = g.opts.Sessions.PutValue(r.Context(), store.Value{Space: spaceSignIns, Name: v.Name, Expires: v.Expires}, v.Version)
	if errors.Is(err, store.ErrConflict) {
		return pageSession{}, again
	}
	if err != nil {
		return pageSession{}, unavailable(err)
	}
	caller, err := g.byPersonClaims(s.Person)
	if err != nil {
		return pageSession{}, failedPerson(err)
	}
	http.SetCookie(w, flowCookie(r, "", -1))
	return pageSession{Person: s.Person, Owner: caller.ID, Name: caller.Name}, nil
}

// failedPerson converts an error of byPersonClaims to one for the caller.
func failedPerson(err error) error {
	if errors.Is(err, errNoSession) {
		return failed(err)
	}
	return err
}
