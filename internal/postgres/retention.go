package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

const (
	partitionName = "calls_20060102" // one for each day

	daysAhead    = 3
	lockWait     = "2s" // lock timeout of changes to partitions; calls wait meanwhile
	sweepRows    = 1000
	freeLeaseTTL = 24 * time.Hour // how long an expired lease and an unused budget are stored
)

// maintain creates partitions for the next days and deletes records over the
// retention limits. Only one node at a time does this. It logs its errors.
func (s *Store) maintain(ctx context.Context) {
	_, held, err := s.Acquire(ctx, "store/tidy", s.node, 10*s.sweep)
	if err == nil && !held {
		return
	}
	for _, step := range []func(context.Context) error{s.makePartitions, s.deleteByAge, s.deleteBySize, s.deleteExpired} {
		if err == nil {
			err = step(ctx)
		}
	}
	if err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "store maintenance failed", "err", explain("maintain the store", err))
	}
}

// makePartitions creates the missing partitions of today and the next days.
func (s *Store) makePartitions(ctx context.Context) error {
	now, err := s.clock(ctx)
	if err != nil {
		return err
	}
	days := make([]time.Time, daysAhead+1)
	for i := range days {
		days[i] = now.AddDate(0, 0, i)
	}
	return s.makePartitionsOf(ctx, days)
}

// makePartitionsOf creates the missing partitions of the days. It creates none
// for a day that has records in the default partition; they stay there.
func (s *Store) makePartitionsOf(ctx context.Context, days []time.Time) error {
	names := make([]string, len(days))
	for i, day := range days {
		names[i] = day.UTC().Format(partitionName)
	}
	rows, err := s.pool.Query(ctx, "SELECT DISTINCT name FROM unnest($1::text[]) AS name WHERE to_regclass(name) IS NULL ORDER BY name", names)
	if err != nil {
		return err
	}
	missing, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return err
	}
	for _, name := range missing {
		day, err := time.Parse(partitionName, name)
		if err != nil { // the year does not have four digits
			continue
		}
		err = s.changeTables(ctx, fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s PARTITION OF calls FOR VALUES FROM ('%s') TO ('%s')",
			name, day.Format(time.DateOnly), day.AddDate(0, 0, 1).Format(time.DateOnly)))
		switch sqlstate(err) {
		case "23514", "42P07", "23505", "42P17": // the default partition has records of that day, or another node has created the partition
		default:
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// changeTables executes a statement with a short lock timeout, so that calls do
// not wait for long. It does not retry: that is left to the caller.
func (s *Store) changeTables(ctx context.Context, statement string) error {
	return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '"+lockWait+"'"); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, statement)
		return err
	})
}

// partition is one day of the call log.
type partition struct {
	name string
	day  time.Time
	size int64
}

// partitions returns the days of the call log, oldest first, and the size of the
// whole log.
func (s *Store) partitions(ctx context.Context) (days []partition, total int64, err error) {
	rows, err := s.pool.Query(ctx, `SELECT c.relname, pg_total_relation_size(c.oid) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
WHERE i.inhparent = 'calls'::regclass ORDER BY c.relname`)
	if err != nil {
		return nil, 0, err
	}
	all, err := pgx.CollectRows(rows, func(r pgx.CollectableRow) (p partition, err error) {
		err = r.Scan(&p.name, &p.size)
		return p, err
	})
	if err != nil {
		return nil, 0, err
	}
	for _, p := range all {
		total += p.size
		if day, err := time.Parse(partitionName, p.name); err == nil { // the default partition has no day
			p.day = day
			days = append(days, p)
		}
	}
	return days, total, nil
}

// deleteByAge drops the days that are older than the retention.
func (s *Store) deleteByAge(ctx context.Context) error {
	age := s.retention.Age()
	if age <= 0 {
		return nil
	}
	now, err := s.clock(ctx)
	if err != nil {
		return err
	}
	days, _, err := s.partitions(ctx)
	if err != nil {
		return err
	}
	for _, p := range days {
		if p.day.Add(24*time.Hour + age).After(now) {
			break
		}
		if err := s.changeTables(ctx, "DROP TABLE IF EXISTS "+p.name); err != nil {
			return err
		}
	}
	for { // records in the default partition
		tag, err := s.pool.Exec(ctx, `DELETE FROM calls_rest WHERE (seq, logged) IN (SELECT seq, logged FROM calls_rest WHERE logged < $1 LIMIT $2)`, now.Add(-age), sweepRows)
		if err != nil || tag.RowsAffected() == 0 {
			return err
		}
	}
}

// deleteBySize drops the oldest days except today while the call log is larger
// than the retention.
func (s *Store) deleteBySize(ctx context.Context) error {
	limit := s.retention.Bytes()
	if limit <= 0 {
		return nil
	}
	now, err := s.clock(ctx)
	if err != nil {
		return err
	}
	days, total, err := s.partitions(ctx)
	if err != nil {
		return err
	}
	for _, p := range days {
		if total <= limit || p.day.Add(24*time.Hour).After(now) {
			break
		}
		if err := s.changeTables(ctx, "DROP TABLE IF EXISTS "+p.name); err != nil {
			return err
		}
		total -= p.size
	}
	return nil
}

// deleteExpired deletes expired values, leases, budgets and messages between
// nodes.
func (s *Store) deleteExpired(ctx context.Context) error {
	var errs []error
	for _, query := range []string{
		"DELETE FROM vals WHERE expires <= clock_timestamp() AND $1::interval IS NOT NULL",
		"DELETE FROM leases WHERE until < clock_timestamp() - $1::interval",
		"DELETE FROM budgets WHERE at < clock_timestamp() - $1::interval",
		"DELETE FROM mail WHERE at < clock_timestamp() - least($1::interval, interval '10 minutes')",
	} {
		_, err := s.pool.Exec(ctx, query, freeLeaseTTL)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// clock returns the database's time.
func (s *Store) clock(ctx context.Context) (now time.Time, err error) {
	err = s.pool.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now)
	return now.UTC(), err
}
