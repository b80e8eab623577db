package sqlstore

import (
	"context"
	"maps"
	"slices"
	"time"

	"junctor/internal/store"
)

var keys = table[store.Key]{
	"keys", "id, name, hash, hint, admin, servers, tools, rate_calls, rate_per, created, expires, revoked, last_used, chat, tokens_per_day, profile",
	func(k *store.Key) []any {
		return []any{&k.ID, &k.Name, &k.Hash, &k.Hint, &k.Admin, &k.Servers, &k.Tools, &k.Rate.Calls, (*int64)(&k.Rate.Per),
			&k.Created, &k.Expires, &k.Revoked, &k.LastUsed, &k.Chat, &k.Tokens, &k.Profile}
	},
}

// AddKey implements store.Keys.
func (r Records) AddKey(ctx context.Context, k store.Key) error {
	_, err := r.db.Exec(ctx, Op{"add key " + k.Name, Once}, keys.insert(k))
	return r.announced(store.TopicKeys, err)
}

// Keys implements store.Keys.
func (r Records) Keys(ctx context.Context) ([]store.Key, error) {
	return keys.list(ctx, r.db, "read the keys", " ORDER BY created, id")
}

// KeyByHash implements store.Keys.
func (r Records) KeyByHash(ctx context.Context, hash []byte) (store.Key, error) {
	return keys.one(ctx, r.db, "read a key", " WHERE hash = ?1", hash)
}

// RevokeKey implements store.Keys.
func (r Records) RevokeKey(ctx context.Context, nameOrID string, at time.Time) (store.Key, error) {
	k, err := keys.change(ctx, r.db, "revoke key "+nameOrID, `UPDATE keys SET revoked = ?2
WHERE revoked {none} AND id = coalesce((SELECT id FROM keys WHERE name = ?1 AND revoked {none}), ?1)`, nameOrID, at)
	return k, r.announced(store.TopicKeys, err)
}

// TouchKeys implements store.Keys. It locks rows in the order of their IDs, so
// that two nodes do not deadlock.
func (r Records) TouchKeys(ctx context.Context, used map[string]time.Time) error {
	if len(used) == 0 {
		return nil
	}
	var updates []Statement
	for _, id := range slices.Sorted(maps.Keys(used)) {
		updates = append(updates, Statement{"UPDATE keys SET last_used = {max}(last_used, ?2) WHERE id = ?1", []any{id, used[id]}})
	}
	_, err := r.db.Exec(ctx, Op{"record the use of keys", Repeat}, updates...)
	return err
}
