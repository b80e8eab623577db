package sqlstore

import (
	"context"
	"errors"

	"junctor/internal/store"
)

var values = table[store.Value]{
	"vals", "space, name, data, version, updated, expires",
	func(v *store.Value) []any {
		return []any{&v.Space, &v.Name, &v.Data, &v.Version, &v.Updated, &v.Expires}
	},
}

// unexpired excludes values that have expired but are not deleted yet.
const unexpired = "(expires {none} OR expires > {now})"

// Versions start at the time of the first write, so that they also increase
// after a deletion: a version is never reused.
const (
	putAny = `INSERT INTO vals (space, name, data, version, updated, expires) VALUES (?1, ?2, ?3, {ticks}, {now}, ?4)
ON CONFLICT (space, name) DO UPDATE SET data = excluded.data, version = {max}(vals.version + 1, excluded.version), updated = excluded.updated, expires = excluded.expires`
	putNew     = putAny + ` WHERE NOT vals.expires {none} AND vals.expires <= {now}`
	putVersion = `UPDATE vals SET data = ?3, version = {max}(version + 1, {ticks}), updated = {now}, expires = ?4
WHERE space = ?1 AND name = ?2 AND version = ?5 AND ` + unexpired
)

// Value implements store.Values.
func (r Records) Value(ctx context.Context, space, name string) (store.Value, error) {
	return values.one(ctx, r.db, "read "+space+"/"+name, " WHERE space = ?1 AND name = ?2 AND "+unexpired, space, name)
}

// Values implements store.Values.
func (r Records) Values(ctx context.Context, space string) ([]store.Value, error) {
	return values.list(ctx, r.db, "read "+space, " WHERE (space = ?1 OR ?1 = '') AND "+unexpired+" ORDER BY space {bytes}, name {bytes}", space)
}

// PutValue implements store.Values.
func (r Records) PutValue(ctx context.Context, v store.Value, ifVersion int64) (store.Value, error) {
	query, args := putVersion, []any{v.Space, v.Name, v.Data, v.Expires}
	switch ifVersion {
	case store.AnyVersion:
		query = putAny
	case 0:
		query = putNew
	default:
		args = append(args, ifVersion)
	}
	act := "write " + v.Space + "/" + v.Name
	out, err := values.change(ctx, r.db, act, query, args...)
	if errors.Is(err, store.ErrNotFound) {
		err = conflict(Op{Name: act})
	}
	return out, r.announced(store.TopicValues(v.Space), err)
}

// DeleteValue implements store.Values.
func (r Records) DeleteValue(ctx context.Context, space, name string, ifVersion int64) error {
	op := Op{"delete " + space + "/" + name, Repeat}
	n, err := r.exec(ctx, op, "DELETE FROM vals WHERE space = ?1 AND name = ?2 AND (version = ?3 OR ?3 = -1)", space, name, ifVersion)
	if err == nil && n == 0 && ifVersion != store.AnyVersion {
		switch _, err = r.Value(ctx, space, name); {
		case errors.Is(err, store.ErrNotFound):
			err = nil
		case err == nil:
			err = conflict(op)
		}
	}
	return r.announced(store.TopicValues(space), err)
}
