package chat

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"junctor/internal/approval"
	"junctor/internal/chat/wire"
	"junctor/internal/listing"
	"junctor/internal/llm"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// Executor executes calls and limits requests to models.
type Executor interface {
	Call(ctx context.Context, call tool.Call) (tool.Result, error)
	llm.Limiter
}

// Store stores conversations.
type Store interface {
	store.Sessions
	store.Values
	store.Leases
	store.Changes
}

// Meter counts messages, connections and tokens.
type Meter interface {
	Dropped(what string)
	Tokens(model string, read, written int)
}

// Options are the dependencies of a Host.
type Options struct {
	Config   Config
	Models   func() *llm.Set // the current models; may be empty
	Tools    *listing.Service
	Executor Executor
	Store    Store
	// Approvals are the permanent ones of all callers.
	Approvals *approval.Standing
	// Profiles narrows callers to the profile that a conversation has chosen.
	Profiles interface {
		Narrow(c tool.Caller, profile string) (tool.Caller, error)
	}
	// ApprovalTimeout returns how long a person may take to answer.
	ApprovalTimeout func() time.Duration
	Meter           Meter             // may be nil
	Tracer          *telemetry.Tracer // may be nil
	Log             *slog.Logger
	Node            string // identifies this process among those on the same store

	// Shared means that other processes serve the same sessions, so that their
	// messages must be followed.
	Shared bool

	leaseTime time.Duration // 0 means the default; tests on busy machines need more
}

// Host holds the loaded conversations of this process.
type Host struct {
	Options
	cfg  atomic.Pointer[Config]
	meta *llm.Toolset

	ctx    context.Context // parent context of all turns
	cancel context.CancelFunc
	turns  sync.WaitGroup

	stopping    context.Context // done when no reply may wait for a person any longer
	stopWaiting context.CancelFunc

	loads singleflight.Group // loads of sessions in progress, by id

	changes store.Hub // woken when a reply starts or stops waiting for the user

	mu          sync.Mutex
	sessions    map[string]*Session
	connections int
	closed      bool
}

// New returns a Host. It starts nothing and reads nothing.
func New(o Options) *Host {
	o.Log = o.Log.With(telemetry.KeyComponent, "chat")
	if o.leaseTime == 0 {
		o.leaseTime = defaultLeaseTime
	}
	h := &Host{Options: o, sessions: map[string]*Session{}, meta: llm.ToolsetOf(metaDefinitions()...)}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	h.stopping, h.stopWaiting = context.WithCancel(context.Background())
	h.SetConfig(o.Config)
	return h
}

// SetConfig replaces the settings for new connections and turns.
func (h *Host) SetConfig(cfg Config) { h.cfg.Store(&cfg) }

// CurrentConfig returns the settings in effect.
func (h *Host) CurrentConfig() Config { return *h.cfg.Load() }

func (h *Host) config() Config { return *h.cfg.Load() }

// Run unloads idle sessions and follows other processes until ctx is done. It
// then ends the replies in progress, each with a valid history.
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

// StopWaiting ends the replies that wait for a person, and from then on every
// reply that would start to wait. Other replies continue.
func (h *Host) StopWaiting() { h.stopWaiting() }

// Busy reports whether any reply is in progress.
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

// topicWaiting is the one topic of Host.changes.
const topicWaiting = "waiting"

// WatchWaiting returns a channel that receives after the result of Waiting may
// have changed, until ctx is done.
func (h *Host) WatchWaiting(ctx context.Context) <-chan struct{} {
	return h.changes.Watch(ctx, topicWaiting)
}

// Waiting returns the ids of the caller's sessions whose reply waits for the
// user, sorted.
func (h *Host) Waiting(caller *tool.Caller) []string {
	h.mu.Lock()
	sessions := slices.Collect(maps.Values(h.sessions))
	h.mu.Unlock()
	ids := []string{}
	for _, s := range sessions {
		if s.readableBy(caller) && s.waiting() {
			ids = append(ids, s.id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Connections returns the number of connected clients.
func (h *Host) Connections() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.connections
}

// unusedSessionIdle is how long a session without messages stays in memory in
// case its client reconnects. Every connection creates one, and unloading it
// loses nothing.
const unusedSessionIdle = 2 * time.Minute

// sweep unloads the sessions that have been idle for too long; they stay in the
// store.
func (h *Host) sweep(now time.Time) {
	idle := h.config().SessionIdleMs.Duration()
	h.mu.Lock()
	defer h.mu.Unlock()
	for id, s := range h.sessions {
		limit := idle
		if !s.isStored() {
			limit = min(idle, unusedSessionIdle)
		}
		if s.idleSince(now) > limit {
			delete(h.sessions, id)
		}
	}
}

// OpenSessions returns the number of sessions with a client or a reply in
// progress.
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

// Open returns a session: a new one for an empty id, otherwise the caller's
// session with that id. Sessions of other callers are not found.
func (h *Host) Open(ctx context.Context, caller tool.Caller, id string) (*Session, error) {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil, &tool.Error{Kind: tool.Unavailable, Msg: "the gateway is stopping; connect again in a moment"}
	}
	if id == "" {
		s := &Session{host: h, id: rand.Text(), owner: caller.ID, created: time.Now(), active: time.Now(), watchers: map[*Watcher]struct{}{}}
		s.meta.Profiles = caller.Profiles.Names()
		h.sessions[s.id] = s
		h.mu.Unlock()
		return s, nil
	}
	s := h.sessions[id]
	h.mu.Unlock()
	if s != nil {
		err := s.refresh(ctx)
		if !s.readableBy(&caller) {
			return nil, noSession()
		}
		return s, err
	}
	if len(id) > 128 {
		return nil, noSession()
	}
	rec, err := h.Store.Session(ctx, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && !recordReadable(&caller, &rec) {
		return nil, noSession()
	}
	if err != nil {
		return nil, unavailable(err)
	}
	// Concurrent opens share one load, because loading ends the reply of a dead
	// process, which must happen once.
	v, err, _ := h.loads.Do(id, func() (any, error) {
		if s := h.loaded(id); s != nil {
			return s, nil
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
		defer cancel()
		s := &Session{host: h, id: id, owner: rec.Owner, created: rec.Created, active: time.Now(), stored: true, watchers: map[*Watcher]struct{}{}}
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

// loadTimeout bounds the time to load a session.
const loadTimeout = 30 * time.Second

// loaded returns the session with an id, or nil if it is not loaded in this
// process.
func (h *Host) loaded(id string) *Session {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.sessions[id]
}

// unavailable converts an error of the store to the error that clients receive;
// it returns nil for nil.
func unavailable(err error) error {
	if err == nil {
		return nil
	}
	return &tool.Error{Kind: tool.Unavailable, Msg: "the conversation cannot be read or written now; try again in a moment", Err: err}
}

// model returns the model that a session has chosen, or the default.
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
	return set.Get("") // the chosen model no longer exists
}

// checkModel returns an error for a model that does not exist; "" is the
// default one.
func (h *Host) checkModel(id string) error {
	if id == "" {
		return nil
	}
	if set := h.Models(); set == nil || set.Get(id) == nil {
		return invalid(fmt.Sprintf("there is no model %q; GET /api/models lists them", tool.Shorten(id, 80)))
	}
	return nil
}

// unavailableServers returns the servers that the caller cannot use now.
func (h *Host) unavailableServers(caller *tool.Caller) []wire.ServerState {
	var out []wire.ServerState
	for _, s := range h.Tools.Servers(caller) {
		if !s.Available() {
			out = append(out, wire.ServerState{Server: s.Name, State: string(s.State), Reason: s.Reason})
		}
	}
	return out
}

func invalid(msg string) *tool.Error { return &tool.Error{Kind: tool.InvalidRequest, Msg: msg} }
