package postgres

import (
	"cmp"
	"context"
	"sync"
	"time"

	"junctor/internal/store"
)

// outage is the state of the database's availability, so that not every call has
// to wait for a timeout.
type outage struct {
	mu       sync.Mutex
	since    time.Time     // start of the first query that failed; zero while the database is available
	noticed  time.Time     // when that query failed
	err      error         // why the database is unavailable
	restored chan struct{} // closed when the database is available again
}

// begin records that a query started at then failed because the database is
// unavailable. It reports whether this starts a new outage.
func (a *outage) begin(err error, then time.Time) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
	if !a.since.IsZero() {
		return false
	}
	a.since, a.noticed, a.restored = then, time.Now(), make(chan struct{})
	return true
}

// end records that the database is available again.
func (a *outage) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.since.IsZero() {
		close(a.restored)
	}
	a.since, a.err = time.Time{}, nil
}

// reason returns why the database is unavailable, or nil if it is available.
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

// await is like wait, but returns why the database is unavailable if the outage
// has not ended.
func (a *outage) await(ctx context.Context, d time.Duration) error {
	if a.wait(ctx, d) {
		return nil
	}
	return cmp.Or(ctx.Err(), a.reason())
}

// confirm waits until the outage ends, but at most until d after it was noticed.
// If the outage continues, it returns why the database is unavailable. A single
// slow query looks like an outage until a probe succeeds.
func (a *outage) confirm(ctx context.Context, d time.Duration) error {
	a.mu.Lock()
	noticed, restored := a.noticed, a.restored
	out := !a.since.IsZero()
	a.mu.Unlock()
	if !out || restoredWithin(ctx, restored, noticed, d) {
		return nil
	}
	return cmp.Or(ctx.Err(), a.reason())
}

// wait waits until the outage has ended or has lasted for d. It reports whether
// the outage has ended.
func (a *outage) wait(ctx context.Context, d time.Duration) bool {
	a.mu.Lock()
	since, restored := a.since, a.restored
	a.mu.Unlock()
	return since.IsZero() || restoredWithin(ctx, restored, since, d)
}

// restoredWithin waits for restored, at most until d after since, and reports
// whether it was closed.
func restoredWithin(ctx context.Context, restored <-chan struct{}, since time.Time, d time.Duration) bool {
	timer := time.NewTimer(d - time.Since(since))
	defer timer.Stop()
	select {
	case <-restored:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// startOutage records that a query started at then failed because the database
// is unavailable. If this starts a new outage, it also starts the goroutine
// that probes the database.
func (s *Store) startOutage(err error, then time.Time) {
	if s.ctx.Err() == nil && s.outage.begin(err, then) {
		s.log.Warn("the database is unavailable", "err", explain("query", err))
		s.probing.Go(s.probe)
	}
}

// probe queries the database until it responds, and then writes the backlog. The
// first query is sent immediately, because the query that failed may have been
// slow for another reason.
func (s *Store) probe() {
	for s.ctx.Err() == nil {
		begun := time.Now()
		err := s.attempt(s.ctx, s.timeout, true, func(ctx context.Context) error {
			_, err := s.pool.Exec(ctx, "SELECT 1")
			return err
		})
		kept := s.backlog.size()
		if err == nil {
			err = s.drain(s.ctx, s.outage.end)
		}
		if err == nil {
			s.log.Info("the database is available again", "recordsWritten", kept, "recordsLost", s.Lost())
			if kept > 0 {
				s.Announce(store.TopicCalls)
			}
			return
		}
		s.outage.begin(err, begun)
		select {
		case <-s.ctx.Done():
		case <-time.After(probeInterval):
		}
	}
}
