package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"junctor/internal/store"
	"junctor/internal/tool"
)

const valueColumns = `space, name, data, version, updated, expires`

// An expired value is as good as gone, whether it was swept yet or not.
const inForce = `(expires = 0 OR expires > ?)`

func scanValue(r row) (store.Value, error) {
	var v store.Value
	var updated, expires int64
	err := r.Scan(&v.Space, &v.Name, &v.Data, &v.Version, &updated, &expires)
	if errors.Is(err, sql.ErrNoRows) {
		err = store.ErrNotFound
	}
	v.Updated, v.Expires = moment(updated), moment(expires)
	return v, err
}

// Value implements store.Values.
func (s *Store) Value(ctx context.Context, space, name string) (store.Value, error) {
	v, err := scanValue(s.read.QueryRowContext(ctx,
		"SELECT "+valueColumns+" FROM vals WHERE space = ? AND name = ? AND "+inForce, space, name, micros(s.now())))
	return v, s.explain("read "+space+"/"+name, err)
}

// Values implements store.Values.
func (s *Store) Values(ctx context.Context, space string) ([]store.Value, error) {
	out, err := collect(ctx, s.read, scanValue,
		"SELECT "+valueColumns+" FROM vals WHERE (space = ?1 OR ?1 = '') AND (expires = 0 OR expires > ?2) ORDER BY space, name", space, micros(s.now()))
	return out, s.explain("read "+space, err)
}

// Versions start at the time of the first write, so that they also increase
// after a deletion: a version is never reused.
const (
	putAny = `INSERT INTO vals (space, name, data, version, updated, expires) VALUES (?1, ?2, ?3, ?4, ?4, ?5)
ON CONFLICT (space, name) DO UPDATE SET data = excluded.data, version = max(version + 1, excluded.version), updated = excluded.updated, expires = excluded.expires`
	putNew     = putAny + ` WHERE expires <> 0 AND expires <= ?4`
	putVersion = `UPDATE vals SET data = ?3, version = max(version + 1, ?4), updated = ?4, expires = ?5
WHERE space = ?1 AND name = ?2 AND version = ?6 AND (expires = 0 OR expires > ?4)`
)

// PutValue implements store.Values.
func (s *Store) PutValue(ctx context.Context, v store.Value, ifVersion int64) (out store.Value, err error) {
	err = s.write.submit(ctx, single, func(w *writer) error {
		query := putVersion
		args := []any{v.Space, v.Name, blob(v.Data), micros(s.now()), micros(v.Expires)}
		switch ifVersion {
		case store.AnyVersion:
			query = putAny
		case 0:
			query = putNew
		default:
			args = append(args, ifVersion)
		}
		st, err := w.stmt(context.Background(), query+" RETURNING "+valueColumns)
		if err != nil {
			return err
		}
		out, err = scanValue(st.QueryRow(args...))
		if errors.Is(err, store.ErrNotFound) {
			return store.ErrConflict
		}
		return err
	})
	return out, s.announced(store.TopicValues(v.Space), s.explain("keep "+v.Space+"/"+v.Name, err))
}

// DeleteValue implements store.Values.
func (s *Store) DeleteValue(ctx context.Context, space, name string, ifVersion int64) error {
	err := s.write.submit(ctx, single, func(w *writer) error {
		bg := context.Background()
		if ifVersion == store.AnyVersion {
			return w.exec(bg, "DELETE FROM vals WHERE space = ? AND name = ?", space, name)
		}
		var version int64
		err := w.one(bg, "SELECT version FROM vals WHERE space = ? AND name = ? AND "+inForce, []any{space, name, micros(s.now())}, &version)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return nil
		case err != nil:
			return err
		case version != ifVersion:
			return store.ErrConflict
		}
		return w.exec(bg, "DELETE FROM vals WHERE space = ? AND name = ?", space, name)
	})
	return s.announced(store.TopicValues(space), s.explain("forget "+space+"/"+name, err))
}

// TakeBudget implements store.Budgets.
func (s *Store) TakeBudget(ctx context.Context, name string, rate tool.Rate, want int) (got int, wait time.Duration, err error) {
	if rate.Calls <= 0 || rate.Per <= 0 || want <= 0 {
		return 0, 0, nil
	}
	full, each := float64(rate.Calls), rate.Per/time.Duration(rate.Calls)
	err = s.write.submit(ctx, several, func(w *writer) error {
		bg := context.Background()
		now := micros(s.now())
		left, at := full, now
		err := w.one(bg, "SELECT left, at FROM budgets WHERE name = ?", []any{name}, &left, &at)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		left = min(full, left+float64(max(0, now-at))*full/float64(rate.Per.Microseconds()))
		if got = min(want, int(left)); got == 0 {
			wait = max(time.Microsecond, time.Duration((1-left)*float64(each)))
		}
		return w.exec(bg, `INSERT INTO budgets (name, left, at) VALUES (?1, ?2, ?3)
ON CONFLICT (name) DO UPDATE SET left = excluded.left, at = excluded.at`, name, left-float64(got), now)
	})
	if err != nil {
		return 0, 0, s.explain("take from budget "+name, err)
	}
	return got, wait, nil
}
