package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"junctor/internal/mcpclient"
	"junctor/internal/tool"
)

// Singletons determines which one of several processes runs an upstream that is
// marked as a singleton. Without it, every process runs its own.
type Singletons interface {
	// Claim acquires or renews the lease to run the server, for ttl. When
	// another process has it, mine is false and owner names that process.
	Claim(ctx context.Context, server string, ttl time.Duration) (owner string, mine bool, err error)

	// Release releases the lease.
	Release(ctx context.Context, server string) error

	// Do forwards a request to the owner, which executes it.
	Do(ctx context.Context, owner, server string, r tool.Request) (json.RawMessage, error)
}

// The lease of a singleton. A process that could not renew it for
// leaseRenewGrace stops the server. It has the rest of leaseTTL for that,
// before another process starts the server.
const (
	leaseTTL           = 10 * time.Second
	leaseRenewInterval = 2 * time.Second
	leaseRenewGrace    = 5 * time.Second
)

// runWithLease runs the connect loop whenever this process holds the lease of a
// singleton, until ctx is done.
func (u *upstream) runWithLease(ctx context.Context, keep func(context.Context)) {
	own := u.s.opts.Singletons
	for ctx.Err() == nil {
		since := time.Now()
		owner, mine, err := own.Claim(ctx, u.name, leaseTTL)
		switch {
		case err != nil && ctx.Err() == nil:
			u.s.log.DebugContext(ctx, "cannot claim the singleton", "server", u.name, "err", err)
			u.setOwner("", true)
		case !mine:
			u.setOwner(owner, false)
		default:
			u.s.log.InfoContext(ctx, "singleton runs on this node", "server", u.name)
			u.setOwner("", false)
			u.runWhileLeased(ctx, since, keep)
			u.closeSessions()
			u.work.Wait()
			u.children.Wait()
			u.releaseLease(ctx)
			if ctx.Err() == nil {
				u.setDown(ctx, &failure{Kind: tool.UpstreamFailed, Msg: "this node lost its lease to run the server; another node, or this one, will start it again"}, true, leaseRenewInterval)
			}
		}
		sleep(ctx, leaseRenewInterval)
	}
}

// runWhileLeased runs keep until it returns, the lease is lost, or the lease
// could not be renewed for leaseRenewGrace.
func (u *upstream) runWhileLeased(ctx context.Context, since time.Time, keep func(context.Context)) {
	leased, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan struct{})
	go func() {
		defer close(done)
		keep(leased)
	}()
	for {
		select {
		case <-done:
			return
		case <-time.After(leaseRenewInterval):
		}
		now := time.Now()
		renew, cancel := context.WithTimeout(leased, leaseRenewInterval)
		_, mine, err := u.s.opts.Singletons.Claim(renew, u.name, leaseTTL)
		cancel()
		if err == nil && mine {
			since = now
			continue
		}
		if err == nil || time.Since(since) > leaseRenewGrace {
			u.s.log.WarnContext(ctx, "singleton stopped: its lease was lost", "server", u.name, "err", err)
			stop()
			<-done
			return
		}
	}
}

// releaseLease releases the lease, so that another process can run the server.
func (u *upstream) releaseLease(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaseRenewInterval)
	defer cancel()
	if err := u.s.opts.Singletons.Release(ctx, u.name); err != nil {
		u.s.log.DebugContext(ctx, "cannot release the lease of a singleton; it will expire", "server", u.name, "err", err)
	}
}

// setOwner records which other process runs the server, "" for none. If lost is
// set, the owner is unknown, and a known one is kept.
func (u *upstream) setOwner(owner string, lost bool) {
	u.mu.Lock()
	if lost && u.owner != "" { // the last known owner may still run it
		u.mu.Unlock()
		return
	}
	changed := u.owner != owner
	u.owner, u.ended = owner, false
	switch {
	case owner != "" && changed:
		u.down, u.since = nil, time.Now()
		if u.remote != nil {
			u.state, u.first = Connected, false
		} else {
			u.state = Connecting
		}
		u.startBy = u.since.Add(u.s.startWait(u.cfg))
	case owner == "" && changed:
		u.state, u.first, u.since = Connecting, true, time.Now()
		u.startBy = u.since.Add(u.s.startWait(u.cfg))
	}
	u.broadcast()
	u.mu.Unlock()
	if changed {
		u.publishStatus()
	}
}

// SetRemote publishes the server information and the number of tools of an upstream
// that another process runs. It has no effect for one that runs here.
func (s *Supervisor) SetRemote(server string, info mcpclient.ServerInfo, tools int) {
	u := s.find(server)
	if u == nil {
		return
	}
	u.mu.Lock()
	u.remote = &info
	if u.owner == "" {
		u.mu.Unlock()
		return
	}
	u.state, u.first, u.tools = Connected, false, tools
	u.broadcast()
	u.mu.Unlock()
	u.publishStatus()
}

// elsewhere returns the other process that runs the upstream, or "" if none is
// known to.
func (u *upstream) elsewhere() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.owner
}

// DoHere is Do for a request that another process forwarded: it is executed here
// or refused.
func (s *Supervisor) DoHere(ctx context.Context, server string, r tool.Request) (json.RawMessage, error) {
	u := s.find(server)
	if u == nil {
		return nil, notFound(server)
	}
	if u.elsewhere() != "" {
		return nil, movedError(server)
	}
	return u.doHere(ctx, r)
}

// errElsewhere means that another process runs the server, and that the server
// has not received the request.
var errElsewhere = fmt.Errorf("another node runs the server: %w", tool.ErrDown)

// movedError returns the error of a request for a server that this process does
// not run, or no longer runs.
func movedError(server string) error {
	return &tool.Error{
		Kind: tool.UpstreamFailed, RetryAfter: leaseRenewInterval, Err: errElsewhere,
		Msg: fmt.Sprintf("%s is moving to another node; try again shortly", server),
	}
}
