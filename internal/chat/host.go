package chat

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"junctor/internal/catalog"
	"junctor/internal/llm"
	"junctor/internal/provider"
	"junctor/internal/search"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// Catalog is where the tools are.
type Catalog interface {
	Snapshot() *catalog.Snapshot
}

// Executor executes calls.
type Executor interface {
	Call(ctx context.Context, call tool.Call) (tool.Result, error)
	llm.Limiter
}

// Searcher finds tools by words.
type Searcher interface {
	Search(q search.Query) ([]search.Hit, error)
}

// Store is where conversations are kept.
type Store interface {
	store.Sessions
	store.Values
	store.Leases
	store.Changes
}

// Meter counts.
type Meter interface {
	Dropped(what string)
	Tokens(model string, read, written int)
}

// Options are what a Host is made of.
type Options struct {
	Config   Config
	Models   func() *llm.Set // the models of the moment; none is no error
	Catalog  Catalog
	Executor Executor
	Search   Searcher
	Signals  func(text string) search.Signals // of the search; may be nil
	Store    Store
	Servers  func() []ServerState // what cannot be used now; may be nil
	Meter    Meter                // may be nil
	Tracer   *telemetry.Tracer    // may be nil
	Log      *slog.Logger
	Node     string // names this process among those on the same store

	// Shared says that other processes serve the same sessions, so that
	// their words must be listened for.
	Shared bool
}

// Host holds the conversations of this process.
type Host struct {
	Options
	cfg   atomic.Pointer[Config]
	tools toolCache
	meta  *llm.Toolset

	ctx    context.Context // of all turns
	cancel context.CancelFunc
	turns  sync.WaitGroup

	loads singleflight.Group // of sessions out of the store, by id

	mu          sync.Mutex
	sessions    map[string]*Session
	connections int
	closed      bool
}

// New returns a Host; it starts nothing and reads nothing.
func New(o Options) *Host {
	o.Log = o.Log.With(telemetry.KeyComponent, "chat")
	h := &Host{Options: o, sessions: map[string]*Session{}, meta: llm.ToolsetOf(metaDefinitions()...)}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.SetConfig(o.Config)
	return h
}

// SetConfig changes the numbers for what begins from now on.
func (h *Host) SetConfig(cfg Config) { h.cfg.Store(&cfg) }

// CurrentConfig returns the settings in effect.
func (h *Host) CurrentConfig() Config { return *h.cfg.Load() }

func (h *Host) config() Config { return *h.cfg.Load() }

// Run forgets sessions that nobody uses and hears other processes until ctx
// is done; then it ends the replies that are in progress, each with a valid
// history.
func (h *Host) Run(ctx context.Context) error {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
	if !h.Shared {
		h.turns.Go(func() { h.endDeadTurns(ctx) })
	}
	var commands <-chan struct{}
	if h.Shared {
		commands = h.Store.Watch(ctx, store.TopicValues(commandSpace))
	}
	for {
		select {
		case <-ctx.Done():
			h.mu.Lock()
			h.closed = true
			h.mu.Unlock()
			h.cancel()
			h.turns.Wait()
			return nil
		case <-tick.C:
			h.sweep(time.Now())
		case <-commands:
			h.runCommands(ctx)
		}
	}
}

// Busy reports whether a reply is being given.
func (h *Host) Busy() bool {
	h.mu.Lock()
	sessions := slices.Collect(maps.Values(h.sessions))
	h.mu.Unlock()
	return slices.ContainsFunc(sessions, func(s *Session) bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.turn != nil || s.outbox.busy
	})
}

// Connections counts the clients that are connected.
func (h *Host) Connections() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.connections
}

// unsaidIdle is how long a session in which nothing was said waits for a
// client that comes back: whoever connects gets one, and there is nothing in
// it to lose.
const unsaidIdle = 2 * time.Minute

// sweep forgets the sessions that have been idle for long; they stay in the
// store.
func (h *Host) sweep(now time.Time) {
	idle := h.config().SessionIdleMs.Duration()
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, s := range h.sessions {
		limit := idle
		if !s.isStored() {
			limit = min(idle, unsaidIdle)
		}
		if s.idleSince(now) > limit {
			delete(h.sessions, id)
		}
	}
}

// OpenSessions counts the conversations that have a client or a reply under
// way.
func (h *Host) OpenSessions() int {
	now, n := time.Now(), 0
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, s := range h.sessions {
		if s.idleSince(now) == 0 {
			n++
		}
	}
	return n
}

func noSession() *tool.Error {
	return &tool.Error{Kind: tool.InvalidRequest, Msg: "there is no such session; start a new one without sessionId"}
}

// Open returns a session: a new one for the empty id, else the caller's own
// of that id. One that belongs to someone else does not exist for it.
func (h *Host) Open(ctx context.Context, caller tool.Caller, id string) (*Session, error) {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil, &tool.Error{Kind: tool.Unavailable, Msg: "the gateway is stopping; connect again in a moment"}
	}
	if id == "" {
		s := &Session{host: h, id: rand.Text(), owner: caller.ID, created: time.Now(), active: time.Now(), watchers: map[*Watcher]struct{}{}}
		h.sessions[s.id] = s
		h.mu.Unlock()
		return s, nil
	}
	s := h.sessions[id]
	h.mu.Unlock()
	if s != nil {
		if s.owner != caller.ID {
			return nil, noSession()
		}
		return s, s.refresh(ctx)
	}
	if len(id) > 128 {
		return nil, noSession()
	}
	rec, err := h.Store.Session(ctx, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && rec.Owner != caller.ID {
		return nil, noSession()
	}
	if err != nil {
		return nil, unavailable(err)
	}
	// One loads it for all that open it now: loading ends the reply of a dead
	// process, which must happen once.
	v, err, _ := h.loads.Do(id, func() (any, error) {
		h.mu.Lock()
		s := h.sessions[id]
		h.mu.Unlock()
		if s != nil {
			return s, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
		defer cancel()
		s = &Session{host: h, id: id, owner: rec.Owner, created: rec.Created, active: time.Now(), stored: true, watchers: map[*Watcher]struct{}{}}
		if err := s.load(ctx); err != nil {
			return nil, err
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.sessions[id] = s
		return s, nil
	})
	if err != nil {
		return nil, err
	}
	return v.(*Session), nil
}

// loadTimeout bounds the reading of a session.
const loadTimeout = 30 * time.Second

func unavailable(err error) error {
	return &tool.Error{Kind: tool.Unavailable, Msg: "the conversation cannot be read or written now; try again in a moment", Err: err}
}

// model returns the model that a session asks for, or the default.
func (h *Host) model(id string) llm.Model {
	if h.Models == nil {
		return nil
	}
	set := h.Models()
	if set == nil {
		return nil
	}
	if m := set.Get(id); m != nil {
		return m
	}
	return set.Get("") // the one it asks for is gone
}

// unavailableServers returns what the caller cannot use now.
func (h *Host) unavailableServers(caller *tool.Caller) []ServerState {
	if h.Servers == nil {
		return nil
	}
	var out []ServerState
	for _, s := range h.Servers() {
		if caller.MaySee(s.Server) {
			out = append(out, s)
		}
	}
	return out
}

// toolCache keeps the translation of the latest catalogue: translating a
// thousand tools for each turn would cost more than the turn.
type toolCache struct {
	mu      sync.Mutex
	version uint64
	tools   *provider.Tools
}

func (c *toolCache) get(snap *catalog.Snapshot) *provider.Tools {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tools == nil || c.version != snap.Version {
		var defs []tool.Definition
		for _, s := range snap.Servers() {
			for _, e := range s.Tools {
				if e.Enabled {
					defs = append(defs, e.Definition)
				}
			}
		}
		c.tools, c.version = provider.NewTools(defs, c.tools), snap.Version
	}
	return c.tools
}
