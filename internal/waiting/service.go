package waiting

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// Store is the part of the store that the package uses.
type Store interface {
	store.Values
	store.Leases
	store.Changes
}

const (
	space        = "waiting-calls"
	spaceResults = "waiting-results"
	topicAnswers = "waiting-answers" // announced after an answer or a cancellation

	idPrefix = "call_"

	leaseDuration = 20 * time.Second
	renewInterval = 5 * time.Second
	storeTimeout  = 10 * time.Second
)

// The errors of answers and cancellations.
var (
	// ErrNotFound means that the record does not exist, or no longer exists.
	ErrNotFound = errors.New("no such waiting call")
	// ErrAnswered means that the input was answered, withdrawn or has expired.
	ErrAnswered = errors.New("the call is no longer waiting for this")
	// ErrExpired is returned by Ask if no answer arrived in time.
	ErrExpired = errors.New("no answer arrived in time")
	// ErrNoApprover means that a call cannot wait for approval, because no one
	// is available to approve it.
	ErrNoApprover = errors.New("nobody can answer")
	// ErrCancelled is the cancellation cause of the context of a call whose
	// record was cancelled.
	ErrCancelled = errors.New("the call was cancelled")
)

// IsID reports whether an id is that of a waiting call and not of an entry of
// the call log.
func IsID(id string) bool { return strings.HasPrefix(id, idPrefix) }

// Service manages the records. It is safe for concurrent use.
type Service struct {
	store Store
	log   *slog.Logger
	owner string

	mu       sync.Mutex
	own      map[string]*Call
	open     map[string]int // by caller
	kept     map[string][]storedResult
	maxEnded int // maxEnded; lower in tests
	leased   time.Time

	resume  Resume          // nil means that no call is taken over
	runCtx  context.Context // of Run; nil before
	resumed sync.WaitGroup
	ended   bool // no further calls are taken over
}

// storedResult describes an ended call that is stored for a caller, with the
// size of its result.
type storedResult struct {
	id      string
	bytes   int
	expires time.Time
}

// NewService returns a Service; it starts nothing.
func NewService(s Store, log *slog.Logger) *Service {
	return &Service{
		store: s, log: log.With(telemetry.KeyComponent, "waiting"), owner: rand.Text(),
		own: map[string]*Call{}, open: map[string]int{}, kept: map[string][]storedResult{}, maxEnded: maxEnded,
	}
}

// Run delivers the answers that other nodes store, renews the lease of this
// process, takes over the tasks of dead processes, and stores outcomes that the
// store did not accept before, until ctx is done.
func (s *Service) Run(ctx context.Context) error {
	answers := s.store.Watch(ctx, topicAnswers)
	tick, find := time.NewTicker(renewInterval), time.NewTicker(leaseDuration)
	defer tick.Stop()
	defer find.Stop()
	defer s.allowTakeovers(ctx)()
	for {
		s.poll(ctx) // also periodically, in case an announcement was missed
		select {
		case <-ctx.Done():
			return nil
		case <-answers:
		case <-find.C:
			s.takeOverTasks(ctx)
		case <-tick.C:
			s.mu.Lock()
			idle := len(s.own) == 0
			s.mu.Unlock()
			if idle {
				continue
			}
			if err := s.renew(ctx); err == nil {
				s.writeEnds(ctx)
			} else if ctx.Err() == nil {
				s.log.DebugContext(ctx, "cannot renew the lease of waiting calls", "err", err)
			}
		}
	}
}

// poll delivers the answers to the calls of this process.
func (s *Service) poll(ctx context.Context) {
	s.mu.Lock()
	calls := slices.Collect(maps.Values(s.own))
	s.mu.Unlock()
	for _, c := range calls {
		c.poll(ctx)
	}
}

func leaseOf(owner string) string { return "calls/" + owner }

// renew renews the lease that shows that this process is alive.
func (s *Service) renew(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if err := store.Renew(ctx, s.store, leaseOf(s.owner), s.owner, leaseDuration); err != nil {
		return err
	}
	s.mu.Lock()
	s.leased = time.Now()
	s.mu.Unlock()
	return nil
}

// Start creates the record of a call that this process executes.
func (s *Service) Start(ctx context.Context, o StartOptions) (*Call, error) {
	s.mu.Lock()
	fresh := time.Since(s.leased) < renewInterval
	full := s.open[o.Caller.ID] >= maxOpen
	if !full {
		s.open[o.Caller.ID]++
	}
	s.mu.Unlock()
	if full {
		return nil, &tool.Error{Kind: tool.RateLimited, RetryAfter: time.Minute, Msg: fmt.Sprintf("%d calls of this caller are already waiting; answer or cancel some of them first", maxOpen)}
	}
	now := time.Now().UTC()
	r := Record{
		ID: idPrefix + rand.Text(), Status: Working, Tool: o.Tool, Arguments: truncateArguments(o.Arguments), Caller: o.Caller.ID, CallerName: o.Caller.Name, Profiles: o.Caller.Profiles.Names(),
		Face: o.Face, Session: o.Session, Created: now, Updated: now, Expires: now.Add(MaxTTL), TTL: o.TTL, Task: o.Task, Owner: s.owner,
	}
	if r.TTL <= 0 {
		r.TTL = defaultTTL
	}
	r.TTL = min(r.TTL, MaxTTL)
	if len(r.Task.ID)+len(r.Task.Server) > maxTask {
		r.Task = tool.ServerTask{}
	}
	c := s.call(&r)
	err := s.start(ctx, r, c, fresh)
	if err != nil {
		s.mu.Lock()
		s.closeOne(r.Caller)
		s.mu.Unlock()
		return nil, fmt.Errorf("store the record of a waiting call: %w", err)
	}
	return c, nil
}

func (s *Service) start(ctx context.Context, r Record, c *Call, fresh bool) error {
	if !fresh {
		if err := s.renew(ctx); err != nil {
			return err
		}
	}
	if _, err := s.put(ctx, r, 0); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.own[r.ID] = c
	return nil
}

// call returns the Call for a record that this process owns.
func (s *Service) call(r *Record) *Call {
	return &Call{s: s, id: r.ID, caller: r.Caller, ttl: r.TTL, task: r.Task, answers: map[string]chan Input{}, cancelled: make(chan struct{})}
}

// closeOne decrements the number of the caller's open calls. s.mu is held.
func (s *Service) closeOne(caller string) {
	if s.open[caller]--; s.open[caller] <= 0 {
		delete(s.open, caller)
	}
}

// stored is the stored form of a record, including the fields that readers do
// not get.
type stored struct {
	Record
	Profiles []string        `json:"profiles,omitempty"`
	Owner    string          `json:"owner,omitempty"`
	Task     tool.ServerTask `json:"task,omitzero"`
	TTL      time.Duration   `json:"ttl"`
}

func (s *Service) put(ctx context.Context, r Record, ifVersion int64) (Record, error) {
	r.Result = nil
	data, err := json.Marshal(stored{Record: r, Profiles: r.Profiles, Owner: r.Owner, Task: r.Task, TTL: r.TTL})
	if err != nil {
		return r, err
	}
	v, err := s.store.PutValue(ctx, store.Value{Space: space, Name: r.ID, Data: data, Expires: r.Expires}, ifVersion)
	r.Version = v.Version
	return r, err
}

func decode(v store.Value) (Record, error) {
	var in stored
	if err := json.Unmarshal(v.Data, &in); err != nil {
		return Record{}, fmt.Errorf("read the record of a waiting call: %w", err)
	}
	r := in.Record
	r.Profiles, r.Owner, r.Task, r.TTL, r.Version = in.Profiles, in.Owner, in.Task, in.TTL, v.Version
	return r, nil
}

func (s *Service) read(ctx context.Context, id string) (Record, error) {
	v, err := s.store.Value(ctx, space, id)
	if errors.Is(err, store.ErrNotFound) {
		return Record{}, ErrNotFound
	}
	if err != nil {
		return Record{}, err
	}
	return decode(v)
}

// errUnchanged ends an update that has nothing to change.
var errUnchanged = errors.New("unchanged")

// update changes a record, and retries if another process changed it
// concurrently.
func (s *Service) update(ctx context.Context, id string, change func(*Record) error) (Record, error) {
	for range 20 {
		r, err := s.read(ctx, id)
		if err != nil {
			return r, err
		}
		if err := change(&r); errors.Is(err, errUnchanged) {
			return r, nil
		} else if err != nil {
			return r, err
		}
		r.Updated = time.Now().UTC()
		if !r.Status.Final() {
			r.Status = Working
			if len(r.Inputs) > 0 {
				r.Status = InputRequired
			}
		}
		r, err = s.put(ctx, r, r.Version)
		if !errors.Is(err, store.ErrConflict) {
			return r, err
		}
	}
	return Record{}, store.ErrConflict
}

// truncateArguments returns arguments as they are shown: long ones as a shortened
// text.
func truncateArguments(arguments json.RawMessage) json.RawMessage {
	if len(arguments) <= maxArguments {
		return arguments
	}
	text, err := json.Marshal(tool.Shorten(string(arguments), maxArguments))
	if err != nil {
		return nil
	}
	return text
}
