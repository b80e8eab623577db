package auth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"time"

	"junctor/internal/httperr"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// Options are what a Gate is made of.
type Options struct {
	Config   Config
	Listen   string           // the address of the listener
	Origins  []string         // pages of other sites that may call
	Keys     KeyStore         // where API keys are
	AdminKey telemetry.Secret // the first administrator's key, from the environment
	Secret   []byte           // what cookies are sealed with
	Log      *slog.Logger

	// Public says which requests need no caller: the page itself, health.
	Public func(*http.Request) bool
}

// Gate stands before the HTTP faces.
type Gate struct {
	opts     Options
	loopback bool
	rules    atomic.Pointer[rules]
	keys     *keyring
	jar      cookieJar
	log      *slog.Logger
}

// rules are what a configuration says, and what another one changes.
type rules struct {
	config  Config
	open    bool // loopback without a key
	origins []string
	jwt     *issuer // nil when none is configured
}

// NewGate returns a Gate; it fetches nothing until a token comes.
func NewGate(o Options) *Gate {
	g := &Gate{
		opts: o, loopback: IsLoopback(o.Listen),
		keys: newKeyring(o.Keys), jar: cookieJar{o.Secret},
		log: o.Log.With("component", "auth"),
	}
	g.SetConfig(o.Config, o.Origins)
	return g
}

// SetConfig puts other rules into force, for requests that come from now on: a
// key that was taken out opens nothing any more.
func (g *Gate) SetConfig(cfg Config, origins []string) {
	r := &rules{config: cfg, open: g.loopback && cfg.Loopback != LoopbackKey, origins: origins}
	if cfg.JWT != nil {
		r.jwt = newIssuer(*cfg.JWT)
		if old := g.rules.Load(); old != nil && old.jwt != nil && reflect.DeepEqual(old.jwt.cfg, *cfg.JWT) {
			r.jwt = old.jwt // it has the issuer's keys already
		}
	}
	g.keys.fix(cfg, g.opts.AdminKey)
	g.rules.Store(r)
}

// CurrentConfig returns the rules and the origins in force.
func (g *Gate) CurrentConfig() (Config, []string) {
	r := g.rules.Load()
	return r.config, r.origins
}

// Ready reports why the gateway must not listen: an address that others can
// reach, and nothing that tells them apart.
func Ready(listen string, cfg Config, hasKey bool) error {
	if IsLoopback(listen) || hasKey || len(cfg.Keys) > 0 || cfg.JWT != nil {
		return nil
	}
	return fmt.Errorf("refusing to listen on %s without authentication: everyone who reaches it could run tools. "+
		"Make a key (junctor keys add NAME --admin), or set JUNCTOR_ADMIN_KEY, or auth.keys or auth.jwt in the configuration, or listen on 127.0.0.1", listen)
}

// Run writes down now and then when keys were used, until ctx is done.
func (g *Gate) Run(ctx context.Context) error {
	tick := time.NewTicker(10 * time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
			defer cancel()
			g.flush(last)
			return nil
		case <-tick.C:
			g.flush(ctx)
		}
	}
}

func (g *Gate) flush(ctx context.Context) {
	if err := g.keys.flush(ctx); err != nil {
		g.log.WarnContext(ctx, "last use of keys not written", "err", err)
	}
}

// Wrap lets requests through to next that may go there, with their caller.
func (g *Gate) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := g.checkHost(r); err != nil {
			httperr.Write(w, r, err)
			return
		}
		from := g.originOf(r)
		if g.cors(w, r, from) {
			return
		}
		switch {
		case from == badOrigin || from == oddRequest:
			httperr.Write(w, r, &tool.Error{
				Kind: tool.Denied,
				Msg:  fmt.Sprintf("pages of %q may not call this gateway; add the origin to cors.origins to allow it", r.Header.Get("Origin")),
			})
			return
		case from == noOrigin && embedded(r) && !g.public(r):
			httperr.Write(w, r, &tool.Error{Kind: tool.Denied, Msg: "pages of other sites may not load this; it is for programs and for the gateway's own page"})
			return
		}
		caller, err := g.identify(r, from)
		if err != nil {
			g.challenge(w, r, err)
			httperr.Write(w, r, err)
			return
		}
		next.ServeHTTP(w, r.WithContext(tool.WithCaller(r.Context(), caller)))
	})
}

func (g *Gate) public(r *http.Request) bool { return g.opts.Public != nil && g.opts.Public(r) }

// identify says who sent the request.
func (g *Gate) identify(r *http.Request, from origin) (tool.Caller, error) {
	public := g.public(r)
	if presented := bearer(r); presented != "" {
		caller, err := g.present(r.Context(), presented)
		if err != nil && public {
			return nobody, nil // the page loads whatever its key
		}
		return caller, err
	}
	if c, err := r.Cookie(CookieName); err == nil && from != otherPage {
		if caller, ok := g.fromCookie(r.Context(), c.Value); ok {
			return caller, nil
		}
	}
	if g.rules.Load().open {
		local := tool.Local
		// What changes the configuration can start programs: on open
		// loopback it takes the gateway's own page, which no other site can
		// act as, and not just any program's request.
		local.Admin = from == ownOrigin
		return local, nil
	}
	if public {
		return nobody, nil
	}
	return tool.Caller{}, &tool.Error{
		Kind: tool.Unauthenticated,
		Msg:  "no credentials; send an API key as Authorization: Bearer KEY (junctor keys add NAME makes one)",
	}
}

// nobody is a caller that was not asked who it is, and may do nothing.
var nobody = tool.Caller{ID: "nobody", Name: "nobody", Servers: []string{}, Tools: []string{}}

// bearer returns the credential that the request carries.
func bearer(r *http.Request) string {
	if key := r.Header.Get("X-API-Key"); key != "" {
		return key
	}
	scheme, credential, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(credential)
	}
	return ""
}

// present checks a credential: a token when it looks like one and an issuer is
// configured, else a key.
func (g *Gate) present(ctx context.Context, credential string) (tool.Caller, error) {
	if jwt := g.rules.Load().jwt; jwt != nil && strings.Count(credential, ".") == 2 {
		return jwt.verify(ctx, credential)
	}
	return g.byKey(ctx, hash(credential))
}

// byKey returns the caller of the key with the hash.
func (g *Gate) byKey(ctx context.Context, h []byte) (tool.Caller, error) {
	k, err := g.keys.find(ctx, h)
	switch {
	case errors.Is(err, errUnknownKey):
		return tool.Caller{}, &tool.Error{Kind: tool.Unauthenticated, Msg: "the API key is unknown, expired or revoked", Err: err}
	case err != nil:
		return tool.Caller{}, &tool.Error{Kind: tool.Unavailable, Msg: "the key cannot be checked now; try again shortly", RetryAfter: 2 * time.Second, Err: err}
	}
	return callerOf(k), nil
}

func (g *Gate) fromCookie(ctx context.Context, value string) (tool.Caller, bool) {
	h, ok := g.jar.open(value, time.Now())
	if !ok {
		return tool.Caller{}, false
	}
	caller, err := g.byKey(ctx, h)
	return caller, err == nil
}

// Session is the page's sign-in: GET says who the caller is, POST {"key"}
// signs in with a key, DELETE signs out.
func (g *Gate) Session(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		var body struct {
			Key telemetry.Secret `json:"key"`
		}
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4096)).Decode(&body); err != nil || body.Key == "" {
			httperr.Write(w, r, &tool.Error{Kind: tool.InvalidRequest, Msg: `send {"key": "…"}`})
			return
		}
		h := hash(body.Key.Reveal())
		caller, err := g.byKey(r.Context(), h)
		if err != nil {
			httperr.Write(w, r, err)
			return
		}
		g.jar.set(w, r, h)
		g.who(w, caller)
	case http.MethodDelete:
		g.jar.drop(w, r)
		w.WriteHeader(http.StatusNoContent)
	default:
		g.who(w, tool.CallerFrom(r.Context()))
	}
}

// who writes the caller as the page wants to know it.
func (g *Gate) who(w http.ResponseWriter, c tool.Caller) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(map[string]any{
		"caller":        c.Name,
		"admin":         c.Admin,
		"signedIn":      c.ID != nobody.ID,
		"needsSignIn":   c.ID == nobody.ID,
		"authenticated": c.ID != nobody.ID && c.ID != tool.Local.ID,
	})
}

var _ KeyStore = store.Keys(nil)
