package authserver

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"junctor/internal/auth"
	"junctor/internal/httperr"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// The paths of the endpoints.
const (
	MetadataPath  = "/.well-known/oauth-authorization-server"
	AuthorizePath = auth.AuthorizePath
	ConsentPath   = "/oauth/consent"
	TokenPath     = "/oauth/token"
	RegisterPath  = "/oauth/register"
	RevokePath    = "/oauth/revoke"
	KeysPath      = "/oauth/jwks"
)

// Scope is the only scope. It grants the person's rights within the chosen
// profile.
const Scope = "tools"

// People identifies the persons who consent. [auth.Gate] implements it.
type People interface {
	// Person returns the person who is signed in with a session of the page,
	// or the local user on an open loopback listener.
	Person(r *http.Request) (auth.Person, tool.Caller, bool)
	// PersonByKey returns the person who holds an API key.
	PersonByKey(ctx context.Context, key telemetry.Secret) (auth.Person, tool.Caller, error)
	// SignInLink returns an address that starts a sign-in at an OpenID
	// provider and then returns to the authorization request with the given
	// query, and the provider's name. ok is false if no such sign-in is
	// possible.
	SignInLink(r *http.Request, query url.Values) (address, provider string, ok bool)
	// CallerOf returns the caller for a person, with the person's current
	// rights.
	CallerOf(ctx context.Context, p auth.Person) (tool.Caller, error)
	// ByClient reports whether the request carries an access token of a
	// client.
	ByClient(r *http.Request) bool
}

// Options are the dependencies of a Server.
type Options struct {
	// URL returns the public URL of the gateway, scheme://host, which is the
	// issuer; "" while the server is disabled.
	URL   func() string
	Store store.Values
	// Sealer returns the Sealer that encrypts the signing keys.
	Sealer func() (*store.Sealer, error)
	// Fetch reads a client id metadata document of at most limit bytes over
	// https, from public addresses only and without following redirects.
	Fetch func(ctx context.Context, url string, limit int64) ([]byte, error)
	// Profiles returns the names of the profiles to which a person may limit a
	// client; nil if there are none.
	Profiles func(tool.Caller) []string
	// Audit records consents and revocations, by the caller in ctx. It may be
	// nil.
	Audit func(ctx context.Context, action, target string, detail any)
	Log   *slog.Logger
}

// Server is the authorization server. It is safe for concurrent use.
type Server struct {
	opts      Options
	log       *slog.Logger
	keys      *keyring
	grants    *grants
	documents documents
	limits    limits
	now       func() time.Time
}

// New returns a Server. It does not access the store until the first request.
func New(o Options) *Server {
	s := &Server{opts: o, log: o.Log.With(telemetry.KeyComponent, "authserver"), now: time.Now}
	s.keys = &keyring{store: o.Store, sealer: o.Sealer, now: func() time.Time { return s.now() }}
	s.grants = &grants{store: o.Store, now: func() time.Time { return s.now() }, known: map[string]knownGrant{}}
	return s
}

// Public reports whether a path is an endpoint that must be reachable without
// credentials.
func Public(path string) bool {
	switch path {
	case AuthorizePath, ConsentPath, TokenPath, RegisterPath, RevokePath, KeysPath:
		return true
	}
	return false
}

// Routes mounts the endpoints on a listener. people is the gate of that
// listener.
func (s *Server) Routes(mux *http.ServeMux, people People) {
	handle := func(pattern string, f func(w http.ResponseWriter, r *http.Request, issuer string)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			issuer := s.opts.URL()
			if issuer == "" {
				httperr.Write(w, r, &tool.Error{Kind: tool.MethodNotFound, Msg: "there is no authorization server here; auth.server turns it on"})
				return
			}
			f(w, r, issuer)
		})
	}
	handle("GET "+MetadataPath, s.metadata)
	handle("GET "+KeysPath, s.jwks)
	handle("GET "+AuthorizePath, s.authorize)
	handle("POST "+TokenPath, s.token)
	handle("POST "+RegisterPath, s.register)
	handle("POST "+RevokePath, s.revoke)
	page := &consentPage{Server: s, people: people}
	handle("GET "+ConsentPath, page.show)
	handle("POST "+ConsentPath, page.decide)
	mux.HandleFunc("GET /api/clients", httperr.JSON(page.listGrants))
	mux.HandleFunc("DELETE /api/clients/{id}", httperr.JSON(page.revokeGrant))
}

// metadata serves RFC 8414.
func (s *Server) metadata(w http.ResponseWriter, _ *http.Request, issuer string) {
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Cache-Control", "max-age=300")
	writeJSON(w, http.StatusOK, map[string]any{
		"issuer":                                         issuer,
		"authorization_endpoint":                         issuer + AuthorizePath,
		"token_endpoint":                                 issuer + TokenPath,
		"registration_endpoint":                          issuer + RegisterPath,
		"revocation_endpoint":                            issuer + RevokePath,
		"jwks_uri":                                       issuer + KeysPath,
		"response_types_supported":                       []string{"code"},
		"response_modes_supported":                       []string{"query"},
		"grant_types_supported":                          []string{"authorization_code", "refresh_token"},
		"token_endpoint_auth_methods_supported":          []string{"none"},
		"revocation_endpoint_auth_methods_supported":     []string{"none"},
		"code_challenge_methods_supported":               []string{"S256"},
		"scopes_supported":                               []string{Scope},
		"authorization_response_iss_parameter_supported": true,
		"client_id_metadata_document_supported":          s.opts.Fetch != nil,
	})
}

func (s *Server) jwks(w http.ResponseWriter, r *http.Request, _ string) {
	set, err := s.keys.public(r.Context())
	if err != nil {
		s.unavailable(w, r, err)
		return
	}
	w.Header().Set("Access-Control-Allow-Origin", "*")
	w.Header().Set("Cache-Control", "max-age=300")
	writeJSON(w, http.StatusOK, set)
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	if w.Header().Get("Cache-Control") == "" {
		w.Header().Set("Cache-Control", "no-store")
	}
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client may have disconnected
}

func (s *Server) audit(ctx context.Context, action string, g Grant, more map[string]string) {
	if s.opts.Audit == nil {
		return
	}
	detail := g.detail()
	maps.Copy(detail, more)
	s.opts.Audit(ctx, action, g.ID, detail)
}

// protocolError is an error of the OAuth protocol. Its text is shown to
// clients and people.
type protocolError struct {
	code, text string
	status     int // 0 for 400
}

func (e *protocolError) Error() string { return e.code + ": " + e.text }

func invalid(code, text string) *protocolError { return &protocolError{code: code, text: text} }

// refuse responds to a client with an error and logs it.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, client string, e *protocolError) {
	s.log.WarnContext(r.Context(), "request of an OAuth client refused",
		"path", r.URL.Path, "client", tool.Shorten(tool.OneLine(client), 200), "code", e.code, "reason", e.text)
	status := e.status
	if status == 0 {
		status = http.StatusBadRequest
	}
	if status == http.StatusTooManyRequests {
		w.Header().Set("Retry-After", "60")
	}
	writeJSON(w, status, map[string]string{"error": e.code, "error_description": e.text})
}

// unavailable responds that the store or the keys are not available.
func (s *Server) unavailable(w http.ResponseWriter, r *http.Request, err error) {
	s.log.ErrorContext(r.Context(), "authorization server not available", "path", r.URL.Path, "err", err)
	w.Header().Set("Retry-After", "2")
	writeJSON(w, http.StatusServiceUnavailable, map[string]string{"error": "temporarily_unavailable", "error_description": "sign-ins cannot be read or written now; try again shortly"})
}

// resourcePath returns the path of a resource of this gateway, "" for the
// whole gateway. Tokens are valid for that path and the paths below it.
func resourcePath(resource, issuer string) (string, *protocolError) {
	if resource == "" {
		return "", invalid("invalid_target", "the parameter resource is missing; name the address of the MCP endpoint, such as "+issuer+"/mcp")
	}
	u, err := url.Parse(resource)
	if err != nil || u.RawQuery != "" || u.Fragment != "" || u.User != nil || u.ForceQuery ||
		!strings.EqualFold(u.Scheme+"://"+u.Host, issuer) || strings.Contains(u.EscapedPath(), "%") || strings.Contains(u.Path, "//") || strings.Contains(u.Path+"/", "/../") {
		return "", invalid("invalid_target", "the resource is not one of this gateway; it must begin with "+issuer)
	}
	return strings.TrimSuffix(u.Path, "/"), nil
}
