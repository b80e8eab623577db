package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"junctor/internal/store"
)

const (
	maxBatch   = 256
	maxWaiting = 10_000          // calls that may wait for the database
	grace      = 5 * time.Second // for how long they wait for it to come back
	probeEvery = 500 * time.Millisecond
	maxBacklog = 10_000 // records kept in memory when calls go on without the database
)

// entry is one record on its way to the log, and what became of it.
type entry struct {
	call store.Call
	err  error
}

// Append implements store.CallLog.
//
// While the database is away, closed, it waits a few seconds for it to come
// back and then fails with store.ErrUnavailable, at once when the absence is
// known. Open, it keeps the record in memory to be written later, up to a
// bound beyond which records are lost and counted.
func (s *Store) Append(ctx context.Context, c store.Call) error {
	if s.calls.Waiting() >= maxWaiting {
		return fmt.Errorf("record the call: %d others wait for the database: %w", maxWaiting, store.ErrUnavailable)
	}
	e := entry{call: c}
	if err := s.calls.Do(ctx, &e); err != nil {
		return explain("record the call", err)
	}
	if e.err != nil {
		return explain("record the call", e.err)
	}
	s.Announce(store.TopicCalls)
	return nil
}

// Available reports whether records can be written, as far as that is known.
// While the database is away it looks now and then whether it is back.
func (s *Store) Available(ctx context.Context) error {
	if s.open || !s.away.known() {
		return nil
	}
	now := time.Now()
	if !s.away.mayTry(now) {
		return explain("record the call", s.away.reason())
	}
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	_, err := s.pool.Exec(ctx, "SELECT 1")
	if err != nil && !down(err) { // the caller left
		return explain("look for the database", err)
	}
	s.away.note(err, time.Now())
	return explain("record the call", err)
}

// Lost returns how many records were given up while the database was away.
func (s *Store) Lost() int64 { return s.backlog.lost.Load() }

// commit writes a batch, together with what waits from before, and tells each
// of its fate.
func (s *Store) commit(batch []*entry) {
	ctx := context.Background()
	deadline := time.Now().Add(grace)
	var err error
	for {
		if !s.away.mayTry(time.Now()) {
			err = s.away.reason()
		} else if err = s.drainLocked(ctx); err == nil {
			err = s.insert(ctx, batch)
		}
		s.away.note(err, time.Now())
		if err == nil || !down(err) || s.open || time.Now().After(deadline) || s.away.longer(grace, time.Now()) {
			break
		}
		time.Sleep(probeEvery / 10)
	}
	if err != nil && down(err) && s.open {
		for _, e := range batch {
			if s.backlog.keep(e.call) { // once for each absence
				s.log.Error("the database is away for too long: records of calls are lost", "kept", maxBacklog)
			}
		}
		return
	}
	for _, e := range batch {
		if e.err = err; err != nil && !down(err) && len(batch) > 1 {
			e.err = s.insert(ctx, []*entry{e}) // one bad record must not cost the others theirs
		}
	}
}

// down reports whether an error means that the database is away.
func down(err error) bool {
	return undone(err) || lost(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrUnavailable) || sqlstate(err) == "53300"
}

func (s *Store) insert(ctx context.Context, batch []*entry) error {
	calls := make([]*store.Call, len(batch))
	for i, e := range batch {
		calls[i] = &e.call
	}
	return s.insertCalls(ctx, calls)
}

// insertCalls writes records, all or none, and never twice: when a connection
// broke in mid-commit it looks before it tries again.
func (s *Store) insertCalls(ctx context.Context, calls []*store.Call) error {
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	args := columns(calls)
	for attempt := 1; ; attempt++ {
		_, err := s.pool.Exec(ctx, insertCalls, args...)
		if err == nil || attempt == maxConns+2 || ctx.Err() != nil || !undone(err) && !lost(err) || refused(err) {
			return err
		}
		if lost(err) {
			done, lookErr := s.written(ctx, calls[0])
			if lookErr != nil {
				return err
			}
			if done {
				return nil
			}
		}
	}
}

// written reports whether a record is in the log. One stands for its batch.
func (s *Store) written(ctx context.Context, c *store.Call) (there bool, err error) {
	for range maxConns + 2 { // each dead connection is met once
		err = s.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM calls WHERE id = $1 AND time IS NOT DISTINCT FROM $2 AND node = $3 AND duration = $4)",
			clean(c.ID), stamp(c.Time), clean(c.Node), c.Duration.Microseconds()).Scan(&there)
		if err == nil || !undone(err) && !lost(err) || refused(err) {
			break
		}
	}
	return there, err
}

// away remembers whether the database answers, so that not every call has to
// find out by waiting.
type away struct {
	mu    sync.Mutex
	since time.Time // zero: it answers
	tried time.Time
	err   error
}

// mayTry reports whether the database should be tried now: always when it
// answers, now and then when it is away.
func (a *away) mayTry(now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.since.IsZero() && now.Sub(a.tried) < probeEvery {
		return false
	}
	a.tried = now
	return true
}

// known reports whether the database is known to be away.
func (a *away) known() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.since.IsZero()
}

func (a *away) note(err error, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case err == nil || !down(err):
		a.since, a.err = time.Time{}, nil
	case a.since.IsZero():
		a.since, a.err = now, err
	default:
		a.err = err
	}
}

// longer reports whether the database has been away for longer than d.
func (a *away) longer(d time.Duration, now time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return !a.since.IsZero() && now.Sub(a.since) > d
}

func (a *away) reason() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		return store.ErrUnavailable
	}
	return a.err
}

// backlog holds the records of calls that were answered while the database
// was away.
type backlog struct {
	mu    sync.Mutex
	calls []*store.Call
	full  bool // there was no room for more
	lost  atomic.Int64
}

// keep holds on to a record, and reports whether it is the first for which
// there is no room.
func (b *backlog) keep(c store.Call) (full bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.calls) < maxBacklog {
		b.calls = append(b.calls, &c)
		return false
	}
	b.lost.Add(1)
	full = !b.full
	b.full = true
	return full
}

// drain writes the backlog when the database is back, even if no new call
// comes.
func (s *Store) drain(ctx context.Context) {
	if s.backlog.size() == 0 || !s.away.mayTry(time.Now()) {
		return
	}
	err := s.drainLocked(ctx)
	s.away.note(err, time.Now())
	if err == nil {
		s.log.InfoContext(ctx, "the records of the time without the database are written", "lost", s.Lost())
		s.Announce(store.TopicCalls)
	}
}

func (b *backlog) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.calls)
}

// drainLocked writes the backlog in order. The lock keeps two from writing
// the same records.
func (s *Store) drainLocked(ctx context.Context) error {
	b := &s.backlog
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.calls) > 0 {
		n := min(len(b.calls), maxBatch)
		if err := s.insertCalls(ctx, b.calls[:n]); err != nil {
			return err
		}
		b.calls = b.calls[n:]
	}
	b.calls, b.full = nil, false
	return nil
}

// drainLast is the last try, at the end of the program.
func (s *Store) drainLast() error {
	if s.backlog.size() == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	if err := s.drainLocked(ctx); err != nil {
		return explain(fmt.Sprintf("write the records of %d calls that were answered without the database", s.backlog.size()), err)
	}
	return nil
}
