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
	mu       sync.Mutex
	since    time.Time     // when the first query that failed began; zero while the database answers
	noticed  time.Time     // when the failure of that query was noticed
	err      error         // why the database does not answer
	restored chan struct{} // closed when the database answers again
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
	a.since, a.noticed, a.restored = then, time.Now(), make(chan struct{})
	return true
}

// end records that the database answers again.
func (a *outage) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.since.IsZero() {
		close(a.restored)
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

// await waits like wait. It returns why the database is unavailable if the
// outage has not ended.
func (a *outage) await(ctx context.Context, d time.Duration) error {
	if a.wait(ctx, d) {
		return nil
	}
	return cmp.Or(ctx.Err(), a.reason())
}

// confirm waits until the outage has ended, until d after it was noticed at
// most. It returns why the database is unavailable if the outage continues. One
// slow query looks like an outage until the database answers another one.
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
// it has ended.
func (a *outage) wait(ctx context.Context, d time.Duration) bool {
	a.mu.Lock()
	since, restored := a.since, a.restored
	a.mu.Unlock()
	return since.IsZero() || restoredWithin(ctx, restored, since, d)
}

// restoredWithin waits for restored, until d after since at most.
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

// startOutage records that a query that began then failed because the database
// is unavailable. At the beginning of an outage it starts the goroutine that probes
// the database until it answers.
func (s *Store) startOutage(err error, then time.Time) {
	if s.ctx.Err() == nil && s.outage.begin(err, then) {
		s.log.Warn("the database is unavailable", "err", explain("query", err))
		s.probing.Go(s.probe)
	}
}

// probe queries the database until it answers, and then writes the backlog. The
// first query is sent at once, because the query that failed may have been slow
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
