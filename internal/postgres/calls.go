package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"junctor/internal/store"
	"junctor/internal/store/sqlstore"
)

// callFields are the names and types of a call's columns without its number, in
// the order of the result of columns.
var callFields = [][2]string{
	{"id", "text"}, {"time", "timestamptz"}, {"duration", "bigint"}, {"status", "text"}, {"server", "text"}, {"tool", "text"},
	{"method", "text"}, {"face", "text"}, {"caller", "text"}, {"session", "text"}, {"kind", "text"}, {"trace_id", "text"},
	{"node", "text"}, {"result_bytes", "bigint"}, {"stages", "text"}, {"error", "text"}, {"arguments", "bytea"}, {"result", "bytea"},
	{"request_id", "text"}, {"parent", "text"}, {"caller_name", "text"}, {"arg_bytes", "bigint"},
}

// fieldList formats each field, with %[1]d for its parameter number and %[2]s
// and %[3]s for its name and type, and joins the results with commas.
func fieldList(format string) string {
	var parts []string
	for i, f := range callFields {
		parts = append(parts, fmt.Sprintf(format, i+1, f[0], f[1]))
	}
	return strings.Join(parts, ", ")
}

var (
	callColumns  = "seq, " + fieldList("%[2]s")
	briefColumns = strings.NewReplacer("arguments", "NULL", " result,", " NULL,", "stages", "''").Replace(callColumns)

	// insertCalls assigns numbers and writes records in one statement, and so in
	// one transaction and one round trip. The counter's row is locked until the
	// commit, so that numbers follow the order of commits.
	insertCalls = `WITH counter AS (UPDATE call_counter SET n = n + cardinality($1::text[]) RETURNING n - cardinality($1::text[]) AS base)
INSERT INTO calls (logged, ` + callColumns + `)
SELECT clock_timestamp(), counter.base + c.ord, ` + fieldList("c.%[2]s") + `
FROM counter, unnest(` + fieldList("$%[1]d::%[3]s[]") + `) WITH ORDINALITY AS c (` + fieldList("%[2]s") + `, ord)`

	// importCalls writes records with their existing numbers, which are the last
	// parameter.
	importCalls = fmt.Sprintf(`WITH counter AS (UPDATE call_counter SET n = greatest(n, (SELECT max(x) FROM unnest($%[1]d::bigint[]) AS x)))
INSERT INTO calls (logged, `+callColumns+`)
SELECT coalesce(c.time, 'epoch'), c.seq, `+fieldList("c.%[2]s")+`
FROM unnest($%[1]d::bigint[], `+fieldList("$%[1]d::%[3]s[]")+`) AS c (seq, `+fieldList("%[2]s")+`)
ON CONFLICT DO NOTHING`, len(callFields)+1)
)

// columns converts records into one array for each field.
func columns(calls []*store.Call) []any {
	n := len(calls)
	times := make([]pgtype.Timestamptz, n)
	numbers, bytes, texts := make([][]int64, 3), make([][][]byte, 2), make([][]string, 16)
	for i := range numbers {
		numbers[i] = make([]int64, n)
	}
	for i := range bytes {
		bytes[i] = make([][]byte, n)
	}
	for i := range texts {
		texts[i] = make([]string, n)
	}
	for i, c := range calls {
		times[i] = stamp(c.Time)
		numbers[0][i], numbers[1][i], numbers[2][i] = c.Duration.Microseconds(), int64(c.ResultBytes), int64(c.ArgBytes)
		bytes[0][i], bytes[1][i] = raw(c.Arguments), raw(c.Result)
		for j, s := range [...]string{c.ID, string(c.Status), c.Server, c.Tool, c.Method, c.Face, c.Caller, c.Session, c.Kind, c.TraceID, c.Node,
			c.Stages.String(), c.Error, c.RequestID, c.Parent, c.CallerName} {
			texts[j][i] = sqlstore.Clean(s)
		}
	}
	out := []any{texts[0], times, numbers[0]}
	for _, t := range texts[1:11] {
		out = append(out, t)
	}
	return append(out, numbers[1], texts[11], texts[12], bytes[0], bytes[1], texts[13], texts[14], texts[15], numbers[2])
}

// callFilter returns the condition of a query, which follows WHERE, and its
// parameters.
func callFilter(q store.CallQuery) (where string, args []any) {
	conds := []string{"true"}
	add := func(cond string, arg any) {
		args = append(args, arg)
		conds = append(conds, strings.ReplaceAll(cond, "?", "$"+strconv.Itoa(len(args))))
	}
	for _, f := range []struct{ cond, value string }{
		{"server = ?", q.Server}, {"tool = ?", q.Tool}, {"caller = ?", q.Caller},
		{"session = ? AND session <> ''", q.Session}, {"face = ?", q.Face},
		{"parent = ? AND parent <> ''", q.Parent},
	} {
		if f.value != "" {
			add(f.cond, sqlstore.Clean(f.value))
		}
	}
	if q.Status != "" && q.Status != store.StatusNotOK {
		add("status = ?", sqlstore.Clean(string(q.Status)))
	}
	if q.Status != "" && q.Status != store.StatusOK {
		conds = append(conds, "status <> 'ok'") // the condition of the partial index
	}
	if q.Tools != nil {
		servers, tools := make([]string, len(q.Tools)), make([]string, len(q.Tools))
		for i, n := range q.Tools {
			servers[i], tools[i] = sqlstore.Clean(n.Server), sqlstore.Clean(n.Tool)
		}
		args = append(args, servers, tools)
		conds = append(conds, fmt.Sprintf("(server, tool) IN (SELECT * FROM unnest($%d::text[], $%d::text[]))", len(args)-1, len(args)))
	}
	if !q.Since.IsZero() {
		// A record is written after its call was received, so older partitions
		// need not be read. The day allows for clocks that differ.
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
	if q.Text != "" {
		// Bytes above 127 and backslashes are escaped on both sides, so that
		// lower changes only ASCII letters.
		const fold = "lower(encode(%s, 'escape'))"
		needle := fmt.Sprintf(fold, "convert_to(?::text, 'UTF8')")
		var any []string
		columns := []string{"arguments", "result"}
		for _, name := range []string{"error", "server", "tool", "method", "caller", "caller_name", "kind", "id", "request_id"} {
			columns = append(columns, "convert_to("+name+", 'UTF8')")
		}
		for _, column := range columns {
			any = append(any, "strpos("+fmt.Sprintf(fold, column)+", "+needle+") > 0")
		}
		add("("+strings.Join(any, " OR ")+")", sqlstore.Clean(q.Text))
	}
	return strings.Join(conds, " AND "), args
}

// Calls implements store.CallLog.
func (s *Store) Calls(ctx context.Context, q store.CallQuery) (out []store.Call, err error) {
	where, args := callFilter(q)
	columns := callColumns
	if q.Brief {
		columns = briefColumns
	}
	query := "SELECT " + columns + " FROM calls WHERE " + where
	order := " DESC"
	if q.Oldest() {
		order = " ASC"
	}
	query += " ORDER BY seq" + order + " LIMIT " + strconv.Itoa(q.Rows())
	err = s.readSlow(ctx, "read the call log", func(ctx context.Context) (err error) {
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
	err = s.readSlow(ctx, "read call "+id, func(ctx context.Context) (err error) {
		for _, column := range []string{"id", "request_id"} {
			c, err = one(ctx, s, scanCall, "SELECT "+callColumns+" FROM calls WHERE "+column+" = $1 AND $1 <> '' ORDER BY seq DESC LIMIT 1", sqlstore.Clean(id))
			if !errors.Is(err, store.ErrNotFound) {
				break
			}
		}
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
		&c.Kind, &c.TraceID, &c.Node, &c.ResultBytes, &stages, &c.Error, (*[]byte)(&c.Arguments), (*[]byte)(&c.Result),
		&c.RequestID, &c.Parent, &c.CallerName, &c.ArgBytes)
	if err != nil {
		return store.Call{}, err
	}
	c.Time, c.Duration = moment(at), time.Duration(took)*time.Microsecond
	c.Arguments, c.Result = store.ValidUTF8(c.Arguments), store.ValidUTF8(c.Result)
	c.Stages, err = store.ParseStages(stages)
	return c, err
}
