package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"junctor/internal/store"
	"junctor/internal/tool"
)

// ticks is the first value of numbers that must also increase after a row is
// deleted and created again: the current time in microseconds.
const ticks = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`

// Acquire implements store.Leases. It may be retried, because the owner of a
// lease can acquire it again.
func (s *Store) Acquire(ctx context.Context, name, owner string, ttl time.Duration) (l store.Lease, held bool, err error) {
	err = s.read(ctx, "take lease "+name, func(ctx context.Context) error {
		held = false
		err := s.pool.QueryRow(ctx, `INSERT INTO leases AS l (name, owner, until, token) VALUES ($1, $2, clock_timestamp() + $3::interval, `+ticks+`)
ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until,
	token = CASE WHEN l.owner = excluded.owner THEN l.token ELSE greatest(l.token + 1, excluded.token) END
WHERE l.owner = excluded.owner OR l.until <= clock_timestamp()
RETURNING owner, greatest(until - clock_timestamp(), interval '0'), token`, name, owner, ttl).Scan(&l.Owner, &l.Left, &l.Token)
		if held = err == nil; errors.Is(err, pgx.ErrNoRows) {
			err = s.pool.QueryRow(ctx, "SELECT owner, greatest(until - clock_timestamp(), interval '0'), token FROM leases WHERE name = $1", name).Scan(&l.Owner, &l.Left, &l.Token)
			if errors.Is(err, pgx.ErrNoRows) {
				err = nil // deleted meanwhile: free, but not acquired
			}
		}
		return err
	})
	if err != nil {
		return store.Lease{}, false, err
	}
	l.Name = name
	return l, held, nil
}

// TakeBudget takes up to want calls from a token bucket, which holds at most
// rate.Calls and is refilled evenly over rate.Per by the database's clock, so
// that several nodes share one rate limit. It returns how many calls it got
// and, if none, how long to wait for the next one.
func (s *Store) TakeBudget(ctx context.Context, name string, rate tool.Rate, want int) (got int, wait time.Duration, err error) {
	if rate.Calls <= 0 || rate.Per <= 0 || want <= 0 {
		return 0, 0, nil
	}
	// One time for the whole statement, so that the same amount is granted and
	// taken. It must not go back: the statement may have waited for another one,
	// which started later.
	const filled = `least($2::float8, b.left_ + greatest(extract(epoch FROM statement_timestamp() - b.at)::float8, 0) * $2::float8 / $3::float8)`
	var left float64
	err = s.write(ctx, "take from budget "+name, func(ctx context.Context) error {
		return s.pool.QueryRow(ctx, `INSERT INTO budgets AS b (name, left_, granted, at)
VALUES ($1, $2::float8 - least($4::float8, $2::float8), least($4::float8, $2::float8), statement_timestamp())
ON CONFLICT (name) DO UPDATE SET left_ = `+filled+` - least($4::float8, floor(`+filled+`)), granted = least($4::float8, floor(`+filled+`)), at = greatest(b.at, statement_timestamp())
RETURNING granted, left_`, name, float64(rate.Calls), rate.Per.Seconds(), float64(want)).Scan(&got, &left)
	})
	if err != nil {
		return 0, 0, err
	}
	if got == 0 {
		wait = max(time.Microsecond, time.Duration((1-left)*float64(rate.Per)/float64(rate.Calls)))
	}
	return got, wait, nil
}
