package app

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"junctor/internal/config"
	"junctor/internal/oauth"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/upstream"
)

// newOAuth makes what gets and keeps the tokens of upstreams.
func (a *App) newOAuth(rt http.RoundTripper) *oauth.Service {
	return oauth.New(oauth.Options{
		Servers: func(name string) (upstream.Config, bool) { return a.config.Load().Server(name) },
		Store:   a.store, Sealer: Sealer(a.opts.SecretKey, a.opts.DataDir, hasKeyring(a.opts.Environ)),
		RoundTripper: rt, Proxy: http.ProxyFromEnvironment, Redactor: a.opts.Redactor, Log: a.log,
		Node: a.node, Version: a.opts.Version,
		IsAdmin:  a.stillAdmin,
		LoggedIn: func(server string) { _ = a.upstreams.Retry(server) }, // one that was removed needs none
	})
}

// stillAdmin reports whether a caller that was an administrator still is. Only
// keys of the store can be looked up; other credentials are taken at their
// word for as long as an attempt to sign in lasts.
func (a *App) stillAdmin(ctx context.Context, caller string) bool {
	id, isKey := strings.CutPrefix(caller, "key:")
	if !isKey {
		return true
	}
	keys, err := a.store.Keys(ctx)
	if err != nil {
		return false
	}
	for _, k := range keys {
		if k.ID == id {
			return k.Admin && k.Valid(time.Now())
		}
	}
	return true // of the file or the environment
}

// Logins are the logins to upstreams.
func (a *App) Logins() *oauth.Service { return a.oauth }

// Sealer returns what secrets in the store are sealed with, once it is asked
// for: the key from the environment, else one in the keyring of the operating
// system where it may be used, else one in a file that only this user can
// read. Several keys may be given, separated by commas: the first seals, all
// open, so that a key can be replaced.
func Sealer(keys telemetry.Secret, dataDir string, useKeyring bool) func() (*store.Sealer, error) {
	return sync.OnceValues(func() (*store.Sealer, error) {
		if keys == "" {
			key, err := sealingKey(dataDir, useKeyring)
			if err != nil {
				return nil, err
			}
			return store.NewSealer(key)
		}
		var all [][]byte
		for text := range strings.SplitSeq(keys.Reveal(), ",") {
			key, err := store.ParseKey(text)
			if err != nil {
				return nil, err
			}
			all = append(all, key)
		}
		return store.NewSealer(all[0], all[1:]...)
	})
}

// reseal seals anew what was sealed with a key that is being replaced.
func (a *App) reseal(ctx context.Context) error {
	if !strings.Contains(a.opts.SecretKey.Reveal(), ",") {
		return nil
	}
	sealer, err := Sealer(a.opts.SecretKey, a.opts.DataDir, hasKeyring(a.opts.Environ))()
	if err != nil {
		return err
	}
	n, err := store.NewVault(a.store, sealer).Reseal(ctx)
	if err != nil {
		a.log.WarnContext(ctx, "not all secrets could be sealed with the new key", "err", err)
	}
	if n > 0 {
		a.log.InfoContext(ctx, "secrets sealed with the new key", "count", n)
	}
	return nil
}

// callbackAddress is where browsers reach this gateway: under the name that
// its clients know it by, else at its listener.
func callbackAddress(cfg *config.Config, listen string) string {
	if cfg.Auth.JWT != nil {
		if u, err := url.Parse(cfg.Auth.JWT.Audience); err == nil && u.Host != "" && (u.Scheme == "https" || u.Scheme == "http") {
			return u.Scheme + "://" + u.Host + oauth.CallbackPath
		}
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return ""
	}
	if addr, err := netip.ParseAddr(host); err == nil && addr.IsUnspecified() {
		host = "localhost" // a browser on this machine, or behind a forwarded port
	}
	return "http://" + net.JoinHostPort(host, port) + oauth.CallbackPath
}

// login says what is known of an upstream's login.
func (a *App) login(server string) oauth.Info {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	return a.oauth.Info(ctx, server)
}
