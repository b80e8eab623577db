package sqlite

import (
	"context"
	"time"
)

const (
	sweepChunk     = 32               // blocks deleted in one commit, so that other writers do not wait
	freeLeaseTTL   = 24 * time.Hour   // how long an expired lease is stored
	nodeMessageTTL = 10 * time.Minute // how long a message that is not acknowledged is stored
)

// maintain recovers journals of dead processes, joins small blocks, and deletes
// records over the retention limits and expired values and leases. It logs its
// errors.
func (s *Store) maintain(ctx context.Context) {
	for _, step := range []func(context.Context) error{s.recoverJournals, s.flushStep, s.convertCalls, s.joinBlocks, s.deleteByAge, s.deleteBySize, s.deleteExpired, s.shrink} {
		if err := step(ctx); err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "store maintenance failed", "err", s.explain("maintain the store", err))
			return
		}
	}
}

func (s *Store) flushStep(context.Context) error { return s.flushOwn() }

// deleteByAge deletes the blocks whose records are all older than the
// retention. The newest block is never deleted, because the next sequence number
// is derived from it.
func (s *Store) deleteByAge(ctx context.Context) error {
	age := s.retention.Age()
	if age <= 0 {
		return nil
	}
	before := micros(s.now().Add(-age))
	for {
		n, err := s.deleteRows(ctx, `DELETE FROM call_blocks WHERE seq IN (SELECT seq FROM call_blocks WHERE until < ?1 ORDER BY until LIMIT ?2)
AND seq < (SELECT max(seq) FROM call_blocks)`, before, sweepChunk)
		if err != nil || n == 0 {
			return err
		}
	}
}

// deleteBySize deletes the oldest blocks while the call log is larger than the
// retention.
func (s *Store) deleteBySize(ctx context.Context) error {
	limit := s.retention.Bytes()
	if limit <= 0 {
		return nil
	}
	for {
		var used int64
		if err := s.read.QueryRowContext(ctx, "SELECT coalesce(sum(bytes), 0) FROM call_blocks INDEXED BY call_blocks_time").Scan(&used); err != nil || used <= limit {
			return err
		}
		// 5 % more than needed, so that the next sweep has nothing to delete.
		n, err := s.deleteRows(ctx, `DELETE FROM call_blocks WHERE seq IN (
	SELECT seq FROM (SELECT seq, sum(bytes) OVER (ORDER BY seq) - bytes AS before FROM (SELECT seq, bytes FROM call_blocks ORDER BY seq LIMIT ?2))
	WHERE before < ?1)
AND seq < (SELECT max(seq) FROM call_blocks)`, used-limit+limit/20, sweepChunk)
		if err != nil || n == 0 {
			return err
		}
	}
}

// deleteExpired deletes expired values, leases and messages between nodes.
func (s *Store) deleteExpired(ctx context.Context) error {
	now := micros(s.now())
	if _, err := s.deleteRows(ctx, "DELETE FROM vals WHERE expires <> 0 AND expires <= ?", now); err != nil {
		return err
	}
	if _, err := s.deleteRows(ctx, "DELETE FROM leases WHERE until < ?", now-freeLeaseTTL.Microseconds()); err != nil {
		return err
	}
	_, err := s.deleteRows(ctx, "DELETE FROM mail WHERE at < ?", now-nodeMessageTTL.Microseconds())
	return err
}

// shrink returns free pages to the file system, a few at a time, while more than
// a quarter of the file is free.
func (s *Store) shrink(ctx context.Context) error {
	var pages, free int64
	if err := s.read.QueryRowContext(ctx, "SELECT pages.page_count, free.freelist_count FROM pragma_page_count AS pages, pragma_freelist_count AS free").Scan(&pages, &free); err != nil {
		return err
	}
	for free > 256 && free > pages/4 && ctx.Err() == nil {
		if err := s.write.betweenTransactions(func(w *writer) error {
			_, err := w.conn.ExecContext(context.Background(), "PRAGMA incremental_vacuum(256)")
			return err
		}); err != nil {
			return err
		}
		free, pages = free-256, pages-256
	}
	return nil
}

// deleteRows executes a DELETE and returns the number of deleted rows.
func (s *Store) deleteRows(ctx context.Context, query string, args ...any) (n int64, err error) {
	err = s.write.submit(ctx, oneStatement, func(w *writer) (err error) {
		n, err = w.affect(context.Background(), query, args...)
		return err
	})
	return n, err
}
