package auth

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"junctor/internal/store"
	"junctor/internal/tool"
)

// SessionStore stores the sessions of the web page. [store.Values] implements
// it.
type SessionStore interface {
	Value(ctx context.Context, space, name string) (store.Value, error)
	Values(ctx context.Context, space string) ([]store.Value, error)
	PutValue(ctx context.Context, v store.Value, ifVersion int64) (store.Value, error)
	DeleteValue(ctx context.Context, space, name string, ifVersion int64) error
}

const (
	// SpaceSessions and spaceTickets are the spaces of sessions and tickets in
	// the store. The names are hashes, so that the stored records cannot be
	// used to sign in.
	SpaceSessions = "page-sessions"
	spaceTickets  = "page-tickets"

	// sessionTTL is how long a sign-in lasts.
	sessionTTL = 30 * 24 * time.Hour
	// ticketTTL is how long a page may take to open its WebSocket.
	ticketTTL = 30 * time.Second
	// maxSessions bounds the sessions of one credential; the oldest are
	// removed first.
	maxSessions = 50
)

// errNoSession means that the session or its credential is unknown, has
// expired or was ended.
var errNoSession = errors.New("unknown, expired or ended session")

// pageSession is a session of the web page. It has the rights of its
// credential, looked up for each request, and ends with it.
type pageSession struct {
	Key     []byte      `json:"key,omitempty"`    // hash of an API key in the store
	Fixed   string      `json:"fixed,omitempty"`  // id of a key in the file or the environment
	Local   string      `json:"local,omitempty"`  // fingerprint of the local token
	Person  *oidcPerson `json:"person,omitempty"` // who signed in at the OpenID provider
	Owner   string      `json:"owner"`            // id of the caller
	Name    string      `json:"name"`             // name of the caller, for people
	Created time.Time   `json:"created"`
	From    string      `json:"from,omitempty"`  // address of the browser
	Agent   string      `json:"agent,omitempty"` // the User-Agent header
}

// sameCredential reports whether both sessions were opened with one credential.
func (s pageSession) sameCredential(o pageSession) bool {
	if s.Person != nil || o.Person != nil {
		return s.Person != nil && o.Person != nil && s.Person.id() == o.Person.id()
	}
	return string(s.Key) == string(o.Key) && s.Fixed == o.Fixed && s.Local == o.Local
}

// sessions stores the page's sessions. It caches those in use as long as
// keyring caches keys (keyCacheTTL, maxKeyStaleness).
type sessions struct {
	store SessionStore

	mu    sync.Mutex
	known map[string]knownSession // by name
}

type knownSession struct {
	session pageSession
	expires time.Time
	checked time.Time
}

func newSessions(s SessionStore) *sessions {
	return &sessions{store: s, known: map[string]knownSession{}}
}

// nameOf returns the name under which a session or a ticket is stored.
func nameOf(secret string) string { return hex.EncodeToString(hash(secret)) }

// open creates a session and returns its secret, which only the page stores.
func (s *sessions) open(ctx context.Context, p pageSession) (secret, name string, expires time.Time, err error) {
	data, err := json.Marshal(p)
	if err != nil {
		return "", "", time.Time{}, err
	}
	if err := s.trim(ctx, p); err != nil {
		return "", "", time.Time{}, err
	}
	secret = rand.Text()
	ttl := sessionTTL
	if p.Person != nil {
		ttl = oidcSessionTTL
	}
	name, expires = nameOf(secret), time.Now().Add(ttl)
	_, err = s.store.PutValue(ctx, store.Value{Space: SpaceSessions, Name: name, Data: data, Expires: expires}, 0)
	if err != nil {
		return "", "", time.Time{}, fmt.Errorf("store a session: %w", err)
	}
	return secret, name, expires, nil
}

// trim removes the oldest sessions of a credential that has too many.
func (s *sessions) trim(ctx context.Context, p pageSession) error {
	all, err := s.list(ctx)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(l sessionEntry) bool { return !l.sameCredential(p) })
	for len(all) >= maxSessions {
		if err := s.end(ctx, all[0].name); err != nil {
			return err
		}
		all = all[1:]
	}
	return nil
}

// find returns the session of that name.
func (s *sessions) find(ctx context.Context, name string) (pageSession, time.Time, error) {
	now := time.Now()
	s.mu.Lock()
	k, ok := s.known[name]
	s.mu.Unlock()
	if ok && !now.Before(k.expires) {
		return pageSession{}, time.Time{}, errNoSession
	}
	if ok && now.Sub(k.checked) < keyCacheTTL {
		return k.session, k.expires, nil
	}
	v, err := s.store.Value(ctx, SpaceSessions, name)
	switch {
	case errors.Is(err, store.ErrNotFound):
		s.forget(name)
		return pageSession{}, time.Time{}, errNoSession
	case err != nil && ok && now.Sub(k.checked) < maxKeyStaleness:
		return k.session, k.expires, nil
	case err != nil:
		return pageSession{}, time.Time{}, fmt.Errorf("look up a session: %w", err)
	}
	k = knownSession{expires: v.Expires, checked: now}
	if err := json.Unmarshal(v.Data, &k.session); err != nil {
		return pageSession{}, time.Time{}, fmt.Errorf("read a session: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= maxKnownKeys {
		clear(s.known)
	}
	s.known[name] = k
	return k.session, k.expires, nil
}

func (s *sessions) forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, name)
}

// markStale marks the cached sessions for another lookup. They remain usable
// while the store is unavailable.
func (s *sessions) markStale() {
	s.mu.Lock()
	defer s.mu.Unlock()
	old := time.Now().Add(-keyCacheTTL)
	for name, k := range s.known {
		if k.checked.After(old) {
			k.checked = old
			s.known[name] = k
		}
	}
}

// end removes a session. It returns nil if there is none.
func (s *sessions) end(ctx context.Context, name string) error {
	if err := s.store.DeleteValue(ctx, SpaceSessions, name, store.AnyVersion); err != nil {
		return fmt.Errorf("end a session: %w", err)
	}
	s.forget(name)
	return nil
}

type sessionEntry struct {
	pageSession
	name    string
	expires time.Time
}

// list returns the sessions in effect, oldest first.
func (s *sessions) list(ctx context.Context) ([]sessionEntry, error) {
	values, err := s.store.Values(ctx, SpaceSessions)
	if err != nil {
		return nil, fmt.Errorf("read the sessions: %w", err)
	}
	var out []sessionEntry
	for _, v := range values {
		l := sessionEntry{name: v.Name, expires: v.Expires}
		if json.Unmarshal(v.Data, &l.pageSession) == nil {
			out = append(out, l)
		}
	}
	slices.SortStableFunc(out, func(a, b sessionEntry) int { return a.Created.Compare(b.Created) })
	return out, nil
}

// ticket creates a ticket that admits one WebSocket of the session, on any
// node. It is needed because pages cannot set headers on WebSocket requests.
func (s *sessions) ticket(ctx context.Context, session string) (string, error) {
	secret := rand.Text()
	_, err := s.store.PutValue(ctx, store.Value{
		Space: spaceTickets, Name: nameOf(secret), Data: []byte(session), Expires: time.Now().Add(ticketTTL),
	}, 0)
	if err != nil {
		return "", fmt.Errorf("store a ticket: %w", err)
	}
	return secret, nil
}

// redeem returns the session of a ticket. A ticket works once.
func (s *sessions) redeem(ctx context.Context, ticket string) (session string, err error) {
	v, err := s.store.Value(ctx, spaceTickets, nameOf(ticket))
	if errors.Is(err, store.ErrNotFound) || err == nil && len(v.Data) == 0 {
		return "", errNoSession
	}
	if err != nil {
		return "", fmt.Errorf("look up a ticket: %w", err)
	}
	// Of two concurrent requests with the same ticket, only one write
	// succeeds. The empty record remains until the ticket would have expired.
	_, err = s.store.PutValue(ctx, store.Value{Space: spaceTickets, Name: v.Name, Expires: v.Expires}, v.Version)
	if errors.Is(err, store.ErrConflict) {
		return "", errNoSession
	}
	if err != nil {
		return "", fmt.Errorf("use a ticket: %w", err)
	}
	return string(v.Data), nil
}

// bySession returns the identity of a session: that of the credential it was
// opened with. All session lookups go through it.
func (g *Gate) bySession(ctx context.Context, name string) (identity, error) {
	p, expires, err := g.sessions.find(ctx, name)
	if err != nil {
		return identity{}, err
	}
	id, ends, err := g.byCredential(ctx, p)
	if err != nil {
		return identity{}, err
	}
	if !ends.IsZero() && ends.Before(expires) {
		expires = ends
	}
	id.credential, id.expires = "session:"+name, expires
	id.renew = func(ctx context.Context) (identity, error) {
		id, err := g.bySession(ctx, name)
		if err != nil {
			err = failed(err)
		}
		return id, err
	}
	return id, nil
}

// byCredential returns the caller of the credential that a session was opened
// with, and the credential's expiry; the zero time means never.
func (g *Gate) byCredential(ctx context.Context, p pageSession) (identity, time.Time, error) {
	if p.Local != "" {
		if g.localToken == "" || p.Local != fingerprint(g.localToken) {
			return identity{}, time.Time{}, errNoSession
		}
		return identity{caller: tool.Local}, time.Time{}, nil
	}
	if p.Person != nil {
		caller, err := g.byPersonClaims(p.Person)
		if tool.KindOf(err) == tool.Denied {
			err = errNoSession // the rule was removed
		}
		return identity{caller: caller}, time.Time{}, err
	}
	k, err := g.keys.of(ctx, p)
	if errors.Is(err, errUnknownKey) {
		return identity{}, time.Time{}, errNoSession
	}
	if err != nil {
		return identity{}, time.Time{}, err
	}
	return identity{caller: g.callerOf(k)}, k.Expires, nil
}

// of returns the key that a session was opened with.
func (r *keyring) of(ctx context.Context, p pageSession) (store.Key, error) {
	if p.Fixed == "" {
		return r.find(ctx, p.Key)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.fixed {
		if k.ID == p.Fixed {
			return valid(k, time.Now())
		}
	}
	return store.Key{}, errUnknownKey
}
