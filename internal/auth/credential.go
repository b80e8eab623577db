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

// credential is one that requests, sessions or replies are using now. All of
// them end with it.
type credential struct {
	all     *credentials
	name    string
	caller  tool.Caller
	expires *time.Timer                             // nil when it never does
	renew   func(context.Context) (identity, error) // checks it again

	mu    sync.Mutex
	ended bool
	users []*credentialUser
}

// credentialUser is something that ends with its credential.
type credentialUser struct {
	of *credential
	f  func() // called in its own goroutine
	at int    // index in of.users
}

// credentials are those in use, by name.
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
	return c.add(f).leave
}

// add registers f. c.mu is held.
func (c *credential) add(f func()) *credentialUser {
	u := &credentialUser{of: c, f: f, at: len(c.users)}
	c.users = append(c.users, u)
	return u
}

// leave ends the use of the credential, which is forgotten with its last user.
// Further calls do nothing.
func (u *credentialUser) leave() {
	c := u.of
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

// drop takes the credential out of use; both locks are held.
func (c *credential) drop() {
	if c.all.known[c.name] == c {
		delete(c.all.known, c.name)
	}
	if c.expires != nil {
		c.expires.Stop()
	}
}

// end ends everything that uses the credential.
func (c *credential) end() {
	c.all.mu.Lock()
	defer c.all.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	for _, u := range c.users {
		go u.f()
	}
	c.users = nil
	c.drop()
}

// use registers f as a user of the identity's credential, which is made when it
// is the first. One that gave other rights ends first: the request is newer.
func (a *credentials) use(id identity, f func()) (*credential, *credentialUser) {
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
		if !id.expires.IsZero() {
			c.expires = time.AfterFunc(time.Until(id.expires), c.end)
		}
		if a.known == nil {
			a.known = map[string]*credential{}
		}
		a.known[name] = c
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c, c.add(f)
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

// recheck ends the credentials that are not valid any more, or give other
// rights than they did. One that cannot be checked now stays.
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
		case err != nil && tool.KindOf(err) != tool.Unauthenticated && tool.KindOf(err) != tool.Denied:
		default:
			c.end()
		}
	}
}

// sameRights reports whether both callers may do the same.
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

// bind gives the request a context that ends with its credential.
func (a *credentials) bind(r *http.Request, id identity) (bound *http.Request, release func()) {
	ctx, cancel := tool.SetCancel(r.Context())
	ctx = withIdentity(ctx, id)
	if id.renew == nil {
		return httperr.WithContext(r, ctx), func() { cancel(nil) }
	}
	c, user := a.use(id, func() { cancel(tool.ErrCredentialEnded) })
	return httperr.WithContext(r, tool.SetCredential(ctx, c)), func() {
		user.leave()
		cancel(nil)
	}
}
