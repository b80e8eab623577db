package upstream

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"junctor/internal/child"
	"junctor/internal/http1"
	"junctor/internal/mcpclient"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// Options are the settings and dependencies of a Supervisor.
type Options struct {
	Sink Sink         // may be nil
	Log  *slog.Logger // nil logs nothing

	// Redact masks secrets in output and error messages of servers in Status;
	// nil changes nothing.
	Redact func(string) string

	// Environ is the environment (KEY=value). Child processes inherit the
	// variables that their configuration allows.
	Environ []string

	// RoundTripper sends the requests to remote servers; nil means the
	// Supervisor's own one, without a proxy.
	RoundTripper http.RoundTripper

	Trace      Tracer            // nil traces nothing
	Authorizer Authorizer        // nil when there is none
	InProcess  map[string]Dialer // the servers inside the process, by upstream name

	// OpenAPI connects to a server in the process that makes tools of an HTTP
	// service; nil when there is no such server.
	OpenAPI func(context.Context, Config) (mcpclient.Transport, error)

	// Name and Version identify this program to servers.
	Name, Version string

	// Capabilities are the client capabilities that are declared to servers.
	// Roots are declared only on sessions of single callers.
	Capabilities mcpclient.Capabilities

	// Singletons grants the leases of servers marked singleton; nil if this
	// process is the only one.
	Singletons Singletons

	// Tasks stores the owners of the tasks of servers; nil keeps them in this
	// process only.
	Tasks TaskOwners

	// DataDir is hidden from the programs of servers where that is possible;
	// see [child.Launcher].
	DataDir string

	// AwaitInstall lets callers wait for a package that is being installed
	// instead of giving up after startTimeoutMs. It is for commands whose exit
	// would interrupt the install.
	AwaitInstall bool

	// Starts reports whether Run starts an upstream of the first
	// configuration; nil starts all. The others stay as they are.
	Starts func(server string) bool

	// DiscoverTimeout is how long to wait for the response to server/discover
	// before initialize is sent too; zero means the default of mcpclient.
	DiscoverTimeout time.Duration

	MaxSessions int           // in addition to the shared one, per upstream; default 64
	SessionIdle time.Duration // idle timeout of these sessions; default 10 min
}

// Tracer is called for every request of callers to servers.
type Tracer interface {
	// Request gets a request before it is sent. It returns a number for
	// Response, and the exchange to send the request with.
	Request(server string, r tool.Request) (id int64, observed tool.Exchange)
	// Response gets the result of the request.
	Response(id int64, server string, r tool.Request, result json.RawMessage, err error)
}

// Supervisor holds the connections to all upstreams. It is safe for
// concurrent use.
type Supervisor struct {
	opts     Options
	log      *slog.Logger
	launcher *child.Launcher

	routes atomic.Pointer[routes] // the upstreams, read by calls without a lock

	changes store.Hub // woken after each change of an upstream

	mu        sync.Mutex
	ctx       context.Context            // set while Run runs
	upstreams map[string]*upstream       // published as routes after each change
	ending    map[string]<-chan struct{} // removed upstreams that have not stopped yet
	wg        sync.WaitGroup

	stopping context.Context // done when waits for first connections must end
	stop     context.CancelFunc
}

// NewSupervisor returns a Supervisor for these upstreams. It dials nothing
// before Run.
func NewSupervisor(configs []Config, o Options) *Supervisor {
	if o.Sink == nil {
		o.Sink = discardSink{}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.RoundTripper == nil {
		o.RoundTripper = http1.New(mcpclient.NewRoundTripper(nil))
	}
	if o.MaxSessions <= 0 {
		o.MaxSessions = 64
	}
	if o.SessionIdle <= 0 {
		o.SessionIdle = 10 * time.Minute
	}
	s := &Supervisor{
		opts: o, log: o.Log.With(telemetry.KeyComponent, "upstream"), launcher: child.NewLauncher(),
		upstreams: make(map[string]*upstream, len(configs)), ending: map[string]<-chan struct{}{},
	}
	s.stopping, s.stop = context.WithCancel(context.Background())
	s.launcher.HideFolder(o.DataDir)
	for _, cfg := range configs {
		s.upstreams[cfg.Name] = newUpstream(s, cfg, nil)
	}
	s.publish()
	return s
}

// routes is an immutable view of the upstreams.
type routes struct {
	byName map[string]*upstream
	sorted []*upstream // by name
}

// publish makes changes of s.upstreams visible to calls. s.mu is held.
func (s *Supervisor) publish() {
	r := &routes{byName: maps.Clone(s.upstreams), sorted: slices.Collect(maps.Values(s.upstreams))}
	slices.SortFunc(r.sorted, func(a, b *upstream) int { return cmp.Compare(a.name, b.name) })
	s.routes.Store(r)
	s.changes.Wake(topicState)
}

// Run connects to all upstreams and keeps them connected until ctx is done. It
// then closes the connections and waits until every child process has exited. A
// Supervisor runs once.
func (s *Supervisor) Run(ctx context.Context) error {
	s.mu.Lock()
	s.ctx = ctx
	for _, u := range s.upstreams {
		if s.opts.Starts == nil || s.opts.Starts(u.name) {
			s.start(u)
		}
	}
	s.mu.Unlock()
	<-ctx.Done()
	s.mu.Lock()
	s.ctx = nil
	s.mu.Unlock()
	s.wg.Wait()
	s.launcher.Close()
	if rt, ok := s.opts.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		rt.CloseIdleConnections()
	}
	return nil
}

// start runs u. s.mu is held.
func (s *Supervisor) start(u *upstream) {
	ctx, cancel := context.WithCancel(s.ctx)
	u.begin(cancel)
	s.wg.Go(func() {
		defer close(u.gone)
		defer cancel()
		u.run(ctx)
	})
}

// Apply replaces the set of upstreams by those of configs. An upstream whose
// connection settings have not changed keeps its connection. Apply does not
// wait for connections to be closed or made.
func (s *Supervisor) Apply(configs []Config) {
	var after []func() // calls of the sink, made without the lock
	defer func() {
		for _, f := range after {
			f()
		}
	}()
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := make(map[string]bool, len(configs))
	for _, cfg := range configs {
		wanted[cfg.Name] = true
		old := s.upstreams[cfg.Name]
		switch {
		case old == nil:
			s.replace(nil, cfg)
		case reflect.DeepEqual(old.config(), cfg):
		case s.mustReplace(old.config(), cfg):
			s.replace(old, cfg)
		default:
			old.reconfigure(cfg)
		}
	}
	removed := map[string]*upstream{}
	for name, u := range s.upstreams {
		if !wanted[name] {
			removed[name] = u
			delete(s.upstreams, name)
		}
	}
	s.publish() // before the upstream notifies the sink of its removal
	for name, u := range removed {
		if u.remove() {
			s.ending[name] = u.gone // it then notifies the sink itself
		} else {
			after = append(after, func() { s.opts.Sink.Removed(name) })
		}
	}
}

// replace replaces old, which may be nil, by a new upstream. The new one starts
// after old has ended, because two processes of one server could interfere.
// s.mu is held.
func (s *Supervisor) replace(old *upstream, cfg Config) {
	after := s.ending[cfg.Name]
	delete(s.ending, cfg.Name)
	if old != nil && old.stop() {
		after = old.gone
	}
	u := newUpstream(s, cfg, after)
	if old != nil {
		u.sharedState = old.sharedState // client sessions survive the replacement
		if old.config().Fingerprint() == cfg.Fingerprint() {
			u.protocol = old.lastProtocol()
		}
	}
	s.upstreams[cfg.Name] = u
	s.publish()
	if s.ctx != nil && s.ctx.Err() == nil {
		s.start(u)
	}
}

// Restart closes the upstream's connection, child process included, and
// makes a new one.
func (s *Supervisor) Restart(server string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.upstreams[server]
	if u == nil {
		return notFound(server)
	}
	s.replace(u, u.config())
	return nil
}

// Retry immediately reconnects an upstream that is down, for example after a
// sign-in.
func (s *Supervisor) Retry(server string) error {
	u := s.find(server)
	if u == nil {
		return notFound(server)
	}
	u.signedIn()
	return nil
}

func (s *Supervisor) find(server string) *upstream { return s.routes.Load().byName[server] }

// all returns the upstreams by name. The list must not be changed.
func (s *Supervisor) all() []*upstream { return s.routes.Load().sorted }

// Has reports whether there is such an upstream, whatever its state.
func (s *Supervisor) Has(server string) bool { return s.find(server) != nil }

func notFound(server string) error {
	return &tool.Error{Kind: tool.ServerNotFound, Msg: fmt.Sprintf("there is no server %q; list them with: junctor servers list", server)}
}

// Do sends one request to the upstream and returns the bytes of its result. An
// error response of the upstream is a *mcp.Error, any other error a
// *tool.Error. Do waits for the first connection of an upstream. If the
// upstream is down, Do triggers an attempt to connect and waits briefly for it,
// and otherwise fails with the reason ([tool.ErrDown]).
func (s *Supervisor) Do(ctx context.Context, server string, r tool.Request) (json.RawMessage, error) {
	u := s.find(server)
	if u == nil {
		return nil, notFound(server)
	}
	if s.opts.Trace == nil {
		return u.do(ctx, r)
	}
	var id int64
	id, r.Exchange = s.opts.Trace.Request(server, r)
	result, err := u.do(ctx, r)
	s.opts.Trace.Response(id, server, r, result, err)
	return result, err
}

// Await waits until the first attempt to connect to each of the named upstreams
// has succeeded or failed, up to its start timeout, and returns those that are
// still pending. Without names it waits for all upstreams. For named upstreams
// it also loads the tools of the context's caller, see
// [Supervisor.LoadCallerTools].
func (s *Supervisor) Await(ctx context.Context, servers ...string) (pending []string) {
	for _, u := range s.all() {
		if (len(servers) == 0 || slices.Contains(servers, u.name)) && !u.awaitFirst(ctx) {
			pending = append(pending, u.name)
		}
	}
	if len(servers) > 0 {
		pending = append(pending, s.loadCallerTools(ctx, tool.CallerFrom(ctx).ID, servers...)...)
	}
	return pending
}

// StopWaiting ends all current and future waits for a first connection, which
// may take minutes. Calls in flight continue.
func (s *Supervisor) StopWaiting() { s.stop() }

// Timeouts returns the idle timeout and the total timeout of calls to the
// upstream; zero for an upstream that does not exist.
func (s *Supervisor) Timeouts(server string) (idle, total time.Duration) {
	u := s.find(server)
	if u == nil {
		return 0, 0
	}
	cfg := u.config()
	return cfg.TimeoutMs.Duration(), cfg.MaxTimeoutMs.Duration()
}

// Connecting returns the upstreams that are making their first connection, by
// name.
func (s *Supervisor) Connecting() []string {
	var names []string
	for _, u := range s.all() {
		if u.connecting() {
			names = append(names, u.name)
		}
	}
	return names
}

// Status returns the status of all upstreams, ordered by name, without the
// output of their programs.
func (s *Supervisor) Status() []Status {
	all := s.all()
	list := make([]Status, len(all))
	for i, u := range all {
		list[i] = u.status()
	}
	return list
}

// StatusOf returns the status of one upstream, without the output of its
// program.
func (s *Supervisor) StatusOf(server string) (Status, bool) {
	u := s.find(server)
	if u == nil {
		return Status{}, false
	}
	return u.status(), true
}

// Diagnose describes one upstream with the last lines that its program wrote.
// The lines are redacted here, so that secrets that became known later are
// masked too. That is too expensive for every call: use it to show the lines.
func (s *Supervisor) Diagnose(server string) (Status, bool) {
	u := s.find(server)
	if u == nil {
		return Status{}, false
	}
	return u.diagnose(), true
}

// Config returns the settings of an upstream.
func (s *Supervisor) Config(server string) (Config, bool) {
	u := s.find(server)
	if u == nil {
		return Config{}, false
	}
	return u.config(), true
}
