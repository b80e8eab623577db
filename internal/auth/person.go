package auth

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// Person identifies the credential with which a person signed in. It is stored
// with the person's consents, contains no secret and is opaque to other
// packages.
type Person string

// personRecord is the content of a Person.
type personRecord struct {
	Session pageSession `json:"session"`
	Open    bool        `json:"open,omitempty"` // the user of an open loopback listener, without a credential
}

func newPerson(p pageSession) (Person, error) {
	p.Created, p.From, p.Agent = time.Time{}, "", ""
	text, err := json.Marshal(personRecord{Session: p})
	return Person(text), err
}

// TokenGrant is what an access token of the gateway's own authorization server
// represents: a client acting for a person.
type TokenGrant struct {
	ID      string
	Person  Person
	Client  string    // the client's name
	Profile string    // the profile that the person chose; empty for none
	Path    string    // of the resource: the token is valid for it and the paths below it
	Expires time.Time // unless it is refreshed
}

// ErrNoGrant means that a grant is unknown, has expired or was revoked.
var ErrNoGrant = errors.New("unknown, expired or revoked consent")

// Tokens checks the tokens of the gateway's own authorization server.
type Tokens interface {
	// Check returns the grant of a token. ok is false for tokens of other
	// issuers and for invalid ones.
	Check(ctx context.Context, token string) (g TokenGrant, ok bool, err error)
	// Grant returns a grant, or ErrNoGrant.
	Grant(ctx context.Context, id string) (TokenGrant, error)
	// MarkStale makes cached grants be looked up again.
	MarkStale()
}

// SpaceGrants is the space of grants in the store; the gate watches it.
const SpaceGrants = "oauth-grants"

// Person returns the person who is signed in with a session of the page, or
// the local user on an open loopback listener.
func (g *Gate) Person(r *http.Request) (Person, tool.Caller, bool) {
	id := identityFrom(r.Context())
	if name, ok := strings.CutPrefix(id.credential, "session:"); ok {
		p, _, err := g.sessions.find(r.Context(), name)
		if err != nil {
			return "", tool.Caller{}, false
		}
		person, err := newPerson(p)
		return person, id.caller, err == nil
	}
	if id.credential == "" && id.caller.ID == tool.Local.ID && g.rules.Load().open && !isForwarded(r) {
		return `{"open":true}`, id.caller, true
	}
	return "", tool.Caller{}, false
}

// PersonByKey returns the person who holds an API key.
func (g *Gate) PersonByKey(ctx context.Context, key telemetry.Secret) (Person, tool.Caller, error) {
	p, id, err := g.sessionOfKey(ctx, key)
	if err != nil {
		return "", tool.Caller{}, err
	}
	person, err := newPerson(p)
	return person, id.caller, err
}

// CallerOf returns the caller for a person, with the person's current rights.
func (g *Gate) CallerOf(ctx context.Context, p Person) (tool.Caller, error) {
	id, err := g.byPerson(ctx, p)
	if err != nil {
		return tool.Caller{}, failed(err)
	}
	return id.caller, nil
}

// ByClient reports whether the request carries an access token of a client.
func (g *Gate) ByClient(r *http.Request) bool {
	return strings.HasPrefix(identityFrom(r.Context()).credential, grantPrefix)
}

// grantPrefix is the credential prefix of clients that act for a person.
// Requests and sessions may outlive an access token; they end with the grant.
const grantPrefix = "grant:"

// byToken returns the caller of an access token for a path.
func (g *Gate) byToken(ctx context.Context, token, path string) (identity, bool, error) {
	grant, ok, err := g.opts.Tokens.Check(ctx, token)
	if err != nil {
		return identity{}, true, unavailable(err)
	}
	if !ok {
		return identity{}, false, nil
	}
	if path != grant.Path && !strings.HasPrefix(path, grant.Path+"/") || strings.Contains(path, "//") || strings.Contains(path+"/", "/../") {
		return identity{}, true, &tool.Error{Kind: tool.Unauthenticated, Msg: "the token is for " + grant.Path + ", not for this address; ask for a token with this address as its resource"}
	}
	id, err := g.byGrant(ctx, grant)
	return id, true, err
}

// byGrant returns the person of a grant with their current rights, limited to
// the profile. Clients have no administrator rights.
func (g *Gate) byGrant(ctx context.Context, grant TokenGrant) (identity, error) {
	id, err := g.byPerson(ctx, grant.Person)
	if err != nil {
		return identity{}, failed(err)
	}
	id.caller.Admin = false
	id.caller.Name += " via " + grant.Client
	id.caller = bind(g.opts.Profiles, id.caller, grant.Profile)
	id.credential = grantPrefix + grant.ID
	if ends := grant.Expires; !ends.IsZero() && (id.expires.IsZero() || ends.Before(id.expires)) {
		id.expires = ends
	}
	id.renew = func(ctx context.Context) (identity, error) {
		again, err := g.opts.Tokens.Grant(ctx, grant.ID)
		if errors.Is(err, ErrNoGrant) {
			return identity{}, &tool.Error{Kind: tool.Unauthenticated, Msg: "the consent was revoked", Err: err}
		}
		if err != nil {
			return identity{}, unavailable(err)
		}
		return g.byGrant(ctx, again)
	}
	return id, nil
}

func (g *Gate) byPerson(ctx context.Context, p Person) (identity, error) {
	var rec personRecord
	if err := json.Unmarshal([]byte(p), &rec); err != nil {
		return identity{}, err
	}
	if rec.Open {
		if !g.rules.Load().open {
			return identity{}, errNoSession
		}
		return identity{caller: tool.Local}, nil
	}
	id, ends, err := g.byCredential(ctx, rec.Session)
	id.expires = ends
	return id, err
}
