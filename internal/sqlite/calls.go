package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"time"

	"junctor/internal/store"
)

const callColumns = `seq, id, time, duration, status, server, tool, method, face, caller, session, kind, trace_id, node, result_bytes, stages, error, arguments, result`

const insertCall = `INSERT INTO calls (id, time, duration, status, server, tool, method, face, caller, session, kind, trace_id, node, result_bytes, stages, error, arguments, result)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`

// callFields is how many columns a record of a journal has.
const callFields = 18

// Append implements store.CallLog. The record is committed when it is in the
// journal.
func (s *Store) Append(ctx context.Context, c store.Call) error {
	record, err := encodeRecord(callArgs(c))
	if err == nil {
		err = s.journal.append(ctx, record)
	}
	if err != nil {
		return s.explain("record the call", err)
	}
	s.Wake(store.TopicCalls)
	return nil
}

// moveIn puts the records of a journal that begin at from into the tables,
// once: how far the journal is in them is part of the same commit.
func (s *Store) moveIn(name string, from int64, records []byte) error {
	return s.write.submit(context.Background(), several, func(w *writer) error {
		ctx := context.Background()
		for row := range rows(records) {
			switch err := w.exec(ctx, insertCall, row...); {
			case fatal(err):
				return err
			case err != nil: // the others are not to wait for it for ever
				s.log.Error("the record of a call cannot be kept", "err", err)
			}
		}
		return w.exec(ctx, "INSERT INTO journals (name, bytes) VALUES (?, ?) ON CONFLICT DO UPDATE SET bytes = excluded.bytes", name, from+int64(len(records)))
	})
}

func (s *Store) settle(context.Context) error { return s.journal.settle() }

// settled brings the call log up to date before it is read. What cannot be
// moved now is moved later, and reported then: what is in the tables can be
// read all the same.
func (s *Store) settled() *sql.DB {
	_ = s.journal.settle()
	return s.read
}

// callArgs are the columns of a call but for its number.
func callArgs(c store.Call) []any {
	return []any{
		c.ID, micros(c.Time), c.Duration.Microseconds(), string(c.Status), c.Server, c.Tool, c.Method, c.Face, c.Caller,
		c.Session, c.Kind, c.TraceID, c.Node, int64(c.ResultBytes), c.Stages.String(), c.Error, text(c.Arguments), text(c.Result),
	}
}

// Calls implements store.CallLog.
func (s *Store) Calls(ctx context.Context, q store.CallQuery) ([]store.Call, error) {
	var where []string
	var args []any
	add := func(cond string, arg any) {
		where, args = append(where, cond), append(args, arg)
	}
	for _, f := range []struct{ cond, value string }{
		{"server = ?", q.Server}, {"tool = ?", q.Tool}, {"caller = ?", q.Caller},
		{"session = ?", q.Session}, {"face = ?", q.Face}, {"status = ?", string(q.Status)},
	} {
		if f.value != "" {
			add(f.cond, f.value)
		}
	}
	// The partial indexes are used only where the query says what they say.
	if q.Session != "" {
		where = append(where, "session <> ''")
	}
	if q.Status != "" && q.Status != store.StatusOK {
		where = append(where, "status <> 'ok'")
	}
	if !q.Since.IsZero() {
		add("time >= ?", micros(q.Since))
	}
	if !q.Until.IsZero() {
		add("time < ?", micros(q.Until))
	}
	if q.AfterSeq > 0 {
		add("seq > ?", q.AfterSeq)
	}
	if q.BeforeSeq > 0 {
		add("seq < ?", q.BeforeSeq)
	}
	query := "SELECT " + callColumns + " FROM calls"
	if len(where) > 0 {
		query += " WHERE " + strings.Join(where, " AND ")
	}
	order := " DESC"
	if q.Oldest() {
		order = " ASC"
	}
	query += " ORDER BY seq" + order + " LIMIT ?"
	rows, err := s.settled().QueryContext(ctx, query, append(args, q.Rows())...)
	if err != nil {
		return nil, s.explain("read the call log", err)
	}
	defer rows.Close()
	out := []store.Call{}
	for rows.Next() {
		c, err := scanCall(rows)
		if err != nil {
			return nil, s.explain("read the call log", err)
		}
		out = append(out, c)
	}
	if err := rows.Err(); err != nil {
		return nil, s.explain("read the call log", err)
	}
	if !q.Oldest() {
		for i, j := 0, len(out)-1; i < j; i, j = i+1, j-1 {
			out[i], out[j] = out[j], out[i]
		}
	}
	return out, nil
}

// Call implements store.CallLog.
func (s *Store) Call(ctx context.Context, id string) (store.Call, error) {
	c, err := scanCall(s.settled().QueryRowContext(ctx, "SELECT "+callColumns+" FROM calls WHERE id = ? ORDER BY seq DESC LIMIT 1", id))
	if errors.Is(err, sql.ErrNoRows) {
		err = store.ErrNotFound
	}
	return c, s.explain("read call "+id, err)
}

// LastSeq implements store.CallLog.
func (s *Store) LastSeq(ctx context.Context) (n int64, err error) {
	err = s.settled().QueryRowContext(ctx, "SELECT coalesce(max(seq), 0) FROM calls").Scan(&n)
	return n, s.explain("read the call log", err)
}

// row is one result of a query, a sql.Row or the current one of sql.Rows.
type row interface{ Scan(into ...any) error }

func scanCall(r row) (store.Call, error) {
	var c store.Call
	var at, took int64
	var stages string
	err := r.Scan(&c.Seq, &c.ID, &at, &took, &c.Status, &c.Server, &c.Tool, &c.Method, &c.Face, &c.Caller, &c.Session,
		&c.Kind, &c.TraceID, &c.Node, &c.ResultBytes, &stages, &c.Error, (*[]byte)(&c.Arguments), (*[]byte)(&c.Result))
	if err != nil {
		return store.Call{}, err
	}
	c.Time, c.Duration = moment(at), time.Duration(took)*time.Microsecond
	c.Stages, err = store.ParseStages(stages)
	return c, err
}
