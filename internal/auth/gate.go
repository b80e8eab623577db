package auth

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"junctor/internal/httperr"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// Options are the settings and dependencies of a Gate.
type Options struct {
	Config   Config
	Listen   string           // the address of the listener
	Origins  []string         // pages of other sites that may call
	Keys     KeyStore         // the stored API keys
	Sessions SessionStore     // the page's sessions
	AdminKey telemetry.Secret // the first administrator's key, from the environment
	// LocalToken gives the page on this machine administrator's rights; see
	// [LocalToken]. It is only accepted on loopback listeners.
	LocalToken telemetry.Secret
	// Changes notifies of keys and sessions that other processes change; if
	// nil, the gate checks every second.
	Changes store.Changes
	Log     *slog.Logger

	// Profiles has the profiles that keys and tokens are bound to.
	Profiles Profiles
	// Tokens checks the tokens of the gateway's own authorization server; nil
	// if there is none.
	Tokens Tokens
	// PublicURL returns the address, scheme://host, by which clients know the
	// gateway, if its own authorization server is turned on. It may be nil.
	PublicURL func() string
	// Public reports which requests need no caller: the page itself, health.
	Public func(*http.Request) bool
	// BrowserURL is the address at which browsers reach the gateway; if empty,
	// the host of each request is used.
	BrowserURL string
	// Audit records sign-ins and sign-outs. It may be nil.
	Audit func(ctx context.Context, action, target string, detail any)
}

// Gate authenticates the requests to all HTTP APIs.
type Gate struct {
	opts       Options
	loopback   bool
	localToken telemetry.Secret
	local      identity // of callers of an open loopback listener
	rules      atomic.Pointer[rules]
	keys       *keyring
	sessions   *sessions
	inUse      credentials
	changed    chan struct{} // signaled after a change of the rules
	log        *slog.Logger
}

// rules are derived from a configuration and replaced with it.
type rules struct {
	config  Config
	open    bool // loopback without a key
	origins []string
	proxies []netip.Prefix
	jwt     *issuer       // nil when none is configured
	oidc    *oidcProvider // nil when none is configured
}

// NewGate returns a Gate. It makes no requests until it has to check a token.
func NewGate(o Options) *Gate {
	g := &Gate{
		opts: o, loopback: IsLoopback(o.Listen),
		keys: newKeyring(o.Keys), sessions: newSessions(o.Sessions), changed: make(chan struct{}, 1),
		log: o.Log.With(telemetry.KeyComponent, "auth"),
	}
	if g.loopback {
		g.localToken = o.LocalToken
	}
	// A configuration change can start programs, and any program on this
	// machine can send any header, so administrator's rights require a
	// credential.
	g.local = identity{caller: tool.Local, renew: g.stillOpen}
	g.local.caller.Admin = false
	g.SetConfig(o.Config, o.Origins)
	return g
}

// SetConfig replaces the rules. Removed keys are rejected from now on; Run
// ends the requests and sessions that use them.
func (g *Gate) SetConfig(cfg Config, origins []string) {
	r := &rules{config: cfg, open: g.loopback && cfg.Loopback != LoopbackKey, origins: origins}
	r.proxies, _ = parseProxies(cfg.TrustedProxies) // checked by Validate
	if r.open {
		// Validate rejects this combination for the main listener, but a debug
		// port is on loopback whatever the main listener's address is.
		r.origins = slices.DeleteFunc(slices.Clone(origins), func(o string) bool { return o == "*" })
	}
	if cfg.JWT != nil {
		r.jwt = newIssuer(*cfg.JWT, g.opts.Profiles)
		if old := g.rules.Load(); old != nil && old.jwt != nil && reflect.DeepEqual(old.jwt.cfg, *cfg.JWT) {
			r.jwt = old.jwt // it has the issuer's keys already
		}
	}
	if cfg.OIDC != nil {
		r.oidc = newOIDCProvider(*cfg.OIDC)
		if old := g.rules.Load(); old != nil && old.oidc != nil && reflect.DeepEqual(old.oidc.cfg, *cfg.OIDC) {
			r.oidc = old.oidc // it has the provider's metadata already
		}
	}
	g.keys.setFixed(cfg, g.opts.AdminKey)
	g.rules.Store(r)
	select {
	case g.changed <- struct{}{}:
	default:
	}
}

// CurrentConfig returns the rules and the origins in effect.
func (g *Gate) CurrentConfig() (Config, []string) {
	r := g.rules.Load()
	return r.config, r.origins
}

// Ready returns an error if the gateway must not listen: the address is
// reachable from other machines and no authentication is configured.
func Ready(listen string, cfg Config, hasKey bool) error {
	if IsLoopback(listen) || hasKey || len(cfg.Keys) > 0 || cfg.JWT != nil || cfg.OIDC != nil {
		return nil
	}
	return fmt.Errorf("refusing to listen on %s without authentication: everyone who reaches it could run tools. "+
		"Make a key (junctor keys add NAME --admin), or set JUNCTOR_ADMIN_KEY, or auth.keys, auth.jwt or auth.oidc in the configuration, or listen on 127.0.0.1", listen)
}

// How often credentials in use are checked, how often if changes are also
// announced, and the timeout of a check.
const (
	recheckInterval         = time.Second
	fallbackRecheckInterval = 5 * time.Second
	recheckTimeout          = 5 * time.Second
)

// Run ends the users of credentials that are no longer valid and periodically
// stores when keys were last used, until ctx is done.
func (g *Gate) Run(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	every := recheckInterval
	var keys, sessions, grants <-chan struct{}
	if g.opts.Changes != nil {
		every = fallbackRecheckInterval
		keys = g.opts.Changes.Watch(ctx, store.TopicKeys)
		sessions = g.opts.Changes.Watch(ctx, store.TopicValues(SpaceSessions))
		grants = g.opts.Changes.Watch(ctx, store.TopicValues(SpaceGrants))
	}
	recheck := time.NewTicker(every)
	defer recheck.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			g.flush(last)
			return nil
		case <-tick.C:
			g.flush(ctx)
			continue
		case <-recheck.C:
		case <-keys:
		case <-sessions:
		case <-grants:
		case <-g.changed:
		}
		g.recheck(ctx)
	}
}

// recheck checks the credentials in use against the store, bypassing the
// caches.
func (g *Gate) recheck(ctx context.Context) {
	g.keys.markStale()
	g.sessions.markStale()
	if g.opts.Tokens != nil {
		g.opts.Tokens.MarkStale()
	}
	ctx, cancel := context.WithTimeout(ctx, recheckTimeout)
	defer cancel()
	g.inUse.recheck(ctx)
}

func (g *Gate) flush(ctx context.Context) {
	if err := g.keys.flush(ctx); err != nil {
		g.log.WarnContext(ctx, "cannot store the last use of keys", "err", err)
	}
}

// Wrap returns a handler that authenticates requests, passes those that are
// allowed to next with their caller in the context, and rejects the others.
func (g *Gate) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		forwarded, err := g.applyForwarding(r)
		if err != nil {
			httperr.Reject(w, r, reasonForwarded, err)
			return
		}
		if err := g.checkHost(r); err != nil && !forwarded { // a trusted proxy has host names of its own
			httperr.Reject(w, r, reasonHost, err)
			return
		}
		from := g.originOf(r)
		if g.cors(w, r, from) {
			return
		}
		switch {
		case from == badOrigin || from == oddRequest:
			httperr.Reject(w, r, reasonOrigin, &tool.Error{
				Kind: tool.Denied,
				Msg:  fmt.Sprintf("pages of %q may not call this gateway; add the origin to cors.origins to allow it", r.Header.Get("Origin")),
			})
			return
		case from == noOrigin && embedded(r) && !g.public(r):
			httperr.Reject(w, r, reasonOrigin, &tool.Error{Kind: tool.Denied, Msg: "pages of other sites may not load this; it is for programs and for the gateway's own page"})
			return
		}
		if forwarded {
			r = httperr.WithContext(r, tool.SetValue(r.Context(), forwardedKey{}, true))
		}
		id, reason, err := g.identify(r, from, forwarded)
		if err != nil {
			g.challenge(w, r, err)
			httperr.Reject(w, r, reason, err)
			return
		}
		bound, use := g.inUse.bind(r, id)
		defer use.release()
		next.ServeHTTP(w, bound)
	})
}

type forwardedKey struct{}

// isForwarded reports whether a trusted proxy forwarded the request.
func isForwarded(r *http.Request) bool { return r.Context().Value(forwardedKey{}) != nil }

// The reasons for rejecting requests, as they appear in metrics and logs.
const (
	reasonForwarded   = "forwarded"
	reasonHost        = "host"
	reasonOrigin      = "origin"
	reasonKey         = "key"
	reasonToken       = "token"
	reasonSession     = "session"
	reasonCredentials = "no_credentials"
)

func (g *Gate) audit(ctx context.Context, action, target string, detail any) {
	if g.opts.Audit != nil {
		g.opts.Audit(ctx, action, target, detail)
	}
}

func (g *Gate) public(r *http.Request) bool { return g.opts.Public != nil && g.opts.Public(r) }

// identify returns the sender of the request. On failure it returns which check
// failed.
func (g *Gate) identify(r *http.Request, from origin, forwarded bool) (id identity, reason string, err error) {
	anyone := identity{caller: tool.Anonymous}
	open := g.rules.Load().open && !forwarded // a forwarded request is not from this machine
	if open {
		anyone = g.local
	}
	public := g.public(r)
	id, reason, err = g.presented(r, from, forwarded)
	switch {
	case err != nil && public:
		return anyone, "", nil // the page loads whatever the credentials are
	case err != nil || id.credential != "":
		return id, reason, err
	case open || public:
		return anyone, "", nil
	}
	return identity{}, reasonCredentials, &tool.Error{
		Kind: tool.Unauthenticated,
		Msg:  "no credentials; send an API key as Authorization: Bearer KEY (junctor keys add NAME makes one)",
	}
}

// presented checks the credential of the request. Without a credential, the
// returned identity has none either.
func (g *Gate) presented(r *http.Request, from origin, forwarded bool) (id identity, reason string, err error) {
	if key := bearer(r); key != "" {
		return g.present(r.Context(), key, r.URL.Path)
	}
	if from == otherPage { // sessions are for the gateway's own page
		return identity{}, "", nil
	}
	if ticket := ticketOf(r); ticket != "" {
		name, err := g.sessions.redeem(r.Context(), ticket)
		if err == nil {
			id, err = g.bySession(r.Context(), name)
		}
		if err != nil {
			return identity{}, reasonSession, failed(err)
		}
	} else if name := sessionOf(r); name != "" {
		id, err = g.bySession(r.Context(), name)
		if errors.Is(err, errNoSession) && r.Header.Get(SessionHeader) == "" {
			return identity{}, "", nil // browsers send expired cookies on their own
		}
		if err != nil {
			return identity{}, reasonSession, failed(err)
		}
	}
	if forwarded && id.caller.ID == tool.Local.ID {
		return identity{}, reasonSession, &tool.Error{Kind: tool.Unauthenticated, Msg: "this session is valid only on the gateway's machine; sign in with a key"}
	}
	return id, "", nil
}

// ticketOf returns the ticket of a WebSocket request, or "".
func ticketOf(r *http.Request) string {
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		return ""
	}
	return r.URL.Query().Get(ticketParameter)
}

func (g *Gate) isLocalToken(token string) bool {
	want := g.localToken.Reveal()
	return want != "" && subtle.ConstantTimeCompare([]byte(want), []byte(token)) == 1
}

// bearer returns the key or token of the request, or "".
func bearer(r *http.Request) string {
	if key := r.Header.Get("X-Api-Key"); key != "" {
		return key
	}
	scheme, credential, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(credential)
	}
	return ""
}

// present checks a credential for a path: a token of the gateway's own
// authorization server, a token of the configured issuer when it looks like one
// and an issuer is configured, else a key.
func (g *Gate) present(ctx context.Context, credential, path string) (identity, string, error) {
	again := func(ctx context.Context) (identity, error) {
		id, _, err := g.present(ctx, credential, path)
		return id, err
	}
	if g.opts.Tokens != nil && strings.Count(credential, ".") == 2 {
		if id, own, err := g.byToken(ctx, credential, path); own {
			return id, reasonToken, err
		}
	}
	if jwt := g.rules.Load().jwt; jwt != nil && strings.Count(credential, ".") == 2 {
		id, err := jwt.verify(ctx, credential)
		id.renew = again
		return id, reasonToken, err
	}
	id, err := g.byKey(ctx, hash(credential))
	id.renew = again
	return id, reasonKey, err
}

// byKey returns the caller of the key with the hash.
func (g *Gate) byKey(ctx context.Context, h []byte) (identity, error) {
	k, err := g.keys.find(ctx, h)
	switch {
	case errors.Is(err, errUnknownKey):
		return identity{}, &tool.Error{Kind: tool.Unauthenticated, Msg: "the API key is unknown, expired or revoked", Err: err}
	case err != nil:
		return identity{}, &tool.Error{Kind: tool.Unavailable, Msg: "the key cannot be checked now; try again shortly", RetryAfter: 2 * time.Second, Err: err}
	}
	return identity{caller: g.callerOf(k), credential: "key:" + k.ID, expires: k.Expires}, nil
}

var (
	_ KeyStore     = store.Keys(nil)
	_ SessionStore = store.Values(nil)
)
