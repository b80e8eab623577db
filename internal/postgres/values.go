package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"junctor/internal/store"
	"junctor/internal/tool"
)

const valueColumns = `space, name, data, version, updated, expires`

// Numbers that grow over a deletion begin at the time of the first write.
const ticks = `(extract(epoch FROM clock_timestamp()) * 1000000)::bigint`

func scanValue(r pgx.CollectableRow) (store.Value, error) {
	var v store.Value
	var updated, expires pgtype.Timestamptz
	err := r.Scan(&v.Space, &v.Name, &v.Data, &v.Version, &updated, &expires)
	v.Updated, v.Expires = moment(updated), moment(expires)
	return v, err
}

// Value implements store.Values.
func (s *Store) Value(ctx context.Context, space, name string) (v store.Value, err error) {
	err = s.read(ctx, "read "+space+"/"+name, func(ctx context.Context) (err error) {
		v, err = one(ctx, s, scanValue, "SELECT "+valueColumns+" FROM vals WHERE space = $1 AND name = $2 AND (expires IS NULL OR expires > clock_timestamp())", space, name)
		return err
	})
	return v, err
}

// Values implements store.Values.
func (s *Store) Values(ctx context.Context, space string) (out []store.Value, err error) {
	err = s.read(ctx, "read "+space, func(ctx context.Context) (err error) {
		out, err = collect(ctx, s, scanValue, "SELECT "+valueColumns+` FROM vals
WHERE (space = $1 OR $1 = '') AND (expires IS NULL OR expires > clock_timestamp()) ORDER BY space COLLATE "C", name COLLATE "C"`, space)
		return err
	})
	return out, err
}

const (
	putAny = `INSERT INTO vals AS v (space, name, data, version, updated, expires) VALUES ($1, $2, $3, ` + ticks + `, clock_timestamp(), $4)
ON CONFLICT (space, name) DO UPDATE SET data = excluded.data, version = greatest(v.version + 1, excluded.version), updated = excluded.updated, expires = excluded.expires`
	putNew     = putAny + ` WHERE v.expires <= clock_timestamp()`
	putVersion = `UPDATE vals SET data = $3, version = greatest(version + 1, ` + ticks + `), updated = clock_timestamp(), expires = $4
WHERE space = $1 AND name = $2 AND version = $5 AND (expires IS NULL OR expires > clock_timestamp())`
)

// PutValue implements store.Values.
func (s *Store) PutValue(ctx context.Context, v store.Value, ifVersion int64) (out store.Value, err error) {
	query, args := putVersion, []any{v.Space, v.Name, blob(v.Data), stamp(v.Expires)}
	switch ifVersion {
	case store.AnyVersion:
		query = putAny
	case 0:
		query = putNew
	default:
		args = append(args, ifVersion)
	}
	err = s.write(ctx, "keep "+v.Space+"/"+v.Name, func(ctx context.Context) (err error) {
		out, err = one(ctx, s, scanValue, query+" RETURNING "+valueColumns, args...)
		if errors.Is(err, store.ErrNotFound) {
			return store.ErrConflict
		}
		return err
	})
	return out, s.announced(store.TopicValues(v.Space), err)
}

// DeleteValue implements store.Values.
func (s *Store) DeleteValue(ctx context.Context, space, name string, ifVersion int64) error {
	err := s.read(ctx, "forget "+space+"/"+name, func(ctx context.Context) error {
		tag, err := s.pool.Exec(ctx, "DELETE FROM vals WHERE space = $1 AND name = $2 AND (version = $3 OR $3 = -1)", space, name, ifVersion)
		if err != nil || tag.RowsAffected() > 0 || ifVersion == store.AnyVersion {
			return err
		}
		var there bool
		err = s.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM vals WHERE space = $1 AND name = $2 AND (expires IS NULL OR expires > clock_timestamp()))", space, name).Scan(&there)
		if err == nil && there {
			return store.ErrConflict
		}
		return err
	})
	return s.announced(store.TopicValues(space), err)
}

// Acquire implements store.Leases. It may be repeated: who has the lease
// already gets it again.
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
				err = nil // swept a moment ago: free, but not ours
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

// Release implements store.Leases. The row stays a while for its token.
func (s *Store) Release(ctx context.Context, name, owner string) error {
	return s.read(ctx, "give back lease "+name, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, "UPDATE leases SET owner = '', until = clock_timestamp() WHERE name = $1 AND owner = $2", name, owner)
		return err
	})
}

// TakeBudget implements store.Budgets.
func (s *Store) TakeBudget(ctx context.Context, name string, rate tool.Rate, want int) (got int, wait time.Duration, err error) {
	if rate.Calls <= 0 || rate.Per <= 0 || want <= 0 {
		return 0, 0, nil
	}
	// One moment for the whole statement, so that what is granted is what is
	// taken; never backwards, because it may have waited for another's.
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
