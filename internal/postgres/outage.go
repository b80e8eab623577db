package postgres

import (
	"cmp"
	"context"
	"sync"
	"time"

	"junctor/internal/store"
)

// outage remembers whether the database answers, so that not every call has to
// find out by waiting.
type outage struct {
	mu      sync.Mutex
	since   time.Time     // when the first query began that failed; zero: it answers
	noticed time.Time     // when the failure of that query was noticed
	err     error         // why it does not
	back    chan struct{} // closed when it is back
}

// begin records that a query started at then failed because the database is
// unavailable. It reports whether that was not known before.
func (a *outage) begin(err error, then time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
	if !a.since.IsZero() {
		return false
	}
	a.since, a.noticed, a.back = then, time.Now(), make(chan struct{})
	return true
}

// end notes that the database is back.
func (a *outage) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.since.IsZero() {
		close(a.back)
	}
	a.since, a.err = time.Time{}, nil
}

// reason returns why the database is unavailable; nil when it answers.
func (a *outage) reason() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since.IsZero() {
		return nil
	}
	if a.err == nil {
		return store.ErrUnavailable
	}
	return a.err
}

// bridge waits as wait does, and returns why the database is unavailable if it is
// not back.
func (a *outage) bridge(ctx context.Context, d time.Duration) error {
	if a.wait(ctx, d) {
		return nil
	}
	return cmp.Or(ctx.Err(), a.reason())
}

// confirm waits until the database is back, d at most after its absence was
// noticed, and returns why it is unavailable if it is not back. One slow query
// looks like an absence until the database answers another one.
func (a *outage) confirm(ctx context.Context, d time.Duration) error {
	a.mu.Lock()
	noticed, back := a.noticed, a.back
	away := !a.since.IsZero()
	a.mu.Unlock()
	if !away || backWithin(ctx, back, noticed, d) {
		return nil
	}
	return cmp.Or(ctx.Err(), a.reason())
}

// wait waits until the database is back, or has been away for d. It reports
// whether it is back.
func (a *outage) wait(ctx context.Context, d time.Duration) bool {
	a.mu.Lock()
	since, back := a.since, a.back
	a.mu.Unlock()
	return since.IsZero() || backWithin(ctx, back, since, d)
}

func backWithin(ctx context.Context, back <-chan struct{}, since time.Time, d time.Duration) bool {
	timer := time.NewTimer(d - time.Since(since))
	defer timer.Stop()
	select {
	case <-back:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// lose notes that a query that began then failed because the database is
// away, and lets a goroutine look for it until it is back.
func (s *Store) lose(err error, then time.Time) {
	if s.ctx.Err() == nil && s.away.begin(err, then) {
		s.log.Warn("the database is unavailable", "err", explain("query", err))
		s.probing.Go(s.probe)
	}
}

// probe looks for the database until it answers, then writes what was kept
// for it. The first look is at once: the query that failed may have been slow
// for a reason of its own.
func (s *Store) probe() {
	for s.ctx.Err() == nil {
		begun := time.Now()
		err := s.attempt(s.ctx, s.timeout, true, func(ctx context.Context) error {
			_, err := s.pool.Exec(ctx, "SELECT 1")
			return err
		})
		kept := s.backlog.size()
		if err == nil {
			err = s.drain(s.ctx, s.away.end)
		}
		if err == nil {
			s.log.Info("the database is available again", "recordsWritten", kept, "recordsLost", s.Lost())
			if kept > 0 {
				s.Announce(store.TopicCalls)
			}
			return
		}
		s.away.begin(err, begun)
		select {
		case <-s.ctx.Done():
		case <-time.After(probeEvery):
		}
	}
}
