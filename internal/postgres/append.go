package postgres

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"junctor/internal/store"
)

const (
	maxBatch      = 256
	maxWaiting    = 10_000 // calls that may wait for the database
	probeInterval = 500 * time.Millisecond
	maxBacklog    = 10_000 // records kept in memory when calls are served without the database
)

// pendingRecord is a record to write and the outcome of writing it.
type pendingRecord struct {
	call store.Call
	err  error
}

// Append implements store.CallLog.
//
// During an outage, with store.FailClosed, it waits until the outage ends, or
// fails with store.ErrUnavailable when it has lasted for store.timeoutMs. With
// store.FailOpen it keeps the record in memory to be written later. Records over
// maxBacklog are lost and counted.
func (s *Store) Append(ctx context.Context, c store.Call) error {
	if s.calls.Waiting() >= maxWaiting {
		return fmt.Errorf("record the call: %d others are waiting for the database: %w", maxWaiting, store.ErrUnavailable)
	}
	e := pendingRecord{call: c}
	if err := s.calls.Do(ctx, &e); err != nil {
		return explain("record the call", err)
	}
	if e.err != nil {
		return explain("record the call", e.err)
	}
	s.Announce(store.TopicCalls)
	return nil
}

// Available implements store.CallLog. It sends no query: a goroutine probes the
// database during an outage, and Run checks it periodically. At the beginning
// of an outage Available waits for the first probes, so that one slow query
// does not cause calls to be refused.
func (s *Store) Available(ctx context.Context) error {
	if s.serveOn { // calls are served anyway: do not wait
		return explain("record the call", s.outage.reason())
	}
	return explain("record the call", s.outage.confirm(ctx, s.timeout))
}

// Lost returns how many records were lost because the database was unavailable.
func (s *Store) Lost() int64 { return s.backlog.lost.Load() }

// commit writes a batch and sets the outcome of each record.
func (s *Store) commit(batch []*pendingRecord) {
	var err error
	maybeWritten := false // an attempt that failed may have written the batch
	for {
		if err = s.outage.reason(); err == nil {
			begun := time.Now()
			if err = s.insert(s.ctx, batch, maybeWritten); err == nil || !isUnavailable(err) {
				break
			}
			maybeWritten = true
			s.startOutage(err, begun)
		}
		if s.serveOn && s.postpone(batch) {
			return
		}
		if !s.serveOn && !s.outage.wait(s.ctx, s.timeout) {
			break
		}
	}
	for _, e := range batch {
		if e.err = err; err != nil && !isUnavailable(err) && len(batch) > 1 {
			e.err = s.insert(s.ctx, []*pendingRecord{e}, maybeWritten) // one bad record must not prevent the others from being written
		}
	}
}

// postpone adds the records of a batch to the backlog. If the outage has ended,
// it does nothing and returns false.
func (s *Store) postpone(batch []*pendingRecord) bool {
	s.backlog.mu.Lock()
	defer s.backlog.mu.Unlock()
	if s.outage.reason() == nil {
		return false
	}
	for _, e := range batch {
		if s.backlog.keep(e.call) { // once for each outage
			s.log.Error("the database has been unavailable for too long: call records are lost", "kept", maxBacklog)
		}
	}
	return true
}

// isUnavailable reports whether an error means that the database is unavailable.
func isUnavailable(err error) bool {
	return isRetryable(err) || isConnectionLost(err) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrUnavailable) || sqlstate(err) == "53300"
}

func (s *Store) insert(ctx context.Context, batch []*pendingRecord, maybeWritten bool) error {
	calls := make([]*store.Call, len(batch))
	for i, e := range batch {
		calls[i] = &e.call
	}
	return s.insertCalls(ctx, calls, maybeWritten)
}

// insertCalls writes records, all or none. With maybeWritten set, and after the
// connection broke during a commit, an earlier attempt may have written some of
// them: it then writes only the missing ones.
func (s *Store) insertCalls(ctx context.Context, calls []*store.Call, maybeWritten bool) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	args := columns(calls)
	for attempt := 1; ; attempt++ {
		var err error
		if maybeWritten {
			err = s.insertMissing(ctx, args)
		} else {
			_, err = s.pool.Exec(ctx, insertCalls, args...)
		}
		if err == nil || attempt == maxConns+2 || ctx.Err() != nil || !isRetryable(err) && !isConnectionLost(err) || isConnectError(err) {
			return err
		}
		maybeWritten = maybeWritten || isConnectionLost(err)
	}
}

// insertMissing writes the records that are not in the log. It locks the counter
// first, to wait for an earlier attempt that the database is still committing,
// which holds that lock, and to see its records. It does not detect an attempt
// that the network delivers later.
func (s *Store) insertMissing(ctx context.Context, args []any) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT n FROM call_counter FOR UPDATE"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, insertMissing, args...)
		return err
	})
}

// insertMissing is insertCalls without the records that are already in the log.
// As in callFilter, it does not read partitions older than the calls.
var insertMissing = `WITH old AS MATERIALIZED (SELECT id, time, node, duration FROM calls WHERE id = ANY ($1::text[])
	AND logged >= (SELECT min(coalesce(x, '-infinity')) - interval '1 day' FROM unnest($2::timestamptz[]) AS x)
), missing AS (
	SELECT * FROM unnest(` + fieldList("$%[1]d::%[3]s[]") + `) WITH ORDINALITY AS c (` + fieldList("%[2]s") + `, ord)
	WHERE NOT EXISTS (SELECT FROM old
		WHERE old.id = c.id AND old.time IS NOT DISTINCT FROM c.time AND old.node = c.node AND old.duration = c.duration)
), counter AS (UPDATE call_counter SET n = n + (SELECT count(*) FROM missing) RETURNING n - (SELECT count(*) FROM missing) AS base)
INSERT INTO calls (logged, ` + callColumns + `)
SELECT clock_timestamp(), counter.base + row_number() OVER (ORDER BY c.ord), ` + fieldList("c.%[2]s") + `
FROM counter, missing AS c`

// backlog is the records of calls that were served during an outage.
type backlog struct {
	mu    sync.Mutex
	calls []*store.Call
	full  bool // a record was lost
	lost  atomic.Int64
}

// keep adds a record, or counts it as lost if the backlog is full. It reports
// whether it is the first one lost. The caller holds mu.
func (b *backlog) keep(c store.Call) (full bool) {
	if len(b.calls) < maxBacklog {
		b.calls = append(b.calls, &c)
		return false
	}
	b.lost.Add(1)
	full = !b.full
	b.full = true
	return full
}

func (b *backlog) size() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.calls)
}

// drain writes the backlog in order, except records that an earlier attempt has
// written. Only one goroutine may call drain at a time; records may be added
// meanwhile. done, which may be nil, is called when the backlog is empty, before
// another record can be added.
func (s *Store) drain(ctx context.Context, done func()) error {
	b := &s.backlog
	for {
		b.mu.Lock()
		n := min(len(b.calls), maxBatch)
		if n == 0 {
			b.calls, b.full = nil, false
			if done != nil {
				done()
			}
			b.mu.Unlock()
			return nil
		}
		batch := b.calls[:n:n]
		b.mu.Unlock()
		if err := s.insertCalls(ctx, batch, true); err != nil {
			return err
		}
		b.mu.Lock()
		b.calls = b.calls[n:]
		b.mu.Unlock()
	}
}

// drainLast tries once more to write the backlog when the store is closed.
func (s *Store) drainLast() error {
	if s.backlog.size() == 0 {
		return nil
	}
	if err := s.drain(context.Background(), nil); err != nil {
		return explain(fmt.Sprintf("write the records of %d calls that were answered without the database", s.backlog.size()), err)
	}
	return nil
}
