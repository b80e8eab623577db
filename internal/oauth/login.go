package oauth

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"junctor/internal/address"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// CallbackPath is the path of the redirect URI.
const CallbackPath = "/oauth/callback"

// find returns an upstream that supports logins.
func (s *Service) find(server string) (upstream.Config, error) {
	cfg, ok := s.opts.Servers(server)
	switch {
	case !ok:
		return cfg, &tool.Error{Kind: tool.ServerNotFound, Msg: fmt.Sprintf("there is no server %q; list them with: junctor servers list", server)}
	case cfg.URL == "" && cfg.OpenAPI != "":
		return cfg, &tool.Error{Kind: tool.InvalidRequest, Msg: fmt.Sprintf("%s has no login: set oauth.clientId for it, and baseUrl if its OpenAPI document cannot be read", server)}
	case cfg.URL == "":
		return cfg, &tool.Error{Kind: tool.InvalidRequest, Msg: fmt.Sprintf("%s is a program on this machine; only servers with a url have a login", server)}
	case cfg.AuthorizationToken != "" || hasAuthorization(cfg):
		return cfg, &tool.Error{Kind: tool.InvalidRequest, Msg: fmt.Sprintf("%s has a token in the configuration; remove it to sign in instead", server)}
	}
	return cfg, nil
}

func hasAuthorization(cfg upstream.Config) bool {
	for name := range cfg.Headers {
		if http.CanonicalHeaderKey(name) == "Authorization" {
			return true
		}
	}
	return false
}

// Begin prepares a login for the context's caller and returns the URL that the
// user has to open. The URL is empty if the upstream uses client credentials
// and has a login now.
func (s *Service) Begin(ctx context.Context, server string) (string, error) {
	cfg, err := s.find(server)
	if err != nil {
		return "", err
	}
	st := s.state(cfg.LoginOf(tool.CallerFrom(ctx).ID))
	ch, asked, err := s.probe(ctx, cfg, st)
	if err != nil {
		return "", err
	}
	rec, _ := s.known(ctx, cfg, st, true) // an undecryptable login is replaced
	w := loginRequest{challenge: ch, owner: tool.CallerFrom(ctx)}
	if rec != nil {
		w.asked = rec.Asked
	}
	b := s.begin(cfg, st, w)
	select {
	case <-b.done:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	switch {
	case b.err != nil && !asked && tool.KindOf(b.err) == tool.UpstreamAuthRequired:
		return "", &tool.Error{Kind: tool.InvalidRequest, Msg: server + " does not require a sign-in", Err: b.err}
	case b.err != nil:
		return "", withServerName(server, b.err)
	case b.login == nil:
		return "", nil
	}
	return b.login.url, nil
}

// withServerName adds the upstream's name to a message that begins with "its".
func withServerName(server string, err error) error {
	e := *tool.AsError(err)
	if e.Kind == tool.Internal {
		return err
	}
	e.Msg, e.Err = server+": "+e.Msg, err
	return &e
}

// probe sends a request without credentials and returns the challenge.
func (s *Service) probe(ctx context.Context, cfg upstream.Config, st *state) (ch challenge, asked bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	for _, method := range []string{http.MethodPost, http.MethodGet} {
		var body io.Reader
		if method == http.MethodPost {
			body = bytes.NewReader([]byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		}
		req, err := http.NewRequestWithContext(ctx, method, cfg.URL, body)
		if err != nil {
			return challenge{}, false, err
		}
		for name, value := range cfg.Headers {
			req.Header.Set(name, value.Reveal())
		}
		req.Header.Set("Accept", "application/json, text/event-stream")
		if body != nil {
			req.Header.Set("Content-Type", "application/json")
		}
		st.recordAddress(req)
		resp, err := s.opts.RoundTripper.RoundTrip(req)
		if err != nil {
			return challenge{}, false, &tool.Error{Kind: tool.UpstreamFailed, Msg: fmt.Sprintf("%s cannot be reached; check its url and the network", cfg.Name), Err: err}
		}
		resp.Body.Close()
		if resp.StatusCode == http.StatusUnauthorized {
			return parseChallenge(resp.Header.Values("WWW-Authenticate")), true, nil
		}
	}
	return challenge{}, false, nil
}

// Login signs a user in to an upstream. It passes the URL to open to show and
// waits for the callback, at this process's listener or through Complete. It
// does not call show if no user is needed.
func (s *Service) Login(ctx context.Context, server string, show func(address string)) error {
	cfg, err := s.find(server)
	if err != nil {
		return err
	}
	login := cfg.LoginOf(tool.CallerFrom(ctx).ID)
	done := s.wait(login)
	defer s.removeWaiting(login, done)
	address, err := s.Begin(ctx, server)
	if err != nil || address == "" {
		return err
	}
	show(address)
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return &tool.Error{Kind: tool.Timeout, Msg: "the sign-in timed out", Err: ctx.Err()}
	}
}

func (s *Service) wait(l upstream.Login) chan error {
	done := make(chan error, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[l] = append(s.waiting[l], done)
	return done
}

func (s *Service) removeWaiting(l upstream.Login, done chan error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting[l] = slices.DeleteFunc(s.waiting[l], func(c chan error) bool { return c == done })
}

// awaited reports whether a command in this process waits for the login of a
// callback. Its user then knows whose login it is.
func (s *Service) awaited(ctx context.Context, q url.Values) bool {
	f, err := s.peekFlow(ctx, q.Get("state"))
	s.mu.Lock()
	defer s.mu.Unlock()
	return err == nil && len(s.waiting[f.login()]) > 0
}

// notifyWaiting reports the outcome of a login to all waiting commands.
func (s *Service) notifyWaiting(l upstream.Login, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, done := range s.waiting[l] {
		select {
		case done <- err:
		default: // already notified
		}
	}
}

// Logout deletes a login and revokes its tokens if the authorization server
// supports that. It reports whether there was a login; it returns true with an
// error if only the revocation failed.
func (s *Service) Logout(ctx context.Context, l upstream.Login) (bool, error) {
	st := s.state(l)
	rec, _, err := s.load(ctx, l)
	if err != nil && tool.KindOf(err) == tool.Internal {
		return false, err
	}
	v, _, err := s.vault()
	if err != nil {
		return false, err
	}
	if err := v.Delete(ctx, tokenPrefix+nameOf(l)); err != nil {
		return false, fmt.Errorf("delete the login of %s: %w", l.Server, err)
	}
	st.mu.Lock()
	if st.unsaved { // the stored tokens were replaced already
		rec = st.rec
	}
	st.rec, st.version, st.read, st.unsaved, st.pending = nil, 0, time.Now(), false, nil
	st.mu.Unlock()
	s.opts.LoggedOut(l)
	if rec == nil {
		return false, nil
	}
	return true, s.revoke(ctx, l, rec)
}

// revoke revokes the tokens (RFC 7009). The refresh token comes first, because
// revoking it revokes the whole grant.
func (s *Service) revoke(ctx context.Context, l upstream.Login, rec *record) error {
	if rec.Revocation == "" {
		return nil
	}
	client := rec.Client
	if cfg, ok := s.opts.Servers(l.Server); ok {
		client = rec.client(cfg)
	}
	var errs []error
	for _, t := range []struct{ token, hint string }{{rec.Refresh, "refresh_token"}, {rec.Access, "access_token"}} {
		if t.token == "" {
			continue
		}
		a, err := s.post(ctx, rec.Reach.policy(), rec.Revocation, client, url.Values{"token": {t.token}, "token_type_hint": {t.hint}})
		if err == nil && a.status/100 != 2 {
			err = refusal(a)
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return &tool.Error{Kind: tool.UpstreamFailed, Msg: "signed out here, but the token could not be revoked; it expires by itself", Err: err}
	}
	return nil
}

// Info is the public information about a login.
type Info struct {
	HasToken bool
	Since    time.Time // time of the consent
}

// Info describes the login that the requests of a caller use.
func (s *Service) Info(ctx context.Context, server, caller string) Info {
	cfg, ok := s.opts.Servers(server)
	if !ok || cfg.URL == "" {
		return Info{}
	}
	rec, err := s.known(ctx, cfg, s.state(cfg.LoginOf(caller)), false)
	if err != nil || rec == nil {
		return Info{}
	}
	return Info{HasToken: true, Since: rec.Since}
}

// redirect returns the redirect URI of this process.
func (s *Service) redirect(ctx context.Context, cfg upstream.Config, issuer string) (string, error) {
	own := oauthOf(cfg)
	s.mu.Lock()
	callback := s.callback
	s.mu.Unlock()
	switch {
	case callback != "" && own.RedirectURI != "":
		return own.RedirectURI, nil
	case callback != "":
		return callback, nil
	}
	host, port, path := "127.0.0.1", strconv.Itoa(own.CallbackPort), CallbackPath
	if own.RedirectURI != "" {
		u, err := url.Parse(own.RedirectURI)
		if err != nil {
			return "", &tool.Error{Kind: tool.InvalidRequest, Msg: "oauth.redirectUri is not a valid URL"}
		}
		if c, ok := address.OfHost(u.Hostname()); !ok || c != address.Loopback {
			return own.RedirectURI, nil // another process receives the callback
		}
		host, path = u.Hostname(), u.Path
		if u.Port() != "" {
			port = u.Port()
		}
	}
	// Serialize opening listeners, so that sign-ins on the same port share one.
	s.listening.Lock()
	defer s.listening.Unlock()
	requested := loopbackAddress(host, port)
	l := s.listenerOf(requested)
	if l == nil && own.RedirectURI == "" && own.CallbackPort == 0 {
		// Reusing the port of the last login avoids a registration.
		if kept, ok, _ := s.registration(ctx, issuer, "http://127.0.0.1"+CallbackPath); ok {
			if u, err := url.Parse(kept.Redirect); err == nil {
				l, _ = s.listen(loopbackAddress(host, u.Port()))
			}
		}
	}
	if l == nil {
		var err error
		if l, err = s.listen(requested); errors.Is(err, errStopping) {
			return "", err
		} else if err != nil {
			return "", &tool.Error{Kind: tool.Unavailable, Msg: fmt.Sprintf("this process cannot listen on %s for the redirect from the authorization server; check oauth.callbackPort and oauth.redirectUri", requested), Err: err}
		}
	}
	if err := s.addListener(requested, l, path); err != nil {
		return "", err
	}
	_, port, _ = net.SplitHostPort(l.bound)
	return "http://" + net.JoinHostPort(host, port) + path, nil
}

// loopbackAddress returns the address to listen on for a host and port.
// localhost is the address to which [net.Listen] would resolve it, so that both
// share a listener.
func loopbackAddress(host, port string) string {
	if !strings.Contains(host, ":") && net.ParseIP(host) == nil {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, cmp.Or(port, "0"))
}

// listenerOf returns the listener of a requested address, or nil.
func (s *Service) listenerOf(requested string) *listener {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.listeners[requested]; l != nil {
		return l
	}
	for _, l := range s.listeners { // one on an arbitrary port may match
		if l.bound == requested {
			return l
		}
	}
	return nil
}

// addListener registers a listener for a path. Sign-ins share it until the
// Service is closed.
func (s *Service) addListener(requested string, l *listener, path string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		l.close()
		return errStopping
	}
	s.listeners[requested] = l
	l.paths[path] = true
	return nil
}

// listener is a loopback listener for callbacks in processes without an HTTP
// server.
type listener struct {
	bound  string // the address it listens on
	server *http.Server
	paths  map[string]bool // of the redirect URIs; protected by Service.mu
}

func (l *listener) close() { _ = l.server.Close() }

// onlyCallback serves the callback at the configured paths, which may be empty
// or not valid patterns for [http.ServeMux].
func (s *Service) onlyCallback(l *listener) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		known := l.paths[r.URL.Path] || r.URL.Path == "/" && l.paths[""]
		s.mu.Unlock()
		switch q := r.URL.Query(); {
		case !known:
			http.NotFound(w, r)
		case r.Method == http.MethodPost:
			s.confirmed(w, r)
		case r.Method != http.MethodGet:
			w.Header().Set("Allow", "GET, POST")
			http.Error(w, http.StatusText(http.StatusMethodNotAllowed), http.StatusMethodNotAllowed)
		case s.awaited(r.Context(), q):
			s.finish(w, r, q)
		default:
			s.callbackPage(w, r)
		}
	}
}

func (s *Service) listen(address string) (*listener, error) {
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	l := &listener{bound: ln.Addr().String(), paths: map[string]bool{}}
	l.server = &http.Server{
		Handler: s.onlyCallback(l), ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 10 * time.Second, MaxHeaderBytes: 64 << 10,
	}
	if !s.spawn(func() { _ = l.server.Serve(ln) }) { // returns when it is closed
		_ = ln.Close()
		return nil, errStopping
	}
	return l, nil
}
