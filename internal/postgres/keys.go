package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"junctor/internal/store"
)

const keyColumns = `id, name, hash, hint, admin, servers, tools, rate_calls, rate_per, created, expires, revoked, last_used, chat, tokens_per_day`

func keyArgs(k store.Key) []any {
	return []any{k.ID, k.Name, blob(k.Hash), k.Hint, k.Admin, k.Servers, k.Tools, int64(k.Rate.Calls), int64(k.Rate.Per),
		stamp(k.Created), stamp(k.Expires), stamp(k.Revoked), stamp(k.LastUsed), k.Chat, k.Tokens}
}

func scanKey(r pgx.CollectableRow) (store.Key, error) {
	var k store.Key
	var created, expires, revoked, used pgtype.Timestamptz
	err := r.Scan(&k.ID, &k.Name, &k.Hash, &k.Hint, &k.Admin, &k.Servers, &k.Tools, &k.Rate.Calls, (*int64)(&k.Rate.Per),
		&created, &expires, &revoked, &used, &k.Chat, &k.Tokens)
	k.Created, k.Expires, k.Revoked, k.LastUsed = moment(created), moment(expires), moment(revoked), moment(used)
	return k, err
}

// AddKey implements store.Keys.
func (s *Store) AddKey(ctx context.Context, k store.Key) error {
	err := s.write(ctx, "add key "+k.Name, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, `INSERT INTO keys (`+keyColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`, keyArgs(k)...)
		if taken(err) {
			return store.ErrConflict
		}
		return err
	})
	return s.announced(store.TopicKeys, err)
}

// Keys implements store.Keys.
func (s *Store) Keys(ctx context.Context) (out []store.Key, err error) {
	err = s.read(ctx, "read the keys", func(ctx context.Context) (err error) {
		out, err = collect(ctx, s, scanKey, `SELECT `+keyColumns+` FROM keys ORDER BY created, id`)
		return err
	})
	return out, err
}

// KeyByHash implements store.Keys.
func (s *Store) KeyByHash(ctx context.Context, hash []byte) (k store.Key, err error) {
	err = s.read(ctx, "read a key", func(ctx context.Context) (err error) {
		k, err = one(ctx, s, scanKey, `SELECT `+keyColumns+` FROM keys WHERE hash = $1`, blob(hash))
		return err
	})
	return k, err
}

// RevokeKey implements store.Keys.
func (s *Store) RevokeKey(ctx context.Context, nameOrID string, at time.Time) (k store.Key, err error) {
	err = s.write(ctx, "revoke key "+nameOrID, func(ctx context.Context) (err error) {
		k, err = one(ctx, s, scanKey, `UPDATE keys SET revoked = $2
WHERE revoked IS NULL AND id = coalesce((SELECT id FROM keys WHERE name = $1 AND revoked IS NULL), $1) RETURNING `+keyColumns, nameOrID, stamp(at))
		return err
	})
	return k, s.announced(store.TopicKeys, err)
}

// TouchKeys implements store.Keys.
func (s *Store) TouchKeys(ctx context.Context, used map[string]time.Time) error {
	if len(used) == 0 {
		return nil
	}
	var ids []string
	var times []time.Time
	for id, at := range used {
		ids, times = append(ids, id), append(times, at)
	}
	return s.read(ctx, "note the use of keys", func(ctx context.Context) error {
		// Locked in order, so that two nodes do not lock each other out.
		_, err := s.pool.Exec(ctx, `WITH used AS (
	SELECT keys.id, u.at FROM keys JOIN unnest($1::text[], $2::timestamptz[]) AS u (id, at) ON u.id = keys.id ORDER BY keys.id FOR UPDATE OF keys)
UPDATE keys SET last_used = greatest(keys.last_used, used.at) FROM used WHERE used.id = keys.id`, ids, times)
		return err
	})
}
