package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"junctor/internal/store"
)

// Import implements store.Importer. Calls get the partitions of their days, so
// that they are forgotten like all others, oldest first.
func (s *Store) Import(ctx context.Context, b store.Batch) error {
	const nothing = " ON CONFLICT DO NOTHING"
	days := make([]time.Time, len(b.Calls))
	for i, c := range b.Calls {
		if days[i] = c.Time; c.Time.IsZero() {
			days[i] = time.Unix(0, 0)
		}
	}
	err := s.readMuch(ctx, "make room for calls", func(ctx context.Context) error { return s.makeDays(ctx, days) })
	if err != nil {
		return err
	}
	err = s.readMuch(ctx, "take over records", func(ctx context.Context) error {
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
			batch := &pgx.Batch{}
			for _, c := range b.Catalogues {
				batch.Queue(insertCatalogue+nothing, catalogueArgs(c)...)
			}
			for _, f := range b.Fingerprints {
				batch.Queue("INSERT INTO fingerprints ("+fingerprintColumns+") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"+nothing,
					f.Server, clean(f.Tool), f.First, stamp(f.FirstSeen), f.Current, stamp(f.CurrentSeen), f.Approved, stamp(f.ApprovedAt), f.ApprovedBy, raw(f.Definition))
			}
			for _, k := range b.Keys {
				batch.Queue("INSERT INTO keys ("+keyColumns+") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)"+nothing, keyArgs(k)...)
			}
			for _, v := range b.Values {
				batch.Queue("INSERT INTO vals ("+valueColumns+") VALUES ($1, $2, $3, $4, $5, $6)"+nothing, v.Space, v.Name, blob(v.Data), v.Version, stamp(v.Updated), stamp(v.Expires))
			}
			for _, c := range b.Sessions {
				batch.Queue("INSERT INTO sessions ("+sessionColumns+") VALUES ($1, $2, $3, $4, $5, $6, $7, 1)"+nothing,
					c.ID, c.Owner, clean(c.Title), c.Model, stamp(c.Created), stamp(c.Updated), raw(c.Metadata))
			}
			if err := translated(tx.SendBatch(ctx, batch).Close()); err != nil {
				return err
			}
			if err := insertMessages(ctx, tx, "", b.Messages, nothing); err != nil {
				return err
			}
			if len(b.Events) == 0 {
				return nil
			}
			_, err := tx.Exec(ctx, insertEvents+nothing, eventColumns("", b.Events)...)
			return translated(err)
		})
	})
	if err != nil {
		return err
	}
	s.WakeAll()
	s.notifier.add(everything)
	return nil
}
