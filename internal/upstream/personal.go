package upstream

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/tool"
)

// If each caller has its own login, there is no shared connection. Each caller
// has sessions that use its login, and sees the tools that they list. Nothing
// that one session returned is used for another caller.

const (
	// personalListTTL is how long the list of a caller is used before it is
	// read again, when the caller asks for tools.
	personalListTTL = 5 * time.Minute
	// personalListRetryDelay is the time before a list that could not be read is
	// read again.
	personalListRetryDelay = 10 * time.Second
	// maxPersonalLists bounds the lists of an upstream that are in memory.
	maxPersonalLists = 1000
)

// callerTools are the tools that an upstream lists for one caller.
type callerTools struct {
	generation string // of the login that they were listed with
	set        ToolSet
	digest     [sha256.Size]byte
	read       time.Time // when they were listed; zero if they could not be
	changed    time.Time // when the list last changed
	stale      bool      // another caller has a newer definition of one of them

	published chan struct{} // closed when the sink has the list; nil if there is none

	failed  time.Time   // when listing last failed
	failure *tool.Error // why
}

// personalTools are the tools of all callers; the map is guarded by
// upstream.mu.
type personalTools struct {
	of         map[string]*callerTools
	publishing sync.Mutex // held while the sink is called; locked before upstream.mu
}

// awaitPublished waits until the sink has received a list. If published is nil,
// because the list could not be read, it does not wait.
func awaitPublished(ctx context.Context, published <-chan struct{}) {
	if published == nil {
		return
	}
	select {
	case <-published:
	case <-ctx.Done():
	}
}

// generation returns the generation of the caller's login, or "" if there is
// none.
func (u *upstream) generation(ctx context.Context, caller string) (string, error) {
	a := u.s.opts.Authorizer
	if a == nil || caller == "" {
		return "", nil
	}
	return a.Generation(ctx, Login{Server: u.name, Caller: caller})
}

// runPersonal is connectLoop for an upstream without a shared connection.
func (u *upstream) runPersonal(ctx context.Context) {
	u.publishPersonal() // no tools until a caller signs in
	u.mu.Lock()
	u.state, u.since, u.first, u.down = Connected, time.Now(), false, nil
	u.broadcast()
	u.mu.Unlock()
	u.publishStatus()
	sweep := time.NewTicker(max(u.s.opts.SessionIdle/4, time.Second))
	defer sweep.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-sweep.C:
			u.sweep()
		}
	}
}

// personalSession returns a connection with the caller's own login. The caller
// must call leave on it.
func (u *upstream) personalSession(ctx context.Context, r tool.Request) (*conn, error) {
	generation, err := u.generation(ctx, r.Caller)
	if err != nil {
		return nil, err
	}
	if generation == "" {
		u.forget(r.Caller)
		return nil, &tool.Error{Kind: tool.UpstreamAuthRequired, Msg: fmt.Sprintf("%s requires you to sign in with your own account", u.name), Err: tool.ErrDown}
	}
	info, _ := u.personalInfo(r.Caller)
	return u.session(ctx, connKind{
		caller: r.Caller, login: generation, capabilities: commonCapabilities(u.s.opts.Capabilities, r.Exchange),
		handshake: wantsHandshake(r) && info.BothEras(),
	})
}

// personalInfo returns the server's description of itself to a caller.
func (u *upstream) personalInfo(caller string) (mcpclient.ServerInfo, bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if l := u.personal.of[caller]; l != nil && !l.read.IsZero() {
		return l.set.Info, true
	}
	return mcpclient.ServerInfo{}, false
}

// LoadCallerTools loads the caller's own tool lists that are missing or
// outdated, from the named upstreams, or from all if none is named. It waits
// for each no longer than the upstream's start timeout.
func (s *Supervisor) LoadCallerTools(ctx context.Context, caller string, servers ...string) {
	s.loadCallerTools(ctx, caller, servers...)
}

// loadCallerTools is LoadCallerTools, and returns the upstreams that timed out.
func (s *Supervisor) loadCallerTools(ctx context.Context, caller string, servers ...string) (pending []string) {
	var wg sync.WaitGroup
	var mu sync.Mutex
	for _, u := range s.all() {
		cfg := u.config()
		if !cfg.Enabled || !cfg.PersonalLogins() || len(servers) > 0 && !slices.Contains(servers, u.name) {
			continue
		}
		wg.Go(func() {
			listing, cancel := context.WithTimeout(ctx, cfg.StartTimeoutMs.Duration())
			defer cancel()
			u.ensureList(listing, caller)
			if listing.Err() != nil {
				mu.Lock()
				defer mu.Unlock()
				pending = append(pending, u.name)
			}
		})
	}
	wg.Wait()
	return pending
}

// ensureList lists the tools for a caller unless its list is known and recent.
func (u *upstream) ensureList(ctx context.Context, caller string) {
	generation, err := u.generation(ctx, caller)
	if err != nil {
		u.s.log.DebugContext(ctx, "cannot read the login of the caller", "server", u.name, "caller", caller, "err", err)
		return
	}
	if generation == "" {
		u.forget(caller)
		return
	}
	began := time.Now()
	u.mu.Lock()
	l := u.personal.of[caller]
	known := l != nil && l.generation == generation
	wait := known && (began.Sub(l.failed) < personalListRetryDelay || !l.stale && began.Sub(l.read) < personalListTTL)
	var published <-chan struct{}
	if wait {
		published = l.published
	}
	u.mu.Unlock()
	if wait {
		awaitPublished(ctx, published)
		return
	}
	c, err := u.session(ctx, connKind{caller: caller, login: generation, capabilities: commonCapabilities(u.s.opts.Capabilities, tool.Exchange{})})
	if err == nil {
		defer c.leave()
		_, err = u.listPersonal(ctx, c, began)
	}
	if err != nil && ctx.Err() == nil {
		u.listFailed(caller, generation, err)
	}
}

// listFailed records why the tools could not be listed for a caller.
func (u *upstream) listFailed(caller, generation string, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	l := u.listOf(caller, generation)
	l.failed, l.failure = time.Now(), tool.AsError(err)
}

// listOf returns the list of a caller's login, which may be empty. u.mu is held.
func (u *upstream) listOf(caller, generation string) *callerTools {
	l := u.personal.of[caller]
	if l != nil && l.generation == generation {
		return l
	}
	if u.personal.of == nil {
		u.personal.of = map[string]*callerTools{}
	}
	if l == nil && len(u.personal.of) >= maxPersonalLists { // the oldest is read again when its caller needs it
		oldest := slices.MinFunc(slices.Collect(maps.Keys(u.personal.of)), func(a, b string) int {
			return u.personal.of[a].read.Compare(u.personal.of[b].read)
		})
		delete(u.personal.of, oldest)
	}
	l = &callerTools{generation: generation}
	u.personal.of[caller] = l
	return l
}

// listPersonal lists the tools on a session of one caller, unless that was done
// since. It reports whether the list has changed.
func (u *upstream) listPersonal(ctx context.Context, c *conn, since time.Time) (changed bool, err error) {
	c.listing.Lock()
	defer c.listing.Unlock()
	u.mu.Lock()
	l := u.personal.of[c.caller]
	recent := l != nil && l.generation == c.login && !l.stale && l.read.After(since)
	var published chan struct{}
	if recent {
		published = l.published
		schemas := schemasOf(l.set.Tools)
		c.schemas.Store(&schemas)
	}
	u.mu.Unlock()
	if recent {
		awaitPublished(ctx, published)
		return false, nil
	}
	set, err := u.list(ctx, c, u.config())
	if err != nil {
		return false, err
	}
	now := time.Now()
	u.mu.Lock()
	l = u.listOf(c.caller, c.login)
	changed = l.read.IsZero() || l.digest != c.definitions
	if changed {
		l.changed, l.published = now, make(chan struct{})
	}
	published = l.published
	l.set, l.digest, l.read, l.stale, l.failed, l.failure = set, c.definitions, now, false, time.Time{}, nil
	u.mu.Unlock()
	if !changed {
		awaitPublished(ctx, published)
		return false, nil
	}
	u.publishPersonal()
	close(published)
	u.s.log.InfoContext(ctx, "tools listed for a caller", "server", u.name, "caller", c.caller, "tools", len(set.Tools))
	return true, nil
}

// publishPersonal passes the tools of all callers to the sink, each with the
// callers that it was listed for. If callers have different definitions of a
// tool, the newest one is published, and callers with another one do not see
// the tool: a definition may contain private data of its caller.
func (u *upstream) publishPersonal() {
	u.personal.publishing.Lock()
	defer u.personal.publishing.Unlock()
	u.mu.Lock()
	callers := slices.SortedFunc(maps.Keys(u.personal.of), func(a, b string) int {
		return cmp.Or(u.personal.of[b].changed.Compare(u.personal.of[a].changed), cmp.Compare(a, b))
	})
	all := ToolSet{Config: u.cfg, Callers: map[string][]string{}}
	first := map[string]tool.Definition{}
	newest := map[string]time.Time{}
	for _, caller := range callers {
		l := u.personal.of[caller]
		if all.Info.Name == "" {
			all.Info = mcpclient.ServerInfo{Name: l.set.Info.Name, Title: l.set.Info.Title, Version: l.set.Info.Version, Protocol: l.set.Info.Protocol}
		}
		for _, d := range l.set.Tools {
			name := d.Name.Tool
			if known, ok := first[name]; !ok {
				first[name], newest[name] = d, l.changed
				all.Tools = append(all.Tools, d)
			} else if known.Fingerprint() != d.Fingerprint() {
				if l.stale = l.read.Before(newest[name]); !l.stale {
					u.s.log.Warn("the server defines a tool differently for two callers; one of them does not see it",
						"server", u.name, "tool", d.Name.Tool, "caller", caller)
				}
				continue
			}
			all.Callers[name] = append(all.Callers[name], caller)
		}
	}
	u.mu.Unlock()
	all.Guidance = tool.Guidance{Text: generatedGuidance(&all), Source: tool.Generated}
	u.publishTools(all)
}

// forget closes the sessions and drops the tools of a caller that no longer has
// a login.
func (u *upstream) forget(caller string) {
	u.mu.Lock()
	u.closeSessionsOf(caller, "")
	l := u.personal.of[caller]
	delete(u.personal.of, caller)
	u.mu.Unlock()
	if l != nil && len(l.set.Tools) > 0 {
		u.publishPersonal()
	}
}

// closeSessionsOf closes the sessions of a caller that use a login other than
// its current one. u.mu is held.
func (u *upstream) closeSessionsOf(caller, login string) {
	for key, s := range u.sessions {
		if s.kind.caller != caller || s.kind.login == "" || s.kind.login == login {
			continue
		}
		delete(u.sessions, key)
		if s.conn != nil { // otherwise makeSession closes it
			u.work.Go(s.conn.close)
		}
	}
}

// SignedIn lists the tools, in the background, for a caller that has signed in
// to an upstream with its own login.
func (s *Supervisor) SignedIn(server, caller string) {
	u := s.find(server)
	if u == nil {
		return
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended || u.runCtx == nil {
		return
	}
	ctx := u.runCtx
	u.work.Go(func() { u.ensureList(ctx, caller) })
}

// SignedOut closes the sessions and drops the tools of a caller that no longer
// has its own login to an upstream.
func (s *Supervisor) SignedOut(server, caller string) {
	if u := s.find(server); u != nil {
		u.forget(caller)
	}
}

// StatusForCaller returns the status of an upstream as seen by a caller: if
// callers have their own logins, it is the status of the caller's login.
func (s *Supervisor) StatusForCaller(st Status, caller string) Status {
	u := s.find(st.Name)
	if u == nil || st.State == Disabled || !u.config().PersonalLogins() {
		return st
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	generation, err := u.generation(ctx, caller)
	if err != nil {
		return st
	}
	st.SignedIn = generation != ""
	if !st.SignedIn {
		st.State, st.Reason = AuthRequired, "it requires you to sign in with your own account"
		if caller == tool.Local.ID {
			st.Reason += "; run: junctor servers login " + st.Name
		}
		return st
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if l := u.personal.of[caller]; l != nil && l.generation == generation {
		st.Problems = l.set.Problems
		if l.failure != nil {
			st.State, st.Reason = Disconnected, l.failure.Msg
			if l.failure.Kind == tool.UpstreamAuthRequired {
				st.State = AuthRequired
			}
			s.redact(&st.Reason)
		}
	}
	return st
}

// personalChanged lists the tools of a caller again after its session received
// list_changed.
func (u *upstream) personalChanged(c *conn) {
	if !c.toolsChanged.CompareAndSwap(false, true) {
		return // already scheduled
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended || u.runCtx == nil {
		return
	}
	wait := listChangedDelay // more changes may follow
	if l := u.personal.of[c.caller]; l != nil && time.Since(l.read) < maxListChangedDelay {
		wait = maxListChangedDelay // some servers notify whenever their lists are read
	}
	ctx := u.runCtx
	u.work.Go(func() {
		sleep(ctx, wait)
		c.toolsChanged.Store(false)
		ctx, cancel := context.WithTimeout(ctx, listTimeout)
		defer cancel()
		changed, err := u.listPersonal(ctx, c, time.Now())
		if err != nil {
			u.s.log.DebugContext(ctx, "cannot refresh the list of tools", "server", u.name, "caller", c.caller, "err", err)
		} else if !changed { // the tools were not published, which would have forwarded the notification
			u.s.opts.Sink.Notified(u.name, c.caller, mcp.MethodToolsChanged, nil)
		}
	})
}
