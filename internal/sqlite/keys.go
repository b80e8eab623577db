package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"junctor/internal/store"
)

const keyColumns = `id, name, hash, hint, admin, servers, tools, rate_calls, rate_per, created, expires, revoked, last_used, chat, tokens_per_day`

func scanKey(r row) (store.Key, error) {
	var k store.Key
	var servers, tools []byte
	var created, expires, revoked, used int64
	err := r.Scan(&k.ID, &k.Name, &k.Hash, &k.Hint, &k.Admin, &servers, &tools, &k.Rate.Calls, (*int64)(&k.Rate.Per),
		&created, &expires, &revoked, &used, &k.Chat, &k.Tokens)
	if errors.Is(err, sql.ErrNoRows) {
		return k, store.ErrNotFound
	}
	if err != nil {
		return k, err
	}
	k.Created, k.Expires, k.Revoked, k.LastUsed = moment(created), moment(expires), moment(revoked), moment(used)
	if k.Servers, err = readGlobs(servers); err != nil {
		return k, err
	}
	k.Tools, err = readGlobs(tools)
	return k, err
}

// globs keeps the difference between no limit (NULL) and nothing allowed.
func globs(list []string) any {
	if list == nil {
		return nil
	}
	b, _ := json.Marshal(list) // strings always marshal
	return string(b)
}

func readGlobs(b []byte) (list []string, err error) {
	if b == nil {
		return nil, nil
	}
	err = json.Unmarshal(b, &list)
	return list, err
}

func keyArgs(k store.Key) []any {
	return []any{k.ID, k.Name, blob(k.Hash), k.Hint, k.Admin, globs(k.Servers), globs(k.Tools), k.Rate.Calls, int64(k.Rate.Per),
		micros(k.Created), micros(k.Expires), micros(k.Revoked), micros(k.LastUsed), k.Chat, k.Tokens}
}

// AddKey implements store.Keys.
func (s *Store) AddKey(ctx context.Context, k store.Key) error {
	args := keyArgs(k)
	err := s.write.submit(ctx, single, func(w *writer) error {
		err := w.exec(context.Background(), `INSERT INTO keys (`+keyColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`, args...)
		if taken(err) {
			return store.ErrConflict
		}
		return err
	})
	return s.announced(store.TopicKeys, s.explain("add key "+k.Name, err))
}

// Keys implements store.Keys.
func (s *Store) Keys(ctx context.Context) ([]store.Key, error) {
	out, err := collect(ctx, s.read, scanKey, `SELECT `+keyColumns+` FROM keys ORDER BY created, id`)
	return out, s.explain("read the keys", err)
}

// KeyByHash implements store.Keys.
func (s *Store) KeyByHash(ctx context.Context, hash []byte) (store.Key, error) {
	k, err := scanKey(s.read.QueryRowContext(ctx, `SELECT `+keyColumns+` FROM keys WHERE hash = ?`, hash))
	return k, s.explain("read a key", err)
}

// RevokeKey implements store.Keys.
func (s *Store) RevokeKey(ctx context.Context, nameOrID string, at time.Time) (k store.Key, err error) {
	err = s.write.submit(ctx, single, func(w *writer) error {
		st, err := w.stmt(context.Background(), `UPDATE keys SET revoked = ?2
WHERE revoked = 0 AND id = coalesce((SELECT id FROM keys WHERE name = ?1 AND revoked = 0), ?1) RETURNING `+keyColumns)
		if err != nil {
			return err
		}
		k, err = scanKey(st.QueryRow(nameOrID, micros(at)))
		return err
	})
	return k, s.announced(store.TopicKeys, s.explain("revoke key "+nameOrID, err))
}

// TouchKeys implements store.Keys.
func (s *Store) TouchKeys(ctx context.Context, used map[string]time.Time) error {
	if len(used) == 0 {
		return nil
	}
	return s.explain("note the use of keys", s.write.submit(ctx, several, func(w *writer) error {
		for id, at := range used {
			if err := w.exec(context.Background(), "UPDATE keys SET last_used = max(last_used, ?2) WHERE id = ?1", id, micros(at)); err != nil {
				return err
			}
		}
		return nil
	}))
}
