package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"junctor/internal/store"
)

// Values of grouping() in a row of the statistics: a bit for each column that is
// not a key of the row's group.
const (
	ofTool     = 0b00111
	ofServer   = 0b01111
	ofCaller   = 0b11011
	ofFace     = 0b11101
	ofInterval = 0b11110
)

// Stats implements store.CallLog.
func (s *Store) Stats(ctx context.Context, q store.CallQuery) (out store.CallStats, err error) {
	q.AfterSeq, q.BeforeSeq = 0, 0
	where, args := callFilter(q)
	part := "0"
	if q.Intervals > 0 {
		n := len(args)
		part = fmt.Sprintf("least($%d, trunc(extract(epoch FROM time - $%d::timestamptz) * 1000000 / $%d::bigint))::bigint", n+1, n+2, n+3)
		args = append(args, q.Intervals-1, q.Since, q.Interval().Microseconds())
	}
	query := `SELECT coalesce(server, ''), coalesce(tool, ''), coalesce(caller, ''), coalesce(face, ''), coalesce(part, 0),
	grouping(server, tool, caller, face, part), max(caller_name), count(*),
	count(*) FILTER (WHERE status = 'error'), count(*) FILTER (WHERE status = 'failed'),
	coalesce(percentile_disc(ARRAY[0.5, 0.95, 0.99]) WITHIN GROUP (ORDER BY duration), '{0, 0, 0}')
FROM (SELECT server, tool, caller, caller_name, face, status, duration, ` + part + ` AS part FROM calls WHERE ` + where + `) AS c
GROUP BY GROUPING SETS ((server, tool), (server), (caller), (face), (part), ()) ORDER BY server, tool, caller, face`
	err = s.readSlow(ctx, "read the call log", func(ctx context.Context) error {
		out = store.EmptyStats(q)
		rows, err := s.pool.Query(ctx, query, args...)
		if err != nil {
			return err
		}
		var c store.CallSummary
		var name *string
		var part int64
		var level int
		var took []int64
		_, err = pgx.ForEachRow(rows, []any{&c.Server, &c.Tool, &c.Caller, &c.Face, &part, &level, &name, &c.Calls, &c.Errors, &c.Failed, &took}, func() error {
			for i, p := range []*time.Duration{&c.P50, &c.P95, &c.P99} {
				*p = time.Duration(took[i]) * time.Microsecond
			}
			switch level {
			case ofTool:
				out.Tools = append(out.Tools, c)
			case ofServer:
				out.Servers = append(out.Servers, c)
			case ofCaller:
				named := c
				if name != nil {
					named.CallerName = *name
				}
				out.Callers = append(out.Callers, named)
			case ofFace:
				out.Faces = append(out.Faces, c)
			case ofInterval:
				if part >= 0 && part < int64(len(out.Intervals)) {
					interval := c
					interval.From = out.Intervals[part].From
					out.Intervals[part] = interval
				}
			default:
				out.Total = c
			}
			return nil
		})
		return err
	})
	return out, err
}
