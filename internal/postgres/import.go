package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"junctor/internal/store"
	"junctor/internal/store/sqlstore"
)

// Import implements store.Importer. Calls are written to the partitions of their
// days, so that retention deletes them like all others, oldest first.
func (s *Store) Import(ctx context.Context, b store.Batch) error {
	days := make([]time.Time, len(b.Calls))
	for i, c := range b.Calls {
		if days[i] = c.Time; c.Time.IsZero() {
			days[i] = time.Unix(0, 0)
		}
	}
	err := s.readSlow(ctx, "make room for calls", func(ctx context.Context) error { return s.makePartitionsOf(ctx, days) })
	if err != nil {
		return err
	}
	err = s.readSlow(ctx, "import records", func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			if len(b.Calls) > 0 {
				calls, seqs := make([]*store.Call, len(b.Calls)), make([]int64, len(b.Calls))
				for i := range b.Calls {
					calls[i], seqs[i] = &b.Calls[i], b.Calls[i].Seq
				}
				if _, err := tx.Exec(ctx, importCalls, append(columns(calls), seqs)...); err != nil {
					return err
				}
			}
			return constraintError(tx.SendBatch(ctx, batch(sqlstore.Import(b))).Close())
		})
	})
	if err != nil {
		return err
	}
	s.WakeAll()
	s.notifier.add(allTopics)
	return nil
}
