package store

import (
	"cmp"
	"context"

	"junctor/internal/tool"
)

// VisibleTo reports whether the caller may read the record. Operators may read
// all records; others only their own, and with a profile only those of the
// tools and methods that it allows and those without a server.
func (c *Call) VisibleTo(caller *tool.Caller) bool {
	if caller.IsOperator() {
		return true
	}
	return c.Caller == caller.ID && (len(caller.Profiles) == 0 || c.Server == "" || caller.MayUse(tool.Name{Server: c.Server, Tool: cmp.Or(c.Tool, c.Method)}))
}

// maxVisiblePages bounds the pages that one VisibleCalls reads.
const maxVisiblePages = 20

// VisibleCalls is like [CallLog.Calls], but returns only records that are
// visible to the caller. It reads further pages, up to maxVisiblePages, to make
// up for records that are not.
func VisibleCalls(ctx context.Context, log CallLog, q CallQuery, caller *tool.Caller) ([]Call, error) {
	if !caller.IsOperator() {
		q.Caller = caller.ID
	}
	if caller.IsOperator() || len(caller.Profiles) == 0 {
		return log.Calls(ctx, q)
	}
	q.Forward = q.Forward || q.AfterSeq > 0
	out := []Call{}
	for range maxVisiblePages {
		page, err := log.Calls(ctx, q)
		if err != nil {
			return nil, err
		}
		kept := make([]Call, 0, len(page))
		for _, c := range page {
			if c.VisibleTo(caller) {
				kept = append(kept, c)
			}
		}
		if q.Forward {
			out = append(out, kept...)
			out = out[:min(len(out), q.Rows())]
		} else {
			out = append(kept, out...)
			out = out[max(0, len(out)-q.Rows()):]
		}
		if len(page) < q.Rows() || len(out) == q.Rows() {
			break
		}
		if q.Forward {
			q.AfterSeq = page[len(page)-1].Seq
		} else {
			q.BeforeSeq = page[0].Seq
		}
	}
	return out, nil
}

// VisibleStats is like [CallLog.Stats], but counts only records that are
// visible to the caller. With a profile, requests other than tool calls count
// only if the profile allows the whole server.
func VisibleStats(ctx context.Context, log CallLog, q CallQuery, caller *tool.Caller) (CallStats, error) {
	if caller.IsOperator() {
		return log.Stats(ctx, q)
	}
	q.Caller = caller.ID
	if len(caller.Profiles) > 0 {
		intervals := q.Intervals
		q.Intervals = 0
		all, err := log.Stats(ctx, q)
		if err != nil {
			return CallStats{}, err
		}
		q.Intervals, q.Tools = intervals, []tool.Name{}
		for _, s := range all.Tools {
			if n := (tool.Name{Server: s.Server, Tool: s.Tool}); s.Server == "" || caller.MayUse(n) {
				q.Tools = append(q.Tools, n)
			}
		}
	}
	return log.Stats(ctx, q)
}
