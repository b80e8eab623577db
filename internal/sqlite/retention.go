package sqlite

import (
	"context"
	"time"
)

const (
	sweepChunk = 500              // records deleted in one commit: calls must not wait for it
	leaseRest  = 24 * time.Hour   // how long a free lease and an unused budget are remembered
	mailRest   = 10 * time.Minute // and a letter that nobody takes
)

// tidy takes in what dead processes left, and forgets what is too old or too
// much, and expired values and leases. It logs its troubles: nobody waits for its answer.
func (s *Store) tidy(ctx context.Context) {
	for _, step := range []func(context.Context) error{s.inherit, s.settle, s.forgetOld, s.forgetMuch, s.forgetExpired, s.shrink} {
		if err := step(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "tidying the store", "err", s.explain("tidy the store", err))
			return
		}
	}
}

// forgetOld deletes the records of calls that are older than the retention.
// The newest record stays whatever its age: its number must not be given
// again.
func (s *Store) forgetOld(ctx context.Context) error {
	age := s.keep.Age()
	if age <= 0 {
		return nil
	}
	before := micros(s.now().Add(-age))
	for {
		n, err := s.forget(ctx, `DELETE FROM calls WHERE seq IN (SELECT seq FROM calls WHERE time < ?1 ORDER BY time LIMIT ?2)
AND seq < (SELECT max(seq) FROM calls)`, before, sweepChunk)
		if err != nil || n == 0 {
			return err
		}
	}
}

// forgetMuch deletes the oldest records while the call log is larger than the
// retention. Its size is estimated from a sample, because to measure it is to
// read it; the file as a whole is a bound that costs nothing to know.
func (s *Store) forgetMuch(ctx context.Context) error {
	limit := s.keep.Bytes()
	if limit <= 0 {
		return nil
	}
	var used int64
	if err := s.read.QueryRowContext(ctx, `SELECT (pages.page_count - free.freelist_count) * size.page_size
FROM pragma_page_count AS pages, pragma_freelist_count AS free, pragma_page_size AS size`).Scan(&used); err != nil || used <= limit {
		return err
	}
	var first, last int64
	if err := s.read.QueryRowContext(ctx, "SELECT coalesce(min(seq), 0), coalesce(max(seq), 0) FROM calls").Scan(&first, &last); err != nil {
		return err
	}
	each, err := s.recordSize(ctx, first, last)
	if err != nil || each == 0 {
		return err
	}
	size := float64(last-first+1) * each
	if size <= float64(limit) {
		return nil // the rest is chats and tools, which are not for us to delete
	}
	// A little more than needed, so as not to be back the next minute.
	upTo := min(last-1, first+int64((size-0.95*float64(limit))/each))
	for first <= upTo {
		first = min(first+sweepChunk, upTo+1)
		if _, err := s.forget(ctx, "DELETE FROM calls WHERE seq < ?", first); err != nil {
			return err
		}
	}
	return nil
}

// recordSize estimates the bytes that a record takes, with its share of the
// indexes, from samples at the beginning, the middle and the end.
func (s *Store) recordSize(ctx context.Context, first, last int64) (float64, error) {
	var sum, rows float64
	for _, from := range []int64{first, first + (last-first)/2, max(first, last-200)} {
		var bytes, n float64
		err := s.read.QueryRowContext(ctx, `SELECT coalesce(sum(2 * length(id) + 2 * length(server) + 2 * length(tool) + length(method) + length(face) + length(caller)
	+ 2 * length(session) + length(kind) + length(trace_id) + length(node) + length(stages) + octet_length(error)
	+ coalesce(octet_length(arguments), 0) + coalesce(octet_length(result), 0)), 0), count(*)
FROM (SELECT * FROM calls WHERE seq >= ? ORDER BY seq LIMIT 200)`, from).Scan(&bytes, &n)
		if err != nil {
			return 0, err
		}
		sum, rows = sum+bytes, rows+n
	}
	if rows == 0 {
		return 0, nil
	}
	const numbers, fill = 80, 1.2 // integers and headers of a row and its index entries; pages are not full
	return (sum/rows + numbers) * fill, nil
}

func (s *Store) forgetExpired(ctx context.Context) error {
	now := micros(s.now())
	if _, err := s.forget(ctx, "DELETE FROM vals WHERE expires <> 0 AND expires <= ?", now); err != nil {
		return err
	}
	for _, query := range []string{"DELETE FROM leases WHERE until < ?", "DELETE FROM budgets WHERE at < ?"} {
		if _, err := s.forget(ctx, query, now-leaseRest.Microseconds()); err != nil {
			return err
		}
	}
	_, err := s.forget(ctx, "DELETE FROM mail WHERE at < ?", now-mailRest.Microseconds())
	return err
}

// shrink gives a part of the file back when a quarter of it is free, a little
// at a time.
func (s *Store) shrink(ctx context.Context) error {
	var pages, free int64
	if err := s.read.QueryRowContext(ctx, "SELECT pages.page_count, free.freelist_count FROM pragma_page_count AS pages, pragma_freelist_count AS free").Scan(&pages, &free); err != nil {
		return err
	}
	for free > 256 && free > pages/4 && ctx.Err() == nil {
		if err := s.write.outside(func(w *writer) error {
			_, err := w.conn.ExecContext(context.Background(), "PRAGMA incremental_vacuum(256)")
			return err
		}); err != nil {
			return err
		}
		free, pages = free-256, pages-256
	}
	return nil
}

// forget runs one deletion and returns how many rows it took away.
func (s *Store) forget(ctx context.Context, query string, args ...any) (n int64, err error) {
	err = s.write.submit(ctx, single, func(w *writer) (err error) {
		n, err = w.affect(context.Background(), query, args...)
		return err
	})
	return n, err
}
