package upstream

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"junctor/internal/mcpclient"
	"junctor/internal/tool"
)

// Intervals and timeouts of the connect loop.
const (
	minRetryDelay = 250 * time.Millisecond // after the first failure; it doubles with each one
	maxRetryDelay = 30 * time.Second
	stableAfter   = 30 * time.Second // a connection that lasted this long resets the backoff

	// maxStartTimeout bounds the start timeout, which is raised when a program
	// did not answer in time.
	maxStartTimeout = 2 * time.Minute

	// A call to an upstream that is down triggers an attempt to connect. These
	// are the minimum intervals between two attempts.
	childRetryInterval  = 500 * time.Millisecond
	remoteRetryInterval = 200 * time.Millisecond
	authRetryInterval   = 2 * time.Second

	// retryWait is how long such a call waits for the outcome.
	retryWait = 750 * time.Millisecond

	// How long to wait for the exit status of a program that closed its pipes,
	// and of one whose connection failed otherwise during a call.
	exitWait     = 5 * time.Second
	exitWaitCall = time.Second

	listChangedDelay    = 100 * time.Millisecond // between a list_changed and listing: more changes may follow
	maxListChangedDelay = 10 * time.Second       // while more changes follow
	childPingInterval   = time.Minute            // between pings on a silent connection
	remotePingInterval  = 5 * time.Minute
	pingTimeout         = 10 * time.Second
	listTimeout         = 30 * time.Second // for listing the tools again

	// guidanceTimeout is short because the tools are published only after the
	// guidance was read, and there are other sources of guidance.
	guidanceTimeout = 2 * time.Second
)

// upstream is one configured server. It reconnects until it is stopped.
type upstream struct {
	s     *Supervisor
	name  string
	after <-chan struct{} // closed when the predecessor has stopped; nil if there is none
	gone  chan struct{}   // closed when run has returned
	wake  chan struct{}   // try again now

	sharedState *sharedState // of the shared connection; kept across reconnects

	inFlight atomic.Int64

	tasks       tasks
	taskTools   atomic.Pointer[map[string]bool] // tools that can only be called as tasks
	firstCaller atomic.Pointer[string]          // the first caller
	manyCallers atomic.Bool                     // there were other callers
	oneAtATime  atomic.Bool                     // calls wait for each other, so that the server's questions can be attributed

	mu             sync.Mutex
	cfg            Config
	cancel         context.CancelFunc // nil until started
	changed        chan struct{}      // closed and replaced when the state changes
	slots          chan struct{}      // for maxConcurrent; nil for no limit
	waiting        int                // calls that wait for a slot
	state          State
	since          time.Time
	first          bool      // the first attempt to connect has not finished
	startBy        time.Time // until when callers wait for the first connection
	down           *failure  // why it is not connected
	attempts       int
	nextTry        time.Time
	attemptStarted time.Time // when the running attempt began; zero for none
	downCount      int       // how often down was set
	signIn         bool      // a sign-in has finished since the last attempt began

	conn     *conn // nil unless connected
	last     *conn // the previous connection, for its stderr
	protocol string
	tools    int
	problems []string
	latency  time.Duration

	lost        int
	lastFailure string
	failedAt    time.Time

	owner  string                // the other process that runs it; "" for none
	remote *mcpclient.ServerInfo // the owner's information about it

	personal personalTools
	sessions map[string]*session // of single callers
	runCtx   context.Context     // of run; nil before
	ended    bool                // no new sessions are created
	removed  bool                // from the configuration
	children sync.WaitGroup      // connections that are closing; the next attempt waits for them
	work     sync.WaitGroup      // other background work
}

func newUpstream(s *Supervisor, cfg Config, after <-chan struct{}) *upstream {
	u := &upstream{
		s: s, name: cfg.Name, cfg: cfg, after: after, state: Connecting, first: true,
		gone: make(chan struct{}), wake: make(chan struct{}, 1), changed: make(chan struct{}),
		sessions: map[string]*session{}, sharedState: newSharedState(),
	}
	u.slots = newSlots(cfg.MaxConcurrent)
	u.since = time.Now()
	u.startBy = u.since.Add(s.startWait(cfg)) // begin sets it again
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
	u.startBy = u.since.Add(u.s.startWait(u.cfg))
	u.broadcast()
}

// stop cancels run and reports whether the upstream had been started.
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

// mustReplace reports whether new settings require a new upstream: they change
// its connection, or how it is run, which is decided when it starts.
func (s *Supervisor) mustReplace(old, cfg Config) bool {
	return old.Fingerprint() != cfg.Fingerprint() || old.Enabled != cfg.Enabled ||
		s.opts.Singletons != nil && old.Singleton != cfg.Singleton
}

// reconfigure applies settings that do not require a new upstream.
func (u *upstream) reconfigure(cfg Config) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if cfg.MaxConcurrent != u.cfg.MaxConcurrent {
		u.slots = newSlots(cfg.MaxConcurrent)
	}
	u.cfg = cfg
}

func (u *upstream) wasRemoved() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.removed
}

// retryNow makes the connect loop retry without waiting for the whole backoff.
func (u *upstream) retryNow() {
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// signedIn makes an upstream that waited for a sign-in reconnect immediately.
// Calls wait for the outcome instead of requesting another sign-in.
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
// failed because it required one. The next attempt must then follow
// immediately.
func (u *upstream) signedInMeanwhile(why *failure) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.signIn || why.kind() != tool.UpstreamAuthRequired {
		return false
	}
	u.awaitConnection()
	select { // the sign-in requested the attempt that follows anyway
	case <-u.wake:
	default:
	}
	return true
}

// run runs the upstream until ctx is done.
func (u *upstream) run(ctx context.Context) {
	ctx = tool.WithCaller(ctx, tool.Anonymous) // background work has no caller
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
	u.runCtx = ctx
	u.mu.Unlock()
	u.publishStatus()
	if u.config().PersonalLogins() {
		u.runPersonal(ctx)
		return
	}
	if u.config().Singleton && u.s.opts.Singletons != nil {
		u.runWithLease(ctx, u.connectLoop)
		return
	}
	u.connectLoop(ctx)
}
