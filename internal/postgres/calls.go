package postgres

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"junctor/internal/store"
)

const callColumns = `seq, id, time, duration, status, server, tool, method, face, caller, session, kind, trace_id, node, result_bytes, stages, error, arguments, result`

// insertCalls takes numbers and writes records in one statement, and so in
// one transaction and one round trip. The counter's row stays locked until
// the commit, which is what makes numbers follow commits.
const insertCalls = `WITH counter AS (UPDATE call_counter SET n = n + cardinality($1::text[]) RETURNING n - cardinality($1::text[]) AS base)
INSERT INTO calls (logged, ` + callColumns + `)
SELECT clock_timestamp(), counter.base + c.ord, ` + unnested + `
FROM counter, ` + unnest + ` WITH ORDINALITY AS c (` + unnestedNames + `, ord)`

// importCalls writes records with the numbers they have.
const importCalls = `WITH counter AS (UPDATE call_counter SET n = greatest(n, (SELECT max(x) FROM unnest($19::bigint[]) AS x)))
INSERT INTO calls (logged, ` + callColumns + `)
SELECT coalesce(c.time, 'epoch'), c.seq, ` + unnested + `
FROM unnest($19::bigint[], $1::text[], $2::timestamptz[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
	$10::text[], $11::text[], $12::text[], $13::text[], $14::bigint[], $15::text[], $16::text[], $17::bytea[], $18::bytea[])
	AS c (seq, ` + unnestedNames + `)
ON CONFLICT DO NOTHING`

const (
	unnest = `unnest($1::text[], $2::timestamptz[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[],
	$10::text[], $11::text[], $12::text[], $13::text[], $14::bigint[], $15::text[], $16::text[], $17::bytea[], $18::bytea[])`
	unnestedNames = `id, time, duration, status, server, tool, method, face, caller, session, kind, trace_id, node, result_bytes, stages, error, arguments, result`
	unnested      = `c.id, c.time, c.duration, c.status, c.server, c.tool, c.method, c.face, c.caller, c.session, c.kind, c.trace_id, c.node, c.result_bytes, c.stages, c.error, c.arguments, c.result`
)

// columns turns records into one array for each column.
func columns(calls []*store.Call) []any {
	n := len(calls)
	times, durations, sizes := make([]pgtype.Timestamptz, n), make([]int64, n), make([]int64, n)
	arguments, results := make([][]byte, n), make([][]byte, n)
	texts := make([][]string, 13)
	for i := range texts {
		texts[i] = make([]string, n)
	}
	for i, c := range calls {
		times[i], durations[i], sizes[i] = stamp(c.Time), c.Duration.Microseconds(), int64(c.ResultBytes)
		arguments[i], results[i] = raw(c.Arguments), raw(c.Result)
		for j, s := range [...]string{c.ID, string(c.Status), c.Server, c.Tool, c.Method, c.Face, c.Caller, c.Session, c.Kind, c.TraceID, c.Node, c.Stages.String(), c.Error} {
			texts[j][i] = clean(s)
		}
	}
	return []any{texts[0], times, durations, texts[1], texts[2], texts[3], texts[4], texts[5], texts[6], texts[7], texts[8], texts[9], texts[10],
		sizes, texts[11], texts[12], arguments, results}
}

// Calls implements store.CallLog.
func (s *Store) Calls(ctx context.Context, q store.CallQuery) (out []store.Call, err error) {
	var where []string
	var args []any
	add := func(cond string, arg any) {
		args = append(args, arg)
		where = append(where, strings.ReplaceAll(cond, "?", "$"+strconv.Itoa(len(args))))
	}
	for _, f := range []struct{ cond, value string }{
		{"server = ?", q.Server}, {"tool = ?", q.Tool}, {"caller = ?", q.Caller},
		{"session = ? AND session <> ''", q.Session}, {"face = ?", q.Face}, {"status = ?", string(q.Status)},
	} {
		if f.value != "" {
			add(f.cond, clean(f.value))
		}
	}
	if q.Status != "" && q.Status != store.StatusOK {
		where = append(where, "status <> 'ok'") // what the index says
	}
	if !q.Since.IsZero() {
		// A record is written after its call came in, so older partitions
		// need not be looked at. The day is for clocks that differ.
		add("time >= ? AND logged >= ?::timestamptz - interval '1 day'", q.Since)
	}
	if !q.Until.IsZero() {
		add("time < ?", q.Until)
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
	query += " ORDER BY seq" + order + " LIMIT " + strconv.Itoa(q.Rows())
	err = s.read(ctx, "read the call log", func(ctx context.Context) (err error) {
		out, err = collect(ctx, s, scanCall, query, args...)
		return err
	})
	if !q.Oldest() {
		slices.Reverse(out)
	}
	return out, err
}

// Call implements store.CallLog.
func (s *Store) Call(ctx context.Context, id string) (c store.Call, err error) {
	err = s.read(ctx, "read call "+id, func(ctx context.Context) (err error) {
		c, err = one(ctx, s, scanCall, "SELECT "+callColumns+" FROM calls WHERE id = $1 ORDER BY seq DESC LIMIT 1", clean(id))
		return err
	})
	return c, err
}

// LastSeq implements store.CallLog.
func (s *Store) LastSeq(ctx context.Context) (n int64, err error) {
	err = s.read(ctx, "read the call log", func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, "SELECT n FROM call_counter").Scan(&n)
	})
	return n, err
}

func scanCall(r pgx.CollectableRow) (store.Call, error) {
	var c store.Call
	var at pgtype.Timestamptz
	var took int64
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
