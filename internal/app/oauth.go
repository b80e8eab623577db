package app

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"junctor/internal/auth"
	"junctor/internal/authserver"
	"junctor/internal/oauth"
	"junctor/internal/store"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// newOAuth creates the service that obtains and stores the tokens of
// upstreams.
func (a *App) newOAuth(rt http.RoundTripper) *oauth.Service {
	return oauth.New(oauth.Options{
		Servers: func(name string) (upstream.Config, bool) {
			cfg, ok := a.config.Load().Server(name)
			if cfg.OpenAPI != "" {
				cfg = a.openAPI().Resolve(cfg)
			}
			return cfg, ok
		},
		Store: a.store, Sealer: a.sealer,
		RoundTripper: rt, Proxy: http.ProxyFromEnvironment, Redactor: a.opts.Redactor, Log: a.log,
		Node: a.node, Version: a.opts.Version,
		IsAdmin: a.stillAdmin,
		Revoked: a.revoked,
		Audit:   a.audit.Audit,
		LoggedIn: func(l upstream.Login) {
			if l.Caller != "" {
				a.upstreams.SignedIn(l.Server, l.Caller)
				return
			}
			_ = a.upstreams.Retry(l.Server) // fails only if the server was removed
		},
		LoggedOut: func(l upstream.Login) {
			if l.Caller != "" {
				a.upstreams.SignedOut(l.Server, l.Caller)
			}
		},
	})
}

// newAuthServer creates the authorization server for clients of the gateway.
func (a *App) newAuthServer() *authserver.Server {
	return authserver.New(authserver.Options{
		URL: a.issuer, Store: a.store, Sealer: a.sealer,
		Fetch: a.oauth.FetchPublic, Log: a.log,
		Profiles: func(c tool.Caller) []string { return a.profiles.Usable(&c) },
		Audit:    a.audit.Audit,
	})
}

// issuer returns the URL of the gateway's own authorization server, or "" if
// it is disabled.
func (a *App) issuer() string {
	cfg := a.config.Load()
	if !cfg.Auth.Server {
		return ""
	}
	return cfg.PublicURL
}

// stillAdmin reports whether a caller that was an administrator still is. Only
// keys in the store can be checked again; other credentials are trusted for
// the duration of a sign-in.
func (a *App) stillAdmin(ctx context.Context, caller string) bool {
	k, found, err := a.keyOf(ctx, caller)
	return err == nil && (!found || k.Admin && k.Valid(time.Now())) // others are from the file or the environment
}

// revoked reports whether the key of a caller was revoked.
func (a *App) revoked(ctx context.Context, caller string) (bool, error) {
	k, _, err := a.keyOf(ctx, caller)
	return !k.Revoked.IsZero(), err
}

// keyOf returns the stored key of a caller.
func (a *App) keyOf(ctx context.Context, caller string) (k store.Key, found bool, err error) {
	id, isKey := strings.CutPrefix(caller, "key:")
	if !isKey {
		return k, false, nil
	}
	keys, err := a.store.Keys(ctx)
	if i := slices.IndexFunc(keys, func(k store.Key) bool { return k.ID == id }); err == nil && i >= 0 {
		return keys[i], true, nil
	}
	return k, false, err
}

// gatewayActor is the audit log's actor for automatic actions of the gateway.
// It has no rights.
var gatewayActor = tool.Caller{ID: "gateway", Name: "gateway", Servers: tool.Anonymous.Servers, Tools: tool.Anonymous.Tools}

// endLoginsOfKeys ends the logins that revoked keys have to servers, until ctx
// is done.
func (a *App) endLoginsOfKeys(ctx context.Context) error {
	ctx = tool.WithCaller(ctx, gatewayActor)
	changed := a.store.Watch(ctx, store.TopicKeys)
	ended := map[string]bool{} // callers whose logins have been ended
	for {
		keys, err := a.store.Keys(ctx)
		revoked := map[string]bool{}
		for _, k := range keys {
			if caller := "key:" + k.ID; !k.Revoked.IsZero() && !ended[caller] {
				revoked[caller] = true
			}
		}
		if err == nil && len(revoked) > 0 {
			err = a.oauth.EndLogins(ctx, func(caller string) bool { return revoked[caller] })
		}
		if err == nil {
			maps.Copy(ended, revoked)
		} else if ctx.Err() == nil {
			a.log.WarnContext(ctx, "cannot end the logins of revoked keys; retrying", "after", endLoginsRetry, "err", err)
			select {
			case <-ctx.Done():
			case <-time.After(endLoginsRetry):
				continue
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// endLoginsRetry is the delay after a failed attempt to end the logins of a
// revoked key.
const endLoginsRetry = time.Minute

// CallerNamed returns the caller with an ID, or the caller of the key with a
// name.
func (a *App) CallerNamed(ctx context.Context, name string) (tool.Caller, error) {
	keys, err := a.store.Keys(ctx)
	if err != nil {
		return tool.Caller{}, err
	}
	for _, k := range keys { // a new key may have the name of a revoked one
		if k.Name == name && k.Revoked.IsZero() || "key:"+k.ID == name {
			return tool.Caller{ID: "key:" + k.ID, Name: k.Name}, nil
		}
	}
	for _, c := range auth.FixedCallers(a.config.Load().Auth, a.opts.AdminKey) {
		if c.Name == name || c.ID == name {
			return tool.Caller{ID: c.ID, Name: c.Name}, nil
		}
	}
	if name == tool.Local.ID || strings.HasPrefix(name, "sub:") || strings.HasPrefix(name, "client:") {
		return tool.Caller{ID: name, Name: name}, nil
	}
	return tool.Caller{}, fmt.Errorf("there is no key %q (see junctor keys list); give the name of a key, or the id of a person as the call log shows it (sub:ISSUER|SUBJECT)", name)
}

// Logins returns the service that manages the logins to upstreams.
func (a *App) Logins() *oauth.Service { return a.oauth }

// reencrypt re-encrypts values that were encrypted with a replaced key.
func (a *App) reencrypt(ctx context.Context) error {
	if !strings.Contains(a.opts.SecretKey.Reveal(), ",") {
		return nil
	}
	sealer, err := a.sealer()
	if err != nil {
		return err
	}
	n, err := store.NewVault(a.store, sealer).Reseal(ctx)
	if err != nil {
		a.log.WarnContext(ctx, "not all secrets could be encrypted with the new key", "err", err)
	}
	if n > 0 {
		a.log.InfoContext(ctx, "secrets encrypted with the new key", "count", n)
	}
	return nil
}

// login returns information about the login to an upstream that a caller's
// requests use.
func (a *App) login(server, caller string) oauth.Info {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return a.oauth.Info(ctx, server, caller)
}
