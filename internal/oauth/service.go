package oauth

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"slices"
	"sync"
	"time"

	"junctor/internal/address"
	"junctor/internal/mcpclient"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// Store stores logins.
type Store interface {
	store.Values
	store.Leases
}

// Options are the dependencies of a Service.
type Options struct {
	// Servers returns the settings of an upstream.
	Servers func(name string) (upstream.Config, bool)
	Store   Store
	// Sealer returns the Sealer that encrypts logins. It is called when the
	// first login is read or written, because the key may have to be created.
	Sealer func() (*store.Sealer, error)

	RoundTripper http.RoundTripper                     // to upstreams
	Proxy        func(*http.Request) (*url.URL, error) // to authorization servers; nil for none
	Redactor     *telemetry.Redactor
	Log          *slog.Logger
	Node         string // part of the lease owner's name
	Version      string

	// IsAdmin reports whether a caller is still an administrator; nil means
	// always.
	IsAdmin func(ctx context.Context, caller string) bool

	// Revoked reports whether the key of a caller was revoked; nil means never.
	Revoked func(ctx context.Context, caller string) (bool, error)

	// LoggedIn is called after every login of a user, LoggedOut after every
	// logout.
	LoggedIn, LoggedOut func(upstream.Login)

	// Audit records sign-ins and sign-outs; it may be nil.
	Audit func(ctx context.Context, action, target string, detail any)
}

// Service manages the logins to upstreams. It is safe for concurrent use.
type Service struct {
	opts  Options
	log   *slog.Logger
	out   *outbound
	owner string // of leases
	work  sync.WaitGroup

	mu       sync.Mutex
	states   map[upstream.Login]*state
	redacted map[telemetry.Secret]time.Time // the values known to the redactor, and when they were last seen
	swept    time.Time                      // when old ones were last removed from it
	callback string                         // the redirect URI; "" until known
	waiting  map[upstream.Login][]chan error
	closed   bool

	// listeners receive callbacks if there is no redirect URI. They are keyed
	// by the requested address and are opened on demand with listening locked
	// (before mu).
	listeners map[string]*listener
	listening sync.Mutex
}

// New returns a Service. It sends no requests and starts no goroutines.
func New(o Options) *Service {
	if o.LoggedIn == nil {
		o.LoggedIn = func(upstream.Login) {}
	}
	if o.LoggedOut == nil {
		o.LoggedOut = func(upstream.Login) {}
	}
	return &Service{
		opts: o, log: o.Log.With(telemetry.KeyComponent, "oauth"), out: newOutbound(o.Proxy, o.Version),
		owner:  o.Node + "/" + rand.Text()[:8],
		states: map[upstream.Login]*state{}, redacted: map[telemetry.Secret]time.Time{}, waiting: map[upstream.Login][]chan error{},
		listeners: map[string]*listener{},
	}
}

var _ upstream.Authorizer = (*Service)(nil)

// SetCallback sets the redirect URI of this process. Without one, a loopback
// listener is opened on demand.
func (s *Service) SetCallback(address string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.callback = address
}

// refreshInterval is the interval at which Run refreshes the tokens that are due.
const refreshInterval = 5 * time.Second

// Run refreshes tokens before they expire until ctx is done, and then waits for
// refreshes in progress. Without Run, a token is refreshed on its next use.
func (s *Service) Run(ctx context.Context) error {
	ticker := time.NewTicker(refreshInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			s.Close()
			return nil
		case <-ticker.C:
			s.refreshDue(ctx)
		}
	}
}

// Close closes the loopback listeners and waits for refreshes in progress,
// because a used refresh token must be replaced in the store.
func (s *Service) Close() {
	s.mu.Lock()
	s.closed = true
	listeners := slices.Collect(maps.Values(s.listeners))
	s.mu.Unlock()
	for _, l := range listeners {
		l.close()
	}
	s.work.Wait()
}

// errStopping is returned after Close.
var errStopping = &tool.Error{Kind: tool.Unavailable, Msg: "the gateway is being stopped"}

// spawn runs f on a goroutine. It returns false if the Service is closed.
func (s *Service) spawn(f func()) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	s.work.Go(f)
	return true
}

func (s *Service) state(l upstream.Login) *state {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.states[l]
	if st == nil {
		st = &state{login: l}
		s.states[l] = st
	}
	st.asked.Store(time.Now().UnixNano())
	return st
}

// Authorize sets the token of a login on a request; see [upstream.Authorizer].
func (s *Service) Authorize(ctx context.Context, l upstream.Login, r *http.Request, refused *mcpclient.HTTPError) error {
	cfg, ok := s.opts.Servers(l.Server)
	if !ok || cfg.URL == "" {
		return nil
	}
	if cfg.LoginOf(l.Caller) != l || cfg.PersonalLogins() && l.Caller == "" {
		return consentRequired(l, "") // the configuration has changed since the connection was made
	}
	st := s.state(l)
	st.recordAddress(r)
	var rec *record
	var err error
	switch {
	case refused == nil:
		rec, err = s.current(ctx, cfg, st)
	case refused.Status == http.StatusForbidden:
		rec, err = s.afterForbidden(ctx, cfg, st, refused)
	default:
		rec, err = s.afterUnauthorized(ctx, cfg, st, refused)
	}
	if err != nil {
		return err
	}
	if rec != nil {
		return st.setToken(rec, r)
	}
	return nil
}

// recordAddressInterval is the minimum interval between recordings of an
// upstream's address.
const recordAddressInterval = 10 * time.Second

// recordAddress records the address of the upstream's connection, which
// determines the address policy. Resolving the name again could give another
// address.
func (st *state) recordAddress(r *http.Request) {
	now := time.Now()
	st.mu.Lock()
	recent := st.reached.IsValid() && now.Sub(st.watched) < recordAddressInterval
	st.mu.Unlock()
	if recent {
		return
	}
	*r = *r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{
		GotConn: func(info httptrace.GotConnInfo) {
			st.mu.Lock()
			defer st.mu.Unlock()
			st.reached, st.watched = address.Remote(info.Conn.RemoteAddr()), now
		},
	}))
}

// addressPolicyOf returns the address policy of the upstream: public addresses,
// addresses of its own class, and those in the configuration.
func (s *Service) addressPolicyOf(cfg upstream.Config, st *state) addressPolicy {
	var r addressPolicy
	st.mu.Lock()
	reached := st.reached
	st.mu.Unlock()
	own := oauthOf(cfg)
	all := []string{cfg.URL, own.Issuer, own.AuthorizationURL, own.TokenURL}
	if own.IdentityProvider != nil {
		all = append(all, own.IdentityProvider.TokenURL)
	}
	for _, named := range all {
		u, err := url.Parse(named)
		if named == "" || err != nil {
			continue
		}
		if c, ok := address.OfHost(u.Hostname()); ok {
			r.allow(c)
		}
		r.plain = r.plain || u.Scheme == "http"
	}
	if reached.IsValid() && !s.proxied(cfg.URL) {
		r.allow(address.Of(reached))
	}
	return r
}

// proxied reports whether the upstream is reached through a proxy. The peer
// address is then the proxy's.
func (s *Service) proxied(address string) bool {
	if s.opts.Proxy == nil {
		return false
	}
	req, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		return false
	}
	through, err := s.opts.Proxy(req)
	return err != nil || through != nil
}

// cacheTTL is how long a login read from the store is considered current: a login
// or logout in another process takes effect within this time.
const cacheTTL = 2 * time.Second

// known returns the login for the upstream's current URL. If again is true, it
// reads the store even if the cached login is recent. A login that could not
// be stored yet takes precedence over the stored one.
func (s *Service) known(ctx context.Context, cfg upstream.Config, st *state, again bool) (*record, error) {
	st.mu.Lock()
	recent := !again && !st.read.IsZero() && time.Since(st.read) < cacheTTL || st.unsaved
	rec, read := st.rec, st.read
	st.mu.Unlock()
	if !recent {
		loaded, version, err := s.load(ctx, st.login)
		switch {
		case err == nil:
			rec = st.put(loaded, version)
		case tool.KindOf(err) != tool.Internal || read.IsZero(): // a temporarily unavailable store does not remove a login
			return nil, err
		}
	}
	if rec == nil || rec.URL != cfg.URL || rec.Own != ownCredentials(cfg) {
		return nil, nil
	}
	return rec, nil
}

// put sets the login that was read from the store, unless this process has an
// unsaved one.
func (st *state) put(rec *record, version int64) *record {
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.unsaved {
		st.rec, st.version, st.read = rec, version, time.Now()
	}
	return st.rec
}

func ownCredentials(cfg upstream.Config) bool {
	return cfg.OAuth != nil && (cfg.OAuth.Grant == upstream.ClientCredentials || cfg.OAuth.Grant == upstream.JWTBearer)
}

// current returns the token for the first attempt of a request. If it is nil,
// the request is sent without one and the server's challenge is used.
func (s *Service) current(ctx context.Context, cfg upstream.Config, st *state) (*record, error) {
	rec, err := s.known(ctx, cfg, st, false)
	if rec == nil || err != nil {
		return nil, err
	}
	now := time.Now()
	switch {
	case !rec.due(now) && !rec.expired(now):
		return rec, nil
	case !rec.expired(now):
		if rec.refreshable() {
			s.startRefresh(cfg, st, rec.Access) // in the background: the current token is still valid
		}
		return rec, nil
	case !rec.refreshable():
		return nil, nil
	}
	refreshed, err := s.refresh(ctx, cfg, st, rec.Access)
	if errors.Is(err, errLoginEnded) {
		return nil, nil
	}
	return refreshed, err
}
