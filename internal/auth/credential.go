package auth

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"junctor/internal/httperr"
	"junctor/internal/tool"
)

// credential is a credential that requests, sessions or responses are using.
// When it ends, all its users end with it.
type credential struct {
	all    *credentials
	name   string
	caller tool.Caller
	renew  func(context.Context) (identity, error) // checks the credential again

	mu      sync.Mutex
	ended   bool
	users   []*credentialUser
	expires time.Time   // zero: never
	expiry  *time.Timer // calls end at expires
}

// credentialUser is a user of a credential: a request, which is canceled when
// the credential ends, or another user, whose f is called.
type credentialUser struct {
	identity identity // set for requests only
	of       *credential
	cancel   context.CancelCauseFunc
	f        func()
	at       int // index in of.users
}

// end runs in its own goroutine.
func (u *credentialUser) end() {
	if u.f != nil {
		u.f()
		return
	}
	u.cancel(tool.ErrCredentialEnded)
}

// credentials holds the credentials in use, by name.
type credentials struct {
	mu    sync.Mutex
	known map[string]*credential
}

// OnEnd implements tool.Credential.
func (c *credential) OnEnd(f func()) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		go f()
		return func() {}
	}
	u := &credentialUser{f: f}
	c.add(u)
	return u.leave
}

// add registers u. c.mu is held.
func (c *credential) add(u *credentialUser) {
	u.of, u.at = c, len(c.users)
	c.users = append(c.users, u)
}

// leave unregisters u from its credential, if it has one. A credential is
// dropped with its last user. Further calls do nothing.
func (u *credentialUser) leave() {
	c := u.of
	if c == nil {
		return
	}
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if u.at >= len(c.users) || c.users[u.at] != u {
		return
	}
	last := len(c.users) - 1
	c.users[u.at] = c.users[last]
	c.users[u.at].at = u.at
	c.users[last] = nil
	if c.users = c.users[:last]; last == 0 {
		c.drop()
	}
}

// drop removes the credential from those in use. Both locks are held.
func (c *credential) drop() {
	if c.all.known[c.name] == c {
		delete(c.all.known, c.name)
	}
	if c.expiry != nil {
		c.expiry.Stop()
	}
}

// expireAt sets when the credential expires. A refresh may have extended it.
// c.mu is held.
func (c *credential) expireAt(t time.Time) {
	if t.Equal(c.expires) || len(c.users) == 0 {
		return
	}
	if c.expiry != nil {
		c.expiry.Stop()
	}
	if c.expires = t; !t.IsZero() {
		c.expiry = time.AfterFunc(time.Until(t), c.end)
	}
}

// end ends all users of the credential.
func (c *credential) end() {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for _, u := range c.users {
		go u.end()
	}
	c.users = nil
	c.drop()
}

// use registers u as a user of its identity's credential and creates the
// credential if it is not in use yet. If the known credential has other
// rights, it is ended first, because the request's are newer.
func (a *credentials) use(u *credentialUser) *credential {
	id := &u.identity
	name := cmp.Or(id.credential, openLoopback)
	a.mu.Lock()
	c := a.known[name]
	if c != nil && !sameRights(c.caller, id.caller) {
		a.mu.Unlock()
		c.end()
		a.mu.Lock()
		c = a.known[name]
	}
	defer a.mu.Unlock()
	if c == nil {
		c = &credential{all: a, name: name, caller: id.caller, renew: id.renew}
		if a.known == nil {
			a.known = map[string]*credential{}
		}
		a.known[name] = c
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(u)
	c.expireAt(id.expires)
	return c
}

// end ends the credential of that name, if it is in use.
func (a *credentials) end(name string) {
	a.mu.Lock()
	c := a.known[name]
	a.mu.Unlock()
	if c != nil {
		c.end()
	}
}

// recheck ends the credentials that are no longer valid or whose rights have
// changed. A credential that cannot be checked now stays in use.
func (a *credentials) recheck(ctx context.Context) {
	a.mu.Lock()
	all := make([]*credential, 0, len(a.known))
	for _, c := range a.known {
		all = append(all, c)
	}
	a.mu.Unlock()
	for _, c := range all {
		id, err := c.renew(ctx)
		switch {
		case err == nil && sameRights(id.caller, c.caller):
			c.mu.Lock()
			c.expireAt(id.expires)
			c.mu.Unlock()
		case err != nil && tool.KindOf(err) != tool.Unauthenticated && tool.KindOf(err) != tool.Denied:
		default:
			c.end()
		}
	}
}

// sameRights reports whether both callers have the same identity and rights.
func sameRights(a, b tool.Caller) bool {
	return a.ID == b.ID && a.Admin == b.Admin && sameGlobs(a.Servers, b.Servers) && sameGlobs(a.Tools, b.Tools) &&
		slices.Equal(a.Profiles.Names(), b.Profiles.Names()) &&
		(a.Grants == nil) == (b.Grants == nil) && slices.EqualFunc(a.Grants, b.Grants, func(a, b tool.Grant) bool {
		return sameGlobs(a.Servers, b.Servers) && sameGlobs(a.Tools, b.Tools) && slices.Equal(a.Profiles.Names(), b.Profiles.Names())
	}) && a.Rate == b.Rate && a.Chat == b.Chat && a.TokensPerDay == b.TokensPerDay
}

// sameGlobs compares two lists. An empty list, which allows nothing, differs
// from nil, which allows all.
func sameGlobs(a, b []string) bool { return (a == nil) == (b == nil) && slices.Equal(a, b) }

// release ends a request's use of the credential and the request's context.
func (u *credentialUser) release() {
	u.leave()
	u.cancel(nil)
}

// bind gives the request a context that is canceled when its credential ends.
// The caller must release use when the request has been served.
func (a *credentials) bind(r *http.Request, id identity) (bound *http.Request, use *credentialUser) {
	use = &credentialUser{identity: id}
	ctx, cancel := tool.SetCancel(r.Context())
	use.cancel = cancel
	ctx = withIdentity(ctx, &use.identity)
	if id.renew != nil {
		ctx = tool.SetCredential(ctx, a.use(use))
	}
	return httperr.WithContext(r, ctx), use
}
