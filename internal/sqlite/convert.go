package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"junctor/internal/store"
)

const oldColumns = `seq, id, time, duration, status, server, tool, method, face, caller, session, kind, trace_id, node, result_bytes, stages, error, arguments, result`

// convertCalls moves records that an older Junctor stored as rows into blocks,
// in several commits. If it is interrupted, the next call continues.
func (s *Store) convertCalls(ctx context.Context) error {
	var first, last int64
	switch err := s.read.QueryRowContext(ctx, "SELECT min(seq), max(seq) FROM calls HAVING count(*) > 0").Scan(&first, &last); {
	case errors.Is(err, sql.ErrNoRows):
		return nil
	case err != nil:
		return err
	}
	s.log.InfoContext(ctx, "converting the call log to the new format", "records", last-first+1)
	for ctx.Err() == nil {
		var n int
		err := s.write.submit(ctx, manyStatements, func(w *writer) (err error) {
			n, err = w.convert()
			return err
		})
		if err != nil || n == 0 {
			return err
		}
	}
	return ctx.Err()
}

// convert moves the oldest rows into blocks and returns how many there were.
func (w *writer) convert() (int, error) {
	ctx := context.Background()
	calls, err := w.oldCalls(ctx)
	if err != nil || len(calls) == 0 {
		return 0, err
	}
	last := calls[len(calls)-1].Seq
	var next int64
	if err := w.one(ctx, nextSeq, nil, &next); err != nil {
		return 0, err
	}
	for i := range calls { // a process of the older version assigns its own numbers
		if calls[i].Seq < next {
			calls[i].Seq = next
		}
		next = calls[i].Seq + 1
	}
	if err := w.insertCalls(calls); err != nil {
		return 0, err
	}
	return len(calls), w.exec(ctx, "DELETE FROM calls WHERE seq <= ?", last)
}

func (w *writer) oldCalls(ctx context.Context) (out []store.Call, err error) {
	st, err := w.stmt(ctx, "SELECT "+oldColumns+" FROM calls ORDER BY seq LIMIT 512")
	if err != nil {
		return nil, err
	}
	rows, err := st.QueryContext(ctx)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var c store.Call
		var at, took int64
		var stages string
		err := rows.Scan(&c.Seq, &c.ID, &at, &took, &c.Status, &c.Server, &c.Tool, &c.Method, &c.Face, &c.Caller, &c.Session,
			&c.Kind, &c.TraceID, &c.Node, &c.ResultBytes, &stages, &c.Error, (*[]byte)(&c.Arguments), (*[]byte)(&c.Result))
		if err != nil {
			return nil, err
		}
		c.Time, c.Duration = moment(at), time.Duration(took)*time.Microsecond
		c.Stages, _ = store.ParseStages(stages) // invalid stages are dropped
		out = append(out, c)
	}
	return out, rows.Err()
}

// insertCalls writes records with their own sequence numbers, in ascending
// order. A gap in the numbers begins a new block.
func (w *writer) insertCalls(calls []store.Call) error {
	var out blockWriter
	for i := range calls {
		r, err := newRecord(&calls[i])
		if err != nil {
			return err
		}
		out.add(&r)
		if i+1 < len(calls) && calls[i+1].Seq == calls[i].Seq+1 && !out.full(micros(calls[i+1].Time)) {
			continue
		}
		first := calls[i].Seq - int64(out.n) + 1
		b := out.take()
		if err := w.insertBlock(first, &b); err != nil {
			return err
		}
	}
	return nil
}

// importCalls writes the records whose sequence numbers are not in the log yet.
func (w *writer) importCalls(calls []store.Call) error {
	var fresh []store.Call
	for _, c := range calls {
		var n int
		err := w.one(context.Background(), "SELECT count(*) FROM call_blocks WHERE seq BETWEEN ?1 - ?2 AND ?1 AND seq + n > ?1", []any{c.Seq, int64(blockRecords)}, &n)
		if err != nil {
			return err
		}
		if n == 0 {
			fresh = append(fresh, c)
		}
	}
	slices.SortStableFunc(fresh, func(a, b store.Call) int { return cmp.Compare(a.Seq, b.Seq) })
	fresh = slices.CompactFunc(fresh, func(a, b store.Call) bool { return a.Seq == b.Seq })
	return w.insertCalls(fresh)
}
