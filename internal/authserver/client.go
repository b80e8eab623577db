package authserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"junctor/internal/store"
	"junctor/internal/tool"
)

const (
	spaceClients = "oauth-clients"

	// unusedClientTTL is how long a registration lasts without a consent,
	// usedClientTTL how long it lasts after its last use.
	unusedClientTTL = 24 * time.Hour
	usedClientTTL   = 90 * 24 * time.Hour

	maxRegistration = 16 << 10 // bytes
	maxClients      = 1000     // stored registrations
	maxRedirects    = 10       // redirect URIs of one client
	maxURI          = 2000     // bytes
	maxClientName   = 80       // characters
)

// client is an OAuth client. All clients are public: none has a secret.
type client struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Redirects []string  `json:"redirects"`
	Created   time.Time `json:"created"`
}

// host returns the host that vouches for the client, that of its metadata
// document, or "" for a registered client.
func (c client) host() string {
	if u, err := url.Parse(c.ID); err == nil && u.Scheme == "https" {
		return u.Host
	}
	return ""
}

// registration is the supported part of the client metadata (RFC 7591).
type registration struct {
	Name      string   `json:"client_name"`
	Redirects []string `json:"redirect_uris"`
	Grants    []string `json:"grant_types"`
	Responses []string `json:"response_types"`
	Method    string   `json:"token_endpoint_auth_method"`
}

// check returns an error if a client with this metadata cannot be accepted.
func (m registration) check() *protocolError {
	if len(m.Redirects) == 0 {
		return invalid("invalid_redirect_uri", "redirect_uris is missing")
	}
	if len(m.Redirects) > maxRedirects {
		return invalid("invalid_redirect_uri", fmt.Sprintf("there are more than %d redirect_uris", maxRedirects))
	}
	for _, uri := range m.Redirects {
		if err := checkRedirect(uri); err != nil {
			return invalid("invalid_redirect_uri", err.Error())
		}
	}
	if len(m.Grants) > 0 && !slices.Contains(m.Grants, "authorization_code") {
		return invalid("invalid_client_metadata", "grant_types must contain authorization_code")
	}
	if len(m.Responses) > 0 && !slices.Contains(m.Responses, "code") {
		return invalid("invalid_client_metadata", "response_types must contain code")
	}
	return nil
}

// refusedSchemes are schemes that make the browser run or display something
// instead of passing the code to a program.
var refusedSchemes = []string{"about", "blob", "data", "file", "filesystem", "ftp", "javascript", "mailto", "vbscript", "view-source", "ws", "wss"}

// checkRedirect accepts https addresses, http ones on loopback, and the
// private schemes of native programs.
func checkRedirect(uri string) error {
	shown := tool.Shorten(tool.OneLine(uri), 200)
	u, err := url.Parse(uri)
	switch {
	case err != nil || len(uri) > maxURI || !isPlain(uri) || !isPlain(u.Host):
		return fmt.Errorf("the redirect URI %q is not valid", shown)
	case u.Fragment != "" || strings.Contains(uri, "#") || u.User != nil:
		return fmt.Errorf("the redirect URI %q has a fragment or user information", shown)
	case u.Scheme == "https" && u.Hostname() != "":
		return nil
	case u.Scheme == "http" && isLoopback(u):
		return nil
	case u.Scheme == "http" || u.Scheme == "https" || u.Scheme == "" || slices.Contains(refusedSchemes, u.Scheme):
		return fmt.Errorf("the redirect URI %q must be https, http on loopback, or of a scheme of the client's own", shown)
	}
	return nil
}

// isPlain reports whether an address, or its host without percent-encoding,
// contains only visible ASCII. Other letters can make a host look like another
// on the consent page; international names have an ASCII form.
func isPlain(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"'<>\;,`, c) })
}

func isLoopback(u *url.URL) bool {
	host := u.Hostname()
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

// allows reports whether a redirect URI is one of the client's. It must match
// exactly, except for the port on loopback, which programs choose when they
// start.
func (c client) allows(uri string) bool {
	if slices.Contains(c.Redirects, uri) {
		return true
	}
	u, err := url.Parse(uri)
	if err != nil || u.Scheme != "http" || !isLoopback(u) || checkRedirect(uri) != nil {
		return false
	}
	return slices.ContainsFunc(c.Redirects, func(known string) bool {
		k, err := url.Parse(known)
		if err != nil || k.Scheme != "http" || !isLoopback(k) || k.Hostname() != u.Hostname() {
			return false
		}
		k.Host = u.Host
		return k.String() == uri
	})
}

// clientName returns a name for display: a single line of limited length.
func clientName(name, id string) string {
	name = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c >= 0x202a && c <= 0x202e || c >= 0x2066 && c <= 0x2069 {
			return -1 // control and text direction characters
		}
		return c
	}, tool.OneLine(name))
	if name = strings.TrimSpace(name); name == "" {
		name = id
	}
	return tool.Shorten(name, maxClientName)
}

// register adds a client (RFC 7591).
func (s *Server) register(w http.ResponseWriter, r *http.Request, _ string) {
	if !s.limits.allow(r) {
		s.refuse(w, r, "", &protocolError{code: "temporarily_unavailable", text: "too many registrations; try again in a minute", status: http.StatusTooManyRequests})
		return
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
		s.refuse(w, r, "", invalid("invalid_client_metadata", "send application/json"))
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRegistration))
	if err != nil {
		s.refuse(w, r, "", &protocolError{code: "invalid_client_metadata", text: "the metadata is too large or was cut off", status: http.StatusRequestEntityTooLarge})
		return
	}
	var m registration
	if err := json.Unmarshal(body, &m); err != nil {
		s.refuse(w, r, "", invalid("invalid_client_metadata", "the metadata cannot be read as JSON"))
		return
	}
	if e := m.check(); e != nil {
		s.refuse(w, r, m.Name, e)
		return
	}
	all, err := s.opts.Store.Values(r.Context(), spaceClients)
	if err != nil {
		s.unavailable(w, r, err)
		return
	}
	if len(all) >= maxClients {
		// Replace the oldest registration without a consent, so that a flood
		// of registrations does not lock out other clients.
		oldest := slices.MinFunc(all, func(a, b store.Value) int { return a.Expires.Compare(b.Expires) })
		if oldest.Expires.Sub(s.now()) > unusedClientTTL {
			s.refuse(w, r, m.Name, &protocolError{code: "temporarily_unavailable", text: "too many clients are registered and in use", status: http.StatusTooManyRequests})
			return
		}
		if err := s.opts.Store.DeleteValue(r.Context(), spaceClients, oldest.Name, oldest.Version); err != nil && !errors.Is(err, store.ErrConflict) && !errors.Is(err, store.ErrNotFound) {
			s.unavailable(w, r, err)
			return
		}
	}
	c := client{ID: "client-" + rand.Text(), Redirects: m.Redirects, Created: s.now().UTC()}
	c.Name = clientName(m.Name, c.ID)
	if err := s.storeClient(r.Context(), c, unusedClientTTL); err != nil {
		s.unavailable(w, r, err)
		return
	}
	s.log.InfoContext(r.Context(), "OAuth client registered", "client", c.ID, "name", c.Name)
	writeJSON(w, http.StatusCreated, map[string]any{
		"client_id": c.ID, "client_id_issued_at": c.Created.Unix(), "client_name": c.Name, "redirect_uris": c.Redirects,
		"grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"},
		"token_endpoint_auth_method": "none", "scope": Scope,
	})
}

func (s *Server) storeClient(ctx context.Context, c client, ttl time.Duration) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	_, err = s.opts.Store.PutValue(ctx, store.Value{Space: spaceClients, Name: c.ID, Data: data, Expires: s.now().Add(ttl)}, store.AnyVersion)
	return err
}

// extendClient extends a registration that is in use. A failure is only
// logged, because the current request can proceed without it.
func (s *Server) extendClient(ctx context.Context, id string) {
	if !strings.HasPrefix(id, "client-") {
		return
	}
	v, err := s.opts.Store.Value(ctx, spaceClients, id)
	if err == nil && v.Expires.Sub(s.now()) < usedClientTTL-unusedClientTTL {
		v.Expires = s.now().Add(usedClientTTL)
		_, err = s.opts.Store.PutValue(ctx, v, v.Version)
	}
	if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrConflict) {
		s.log.WarnContext(ctx, "cannot extend the registration of an OAuth client", "client", id, "err", err)
	}
}

// client returns the client with an id: a registered one, or one described by
// a metadata document.
func (s *Server) client(ctx context.Context, id string) (client, *protocolError, error) {
	switch {
	case id == "":
		return client{}, invalid("invalid_request", "client_id is missing"), nil
	case len(id) > maxURI:
		return client{}, invalid("invalid_client", "client_id is too long"), nil
	case strings.Contains(id, "://"):
		c, e := s.documents.get(ctx, s, id)
		return c, e, nil
	}
	v, err := s.opts.Store.Value(ctx, spaceClients, id)
	if errors.Is(err, store.ErrNotFound) {
		return client{}, &protocolError{code: "invalid_client", text: "the client is not registered here, or its registration has expired; register again", status: http.StatusUnauthorized}, nil
	}
	if err != nil {
		return client{}, nil, err
	}
	var c client
	if err := json.Unmarshal(v.Data, &c); err != nil {
		return client{}, nil, err
	}
	return c, nil, nil
}

// limits limits the rate of registrations, per address and in total, and of
// requests for metadata documents, because strangers choose their addresses.
type limits struct {
	mu      sync.Mutex
	all     *rate.Limiter
	fetches *rate.Limiter
	by      map[string]*rate.Limiter
}

func (l *limits) fetch() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fetches == nil {
		l.fetches = rate.NewLimiter(rate.Every(time.Second), 60)
	}
	return l.fetches.Allow()
}

const maxLimiters = 1000

func (l *limits) allow(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil || len(l.by) >= maxLimiters {
		l.by = map[string]*rate.Limiter{}
	}
	if l.all == nil {
		l.all = rate.NewLimiter(rate.Every(time.Second), 60)
	}
	if l.by[host] == nil {
		l.by[host] = rate.NewLimiter(rate.Every(6*time.Second), 20)
	}
	return l.by[host].Allow() && l.all.Allow()
}
