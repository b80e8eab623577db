package openapi

import (
	"context"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"junctor/internal/address"
	"junctor/internal/mcpclient"
	"junctor/internal/telemetry"
	"junctor/internal/upstream"
)

// endpoints are the OAuth endpoints for signing in to a service, from its
// document.
type endpoints struct {
	base                 string
	authorization, token string
	scopes               []string
}

// Logins caches the OAuth endpoints of services, for upstreams whose entry
// configures a client (oauth). It is safe for concurrent use.
type Logins struct {
	mu    sync.Mutex
	known map[string]endpoints // by document and base URL
}

func loginKey(cfg upstream.Config) string { return cfg.OpenAPI + " " + cfg.BaseURL }

func (l *Logins) put(cfg upstream.Config, e endpoints) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil {
		l.known = map[string]endpoints{}
	}
	l.known[loginKey(cfg)] = e
}

// readTimeout bounds reading a document for its endpoints only, and reloading
// it.
const readTimeout = 20 * time.Second

// Resolve returns the settings of an upstream with the service's address as
// URL and the endpoints from its document. Configured values take precedence.
// The document is read if no connection has done so yet.
func (d Dialer) Resolve(cfg upstream.Config) upstream.Config {
	if cfg.OpenAPI == "" || cfg.OAuth == nil || d.Logins == nil {
		return cfg
	}
	d.Logins.mu.Lock()
	found, ok := d.Logins.known[loginKey(cfg)]
	d.Logins.mu.Unlock()
	if !ok {
		ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
		defer cancel()
		s, err := NewServer(ctx, d.options(cfg))
		if err != nil {
			d.logger(cfg).WarnContext(ctx, "sign-in without the OpenAPI document", "err", err)
			cfg.URL = cfg.BaseURL
			return cfg
		}
		found = s.endpoints()
		d.Logins.put(cfg, found)
	}
	own := *cfg.OAuth
	if own.AuthorizationURL == "" && own.TokenURL == "" && own.Issuer == "" {
		own.AuthorizationURL, own.TokenURL = found.authorization, found.token
	}
	if len(own.Scopes) == 0 {
		own.Scopes = found.scopes
	}
	cfg.URL, cfg.OAuth = found.base, &own
	return cfg
}

// endpoints returns the OAuth endpoints of a scheme with which people sign in.
// Of several, it is the one with the smallest token endpoint, so that the
// choice is deterministic.
func (s *Server) endpoints() endpoints {
	service := s.service.Load()
	e := endpoints{base: service.Base.String()}
	for name, sc := range service.schemes {
		if sc.person && service.mayAsk(sc.authorization) && service.mayAsk(sc.personToken) && (e.token == "" || sc.personToken < e.token) {
			e.authorization, e.token, e.scopes = sc.authorization, sc.personToken, service.scopesOf(name)
		}
	}
	return e
}

// scopesOf returns the scopes of a scheme that the tools' operations require.
func (s *Service) scopesOf(name string) []string {
	needed := map[string]bool{}
	for _, o := range s.operations {
		for _, requirement := range s.alternatives(o) {
			for _, scope := range requirement[name] {
				needed[scope] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(needed))
}

// Missing returns the security schemes without a credential that operations
// require. For each operation these are the schemes of its first alternative,
// unless another alternative can be satisfied. login reports whether a
// person's login exists.
func (s *Service) Missing(credentials map[string]string, login bool) []string {
	from := credentialSource{credentials: credentials}
	if login {
		from.login = func(*http.Request) error { return nil }
	}
	missing := map[string]bool{}
	for _, o := range s.operations {
		alternatives := s.alternatives(o)
		if len(alternatives) == 0 || slices.ContainsFunc(alternatives, func(r map[string][]string) bool { return len(r) == 0 || s.satisfied(r, from) }) {
			continue
		}
		for name := range alternatives[0] {
			if credentials[name] == "" {
				missing[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(missing))
}

// Schemes returns the names of the supported security schemes.
func (s *Service) Schemes() []string { return slices.Sorted(maps.Keys(s.schemes)) }

// Inspect reads the document of an upstream like Dial.
func (d Dialer) Inspect(ctx context.Context, cfg upstream.Config) (*Service, error) {
	s, err := NewServer(ctx, d.options(cfg))
	if err != nil {
		return nil, err
	}
	return s.service.Load().Service, nil
}

// mayAsk reports whether an endpoint in the document may be used: on the host
// of the service, or at a public https address. An untrusted document must not
// send a client's secret into a private network.
func (s *Service) mayAsk(endpoint string) bool {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.User != nil {
		return false
	}
	if u.Host == s.Base.Host && u.Scheme == s.Base.Scheme {
		return true
	}
	class, literal := address.OfHost(u.Hostname())
	return u.Scheme == "https" && (s.Named || !literal || class == address.Public)
}

// login sets the token of the person's login on a request. refused is the
// response to the previous attempt, or nil.
func (s *Server) login(r *http.Request, refused *http.Response) error {
	var before *mcpclient.HTTPError
	if refused != nil {
		before = &mcpclient.HTTPError{
			Status: refused.StatusCode, WWWAuthenticate: refused.Header.Values("WWW-Authenticate"),
			Credential: telemetry.Secret(refused.Request.Header.Get("Authorization")), Nonce: refused.Header.Get("DPoP-Nonce"),
		}
	}
	return s.opts.Login(r.Context(), r, before)
}
