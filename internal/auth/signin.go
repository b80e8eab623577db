package auth

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"junctor/internal/httperr"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// SessionHeader carries the page's session over unencrypted connections. A
// cookie is not an option there: browsers send cookies to every port of the
// host, and thus to other services on the machine.
const SessionHeader = "X-Junctor-Session"

// CookieName is the session cookie over https. Because of its prefix, browsers
// reject the cookie from other hosts and over http.
const CookieName = "__Host-junctor_session"

// ticketParameter is the query parameter that carries the ticket of a
// WebSocket.
const ticketParameter = "ticket"

// Routes mounts the page's sign-in. All of it must be behind [Gate.Wrap].
func (g *Gate) Routes(mux *http.ServeMux) {
	mux.HandleFunc("GET /api/session", httperr.JSON(func(r *http.Request) (any, error) {
		return g.callerInfo(identityFrom(r.Context()), ""), nil
	}))
	mux.HandleFunc("POST /api/session", g.signIn)
	mux.HandleFunc("DELETE /api/session", httperr.Handler(g.signOut))
	mux.HandleFunc("GET "+OIDCStartPath, g.beginOIDC)
	mux.HandleFunc("GET "+OIDCCallbackPath, g.finishOIDC)
	mux.HandleFunc("POST /api/session/ticket", httperr.JSON(g.newTicket))
	mux.HandleFunc("GET /api/page-sessions", httperr.JSON(g.listSessions))
	mux.HandleFunc("DELETE /api/page-sessions/{id}", httperr.JSON(g.endSession))
	mux.HandleFunc(MetadataPath, g.Metadata)
	mux.HandleFunc(MetadataPath+"/", g.Metadata)
}

// signIn exchanges a key, the token that junctor serve prints, or the ticket of
// a person who signed in at the OpenID provider, for a session.
func (g *Gate) signIn(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Key    telemetry.Secret `json:"key"`
		Token  telemetry.Secret `json:"token"`
		SignIn telemetry.Secret `json:"signin"`
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4096)).Decode(&body)
	given := 0
	for _, s := range []telemetry.Secret{body.Key, body.Token, body.SignIn} {
		if s != "" {
			given++
		}
	}
	if err != nil || given != 1 {
		httperr.Write(w, r, &tool.Error{Kind: tool.InvalidRequest, Msg: `send {"key": "…"} or {"token": "…"}`})
		return
	}
	var p pageSession
	switch {
	case body.SignIn != "":
		if p, err = g.redeemSignIn(w, r, body.SignIn.Reveal()); err != nil {
			httperr.Reject(w, r, reasonSession, err)
			return
		}
	case body.Token != "":
		if !g.isLocalToken(body.Token.Reveal()) || isForwarded(r) {
			httperr.Reject(w, r, reasonToken, &tool.Error{Kind: tool.Unauthenticated, Msg: "the token is not valid; run junctor open to open the page with a valid one"})
			return
		}
		p.Local, p.Owner, p.Name = fingerprint(g.localToken), tool.Local.ID, tool.Local.Name
	default:
		if p, _, err = g.sessionOfKey(r.Context(), body.Key); err != nil {
			httperr.Reject(w, r, reasonKey, err)
			return
		}
	}
	id, secret, err := g.beginSession(w, r, p)
	if err != nil {
		httperr.Write(w, r, err)
		return
	}
	httperr.Reply(w, g.callerInfo(id, secret))
}

// beginSession creates a session and returns its identity. Over TLS the secret
// is set as a cookie; otherwise it is returned, for the page to store.
func (g *Gate) beginSession(w http.ResponseWriter, r *http.Request, p pageSession) (identity, string, error) {
	p.Created, p.From, p.Agent = time.Now().UTC(), peerOf(r).String(), tool.Shorten(r.UserAgent(), 200)
	secret, name, expires, err := g.sessions.open(r.Context(), p)
	if err != nil {
		return identity{}, "", unavailable(err)
	}
	id, err := g.bySession(r.Context(), name)
	if err != nil {
		return identity{}, "", unavailable(err)
	}
	g.audit(tool.WithCaller(r.Context(), id.caller), "session.begin", name, map[string]any{"from": p.From, "agent": p.Agent})
	if secure(r) {
		http.SetCookie(w, cookie(secret, int(time.Until(expires).Seconds())))
		secret = ""
	}
	return id, secret, nil
}

// sessionOfKey returns a new session for a key, and the key's identity.
func (g *Gate) sessionOfKey(ctx context.Context, key telemetry.Secret) (pageSession, identity, error) {
	h := hash(key.Reveal())
	id, err := g.byKey(ctx, h)
	if err != nil {
		return pageSession{}, identity{}, err
	}
	p := pageSession{Owner: id.caller.ID, Name: id.caller.Name}
	if k, ok := g.keys.fixedKey(h); ok {
		p.Fixed = k.ID
	} else {
		p.Key = h
	}
	return p, id, nil
}

func cookie(value string, age int) *http.Cookie {
	return &http.Cookie{Name: CookieName, Value: value, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: true}
}

func unavailable(err error) error {
	return &tool.Error{Kind: tool.Unavailable, Msg: "sessions cannot be read or written now; try again shortly", RetryAfter: 2 * time.Second, Err: err}
}

// sessionOf returns the name of the request's session, or "".
func sessionOf(r *http.Request) string {
	if secret := r.Header.Get(SessionHeader); secret != "" {
		return nameOf(secret)
	}
	if c, err := r.Cookie(CookieName); err == nil && secure(r) {
		return nameOf(c.Value)
	}
	return ""
}

// signOut ends the session in the store and deletes the browser's cookie.
func (g *Gate) signOut(w http.ResponseWriter, r *http.Request) error {
	if name := sessionOf(r); name != "" {
		if err := g.end(r, name); err != nil {
			return err
		}
	}
	if secure(r) {
		http.SetCookie(w, cookie("", -1))
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

func (g *Gate) end(r *http.Request, name string) error {
	if err := g.sessions.end(r.Context(), name); err != nil {
		return unavailable(err)
	}
	g.audit(r.Context(), "session.end", name, nil)
	g.inUse.end("session:" + name)
	return nil
}

// newTicket returns a ticket for one WebSocket.
func (g *Gate) newTicket(r *http.Request) (any, error) {
	name, ok := strings.CutPrefix(identityFrom(r.Context()).credential, "session:")
	if !ok {
		return nil, &tool.Error{Kind: tool.InvalidRequest, Msg: "tickets are for the page's sessions; sign in first (POST /api/session)"}
	}
	ticket, err := g.sessions.ticket(r.Context(), name)
	if err != nil {
		return nil, unavailable(err)
	}
	return map[string]any{"ticket": ticket, "expiresInSeconds": int(ticketTTL.Seconds())}, nil
}

// SessionInfo describes a session of the page, for its owner and administrators.
type SessionInfo struct {
	ID      string    `json:"id"`
	Caller  string    `json:"caller"` // name of the caller
	Created time.Time `json:"created"`
	Expires time.Time `json:"expires"`
	From    string    `json:"from,omitempty"`  // address from which the caller signed in
	Agent   string    `json:"agent,omitempty"` // User-Agent of the browser
	Current bool      `json:"current"`         // the request belongs to this session
}

// visible returns the sessions that the sender of the request may see and end:
// all for an administrator, otherwise those of the same caller. Callers
// without a credential share one identity and see none.
func (g *Gate) visible(r *http.Request) ([]sessionEntry, error) {
	id := identityFrom(r.Context())
	if id.credential == "" {
		return nil, &tool.Error{Kind: tool.Denied, Msg: "sign in to see sessions"}
	}
	if g.ByClient(r) {
		return nil, &tool.Error{Kind: tool.Denied, Msg: "sessions are for the person, not for the programs that act for them; sign in on the page or use a key"}
	}
	all, err := g.sessions.list(r.Context())
	if err != nil {
		return nil, unavailable(err)
	}
	var out []sessionEntry
	for _, l := range all {
		if id.caller.Admin || l.Owner == id.caller.ID {
			out = append(out, l)
		}
	}
	return out, nil
}

func (g *Gate) listSessions(r *http.Request) (any, error) {
	all, err := g.visible(r)
	if err != nil {
		return nil, err
	}
	current := identityFrom(r.Context()).credential
	out := []SessionInfo{}
	for _, l := range all {
		out = append(out, SessionInfo{
			ID: l.name, Caller: l.Name, Created: l.Created, Expires: l.expires, From: l.From, Agent: l.Agent,
			Current: current == "session:"+l.name,
		})
	}
	return map[string]any{"sessions": out}, nil
}

func (g *Gate) endSession(r *http.Request) (any, error) {
	all, err := g.visible(r)
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		if l.name == r.PathValue("id") {
			return nil, g.end(r, l.name)
		}
	}
	return nil, &tool.Error{Kind: tool.MethodNotFound, Msg: "no such session"}
}

// CallerInfo describes the caller of a request.
type CallerInfo struct {
	Caller        string `json:"caller"` // name of the caller
	Admin         bool   `json:"admin"`
	SignedIn      bool   `json:"signedIn"`
	NeedsSignIn   bool   `json:"needsSignIn"`
	Authenticated bool   `json:"authenticated"`     // the request has a valid credential
	OIDC          string `json:"oidc,omitempty"`    // name of the OpenID provider for sign-in; absent if none is configured
	Session       string `json:"session,omitempty"` // secret of a new session, which the page must store; absent if it is in a cookie
}

// callerInfo returns the caller, with the secret of a new session if the page
// has to store it.
func (g *Gate) callerInfo(id identity, session string) CallerInfo {
	anybody := id.caller.ID == tool.AnonymousID
	out := CallerInfo{
		Caller: id.caller.Name, Admin: id.caller.Admin, SignedIn: !anybody, NeedsSignIn: anybody,
		Authenticated: id.credential != "", Session: session,
	}
	if o := g.rules.Load().oidc; o != nil {
		out.OIDC = o.cfg.label()
	}
	return out
}

// failed converts the error of a session lookup to one for the caller.
func failed(err error) error {
	if errors.Is(err, errNoSession) {
		return &tool.Error{Kind: tool.Unauthenticated, Msg: "the session has ended; sign in again", Err: err}
	}
	return unavailable(err)
}
