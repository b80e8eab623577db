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

// Append implements store.CallLog.
func (s *Store) Append(ctx context.Context, c store.Call) error {
	args := callArgs(c)
	err := s.write.submit(ctx, single, func(w *writer) error {
		return w.exec(context.Background(), insertCall, args...)
	})
	if err != nil {
		return s.explain("record the call", err)
	}
	s.Wake(store.TopicCalls)
	return nil
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
	rows, err := s.read.QueryContext(ctx, query, append(args, q.Rows())...)
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
	c, err := scanCall(s.read.QueryRowContext(ctx, "SELECT "+callColumns+" FROM calls WHERE id = ? ORDER BY seq DESC LIMIT 1", id))
	if errors.Is(err, sql.ErrNoRows) {
		err = store.ErrNotFound
	}
	return c, s.explain("read call "+id, err)
}

// LastSeq implements store.CallLog.
func (s *Store) LastSeq(ctx context.Context) (n int64, err error) {
	err = s.read.QueryRowContext(ctx, "SELECT coalesce(max(seq), 0) FROM calls").Scan(&n)
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
