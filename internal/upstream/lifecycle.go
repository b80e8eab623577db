package upstream

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"junctor/internal/mcp"
	"junctor/internal/setting"
	"junctor/internal/tool"
)

// How an upstream is kept.
const (
	firstRetry = 250 * time.Millisecond // after the first failure, growing
	lastRetry  = 30 * time.Second       // to this
	stable     = 30 * time.Second       // a connection that lasted this long was a good one

	// longestStart bounds how long a program gets that did not answer in
	// time; it gets more with each attempt.
	longestStart = 2 * time.Minute

	// A call to an upstream that is down triggers an attempt to connect, but
	// not sooner after the last attempt than this.
	childGap  = 500 * time.Millisecond
	remoteGap = 200 * time.Millisecond
	authGap   = 2 * time.Second

	// retryWait is how long such a call waits for the outcome.
	retryWait = 750 * time.Millisecond

	// How long to wait for the exit status of a program: in the monitor, and in
	// a call that it did not answer.
	exitWait     = 5 * time.Second
	exitWaitCall = time.Second

	listChangedDelay    = 100 * time.Millisecond // more changes may follow a list_changed
	maxListChangedDelay = 10 * time.Second       // when they follow without end
	childCheck          = time.Minute            // between probes of a silent connection
	remoteCheck         = 5 * time.Minute
	checkTimeout        = 10 * time.Second
	listTimeout         = 30 * time.Second // for listing the tools again

	// guidanceTimeout is short because the tools wait for it, and there are
	// other sources.
	guidanceTimeout = 2 * time.Second
)

// upstream is one configured server. It makes its connection again and again
// until it is stopped.
type upstream struct {
	s     *Supervisor
	name  string
	after <-chan struct{} // the predecessor is gone when this is closed; nil for none
	gone  chan struct{}   // closed when run has returned
	wake  chan struct{}   // try again now

	inFlight atomic.Int64

	tasks       tasks
	firstCaller atomic.Pointer[string] // the first caller,
	manyCallers atomic.Bool            // and whether others did

	mu       sync.Mutex
	cfg      Config
	cancel   context.CancelFunc // nil until started
	changed  chan struct{}      // closed and replaced when the state changes
	slots    chan struct{}      // for maxConcurrent; nil for no limit
	waiting  int                // calls that wait for a slot
	state    State
	since    time.Time
	first    bool      // the first connection is neither made nor failed
	startBy  time.Time // until when callers wait for the first connection
	down     *failure  // why it is not connected
	attempts int
	nextTry  time.Time
	trying   time.Time // when the running attempt began; zero for none
	falls    int       // how often down was set
	signIn   bool      // a sign-in has finished since the last attempt began

	conn     *conn // nil unless connected
	last     *conn // the one before, for its stderr
	protocol string
	toolSet  *ToolSet // the last published tool set
	tools    int
	problems []string
	latency  time.Duration

	lost        int
	lastFailure string
	failedAt    time.Time

	owner string          // the process that runs it, when it is another
	lent  *mcp.ServerInfo // the owner's information about it

	sessions map[string]*session // of single callers
	life     context.Context     // of run; nil before
	ended    bool                // no new sessions are created
	removed  bool                // from the configuration
	children sync.WaitGroup      // child processes that are ending
	work     sync.WaitGroup      // remote connections whose last calls are ending
}

func newUpstream(s *Supervisor, cfg Config, after <-chan struct{}) *upstream {
	u := &upstream{
		s: s, name: cfg.Name, cfg: cfg, after: after, state: Connecting, first: true,
		gone: make(chan struct{}), wake: make(chan struct{}, 1), changed: make(chan struct{}),
		sessions: map[string]*session{},
	}
	u.slots = newSlots(cfg.MaxConcurrent)
	u.since = time.Now()
	u.startBy = u.since.Add(s.waitForStart(cfg)) // Run, when it comes, starts again
	if !cfg.Enabled {
		u.state, u.first = Disabled, false
	}
	return u
}

func newSlots(n int) chan struct{} {
	if n <= 0 {
		return nil
	}
	return make(chan struct{}, n)
}

// begin marks the upstream as started.
func (u *upstream) begin(cancel context.CancelFunc) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.cancel = cancel
	u.since = time.Now()
	u.startBy = u.since.Add(u.s.waitForStart(u.cfg))
	u.broadcast()
}

// stop ends the upstream; it reports whether it was running.
func (u *upstream) stop() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.cancel == nil {
		return false
	}
	u.cancel()
	return true
}

// remove is stop for an upstream that is no longer configured.
func (u *upstream) remove() bool {
	u.mu.Lock()
	u.removed = true
	u.mu.Unlock()
	return u.stop()
}

// lastProtocol returns the protocol version negotiated last.
func (u *upstream) lastProtocol() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.protocol
}

func (u *upstream) config() Config {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.cfg
}

// reconfigure applies settings that do not concern the connection. It returns
// the notification of the sink.
func (u *upstream) reconfigure(cfg Config) func() {
	u.mu.Lock()
	if cfg.MaxConcurrent != u.cfg.MaxConcurrent {
		u.slots = newSlots(cfg.MaxConcurrent)
	}
	u.cfg = cfg
	offer := u.toolSet
	if offer != nil {
		again := *offer
		again.Config = cfg
		offer = &again
		u.toolSet = offer
	}
	u.mu.Unlock()
	return func() {
		if offer != nil {
			u.s.opts.Sink.ToolsChanged(*offer)
		}
	}
}

func (u *upstream) wasRemoved() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.removed
}

// retryNow makes the connect loop try again at once.
func (u *upstream) retryNow() {
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// signedIn makes an upstream that waited for a sign-in reconnect at once. Calls
// wait for the outcome instead of requesting another sign-in.
func (u *upstream) signedIn() {
	u.mu.Lock()
	u.signIn = true
	if u.state == AuthRequired {
		u.awaitConnection()
	}
	u.mu.Unlock()
	u.retryNow()
}

// awaitConnection lets calls wait for the next attempt, as for the first. u.mu
// is held.
func (u *upstream) awaitConnection() {
	now := time.Now()
	u.state, u.since, u.first, u.down = Connecting, now, true, nil
	u.startBy = now.Add(u.cfg.StartTimeoutMs.Duration())
	u.lastFailure, u.failedAt, u.nextTry = "", time.Time{}, time.Time{}
	u.broadcast()
}

// signedInMeanwhile reports whether a sign-in finished during an attempt that
// failed for lack of it, so that another attempt is due at once.
func (u *upstream) signedInMeanwhile(why *failure) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.signIn || why.kind() != tool.UpstreamAuthRequired {
		return false
	}
	u.awaitConnection()
	select { // which asked for this attempt
	case <-u.wake:
	default:
	}
	return true
}

// run is the life of the upstream, until ctx is done.
func (u *upstream) run(ctx context.Context) {
	ctx = tool.WithCaller(ctx, tool.Caller{}) // background work has no caller
	if u.after != nil {
		<-u.after
	}
	defer func() {
		if u.wasRemoved() {
			u.s.opts.Sink.Removed(u.name)
		}
	}()
	if !u.config().Enabled {
		u.s.opts.Sink.Removed(u.name)
		u.publishStatus()
		return
	}
	defer u.work.Wait()
	defer u.children.Wait()
	defer u.closeSessions()
	u.mu.Lock()
	u.life = ctx
	u.mu.Unlock()
	u.publishStatus()
	if u.config().Singleton && u.s.opts.Singletons != nil {
		u.runWithLease(ctx, u.connectLoop)
		return
	}
	u.connectLoop(ctx)
}

// connectLoop connects, monitors the connection and reconnects with backoff
// until ctx is done.
func (u *upstream) connectLoop(ctx context.Context) {
	retry := &backoff.ExponentialBackOff{InitialInterval: firstRetry, Multiplier: 2, RandomizationFactor: 0.5, MaxInterval: lastRetry}
	retry.Reset()
	longer := setting.Millis(0) // than startTimeoutMs, for a program that needs it
	for ctx.Err() == nil {
		began := time.Now()
		cfg := u.config().withStartLimit()
		cfg.StartTimeoutMs = max(cfg.StartTimeoutMs, longer)
		c, err := u.attempt(ctx, cfg)
		if err == nil {
			longer = 0
			began = time.Now()
			err = u.monitor(ctx, c)
			u.retire(ctx, c)
		}
		if ctx.Err() != nil {
			return
		}
		if c != nil && time.Since(began) >= stable {
			retry.Reset()
		}
		why := explain(cfg, err)
		if u.signedInMeanwhile(why) {
			continue
		}
		if why.kind() == tool.Timeout && !cfg.remote() {
			longer = max(cfg.StartTimeoutMs, min(2*cfg.StartTimeoutMs, setting.Millis(longestStart/time.Millisecond)))
		}
		wait := max(retry.NextBackOff(), why.RetryAfter)
		u.setDown(ctx, why, c != nil, wait)
		u.waitForRetry(ctx, wait)
	}
}

// setDown records that the upstream is down, and why.
func (u *upstream) setDown(ctx context.Context, why *failure, lost bool, wait time.Duration) {
	now := time.Now()
	u.mu.Lock()
	changed := u.down == nil || u.down.message() != why.message()
	state := Disconnected
	if why.kind() == tool.UpstreamAuthRequired {
		state = AuthRequired
	}
	if u.state != state {
		u.state, u.since = state, now
	}
	if lost {
		u.lost++
	}
	u.down, u.first, u.trying = why, false, time.Time{}
	u.falls++
	u.lastFailure, u.failedAt = why.message(), now
	u.nextTry = now.Add(wait)
	attempts := u.attempts
	u.broadcast()
	u.mu.Unlock()
	u.publishStatus()
	log := u.s.log.DebugContext
	if changed {
		log = u.s.log.WarnContext
	}
	log(ctx, "upstream down", "server", u.name, "reason", why.message(), "err", why.Err, "attempts", attempts, "next", wait)
}

// waitForRetry waits before the next attempt. retryNow shortens the wait.
func (u *upstream) waitForRetry(ctx context.Context, wait time.Duration) {
	u.mu.Lock()
	gap := childGap
	switch {
	case u.state == AuthRequired:
		gap = authGap
	case u.cfg.remote():
		gap = remoteGap
	}
	u.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return
	case <-u.wake:
		u.pauseUnless(ctx, min(gap, wait))
	}
	select { // requests made meanwhile are covered by this attempt
	case <-u.wake:
	default:
	}
}

// pauseUnless waits before a requested attempt, unless the user has signed in
// meanwhile.
func (u *upstream) pauseUnless(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		u.mu.Lock()
		first, changed := u.first, u.changed
		u.mu.Unlock()
		if first { // signedIn
			return
		}
		select {
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// attempt makes a connection and lists the tools.
func (u *upstream) attempt(ctx context.Context, cfg Config) (*conn, error) {
	u.mu.Lock()
	u.attempts++
	u.trying, u.nextTry, u.signIn = time.Now(), time.Time{}, false
	u.mu.Unlock()
	// A child must be gone before its successor starts.
	u.children.Wait()

	c, err := u.dial(ctx, cfg, "", u.s.opts.Capabilities)
	if err != nil {
		if h, ok := errors.AsType[*handshakeError](err); ok && h.conn != nil {
			u.close(h.conn)
		}
		return nil, err
	}
	offer, err := u.list(ctx, c, cfg)
	if err != nil {
		u.close(c)
		return nil, err
	}
	u.publishTools(offer)
	u.connected(ctx, c)
	return c, nil
}

// connected lets calls in.
func (u *upstream) connected(ctx context.Context, c *conn) {
	info := c.client.Info()
	u.mu.Lock()
	u.conn, u.last = c, nil
	u.state, u.since = Connected, time.Now()
	u.down, u.first, u.attempts = nil, false, 0
	u.trying = time.Time{}
	u.protocol = info.Protocol
	tools := u.tools
	u.broadcast()
	u.mu.Unlock()
	u.publishStatus()
	u.s.log.InfoContext(ctx, "upstream connected", "server", u.name, "tools", tools, "protocol", info.Protocol,
		"name", info.Name, "version", info.Version)
}

// broadcast wakes all goroutines that wait for a change. u.mu is held.
func (u *upstream) broadcast() {
	close(u.changed)
	u.changed = make(chan struct{})
}

// publishStatus passes the status to the sink.
func (u *upstream) publishStatus() { u.s.opts.Sink.StatusChanged(u.status()) }

// retire takes the connection out of use. Calls that are still on it may
// finish, where it is one that single calls do not share.
func (u *upstream) retire(ctx context.Context, c *conn) {
	u.mu.Lock()
	u.conn, u.last = nil, c
	u.mu.Unlock()
	if !c.shared && c.client.Err() == nil {
		u.work.Go(func() {
			done := make(chan struct{})
			go func() { defer close(done); c.calls.Wait() }()
			select {
			case <-done:
			case <-ctx.Done():
			case <-c.client.Done():
			}
			c.close()
		})
		return
	}
	u.close(c)
}

// close closes a connection; the next one waits until it is closed.
func (u *upstream) close(c *conn) { u.children.Go(c.close) }
