package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"junctor/internal/auth"
	"junctor/internal/store"
)

// cookieSecret is what the page's sign-in is sealed with: kept in the store, so
// that it outlives a restart and holds on every node.
func (a *App) cookieSecret(ctx context.Context) ([]byte, error) {
	const space, name = "gate", "cookie-secret"
	for {
		v, err := a.store.Value(ctx, space, name)
		if err == nil {
			return v.Data, nil
		}
		if !errors.Is(err, store.ErrNotFound) {
			return nil, fmt.Errorf("read the sign-in secret: %w", err)
		}
		fresh := make([]byte, 32)
		_, _ = rand.Read(fresh) // never fails
		_, err = a.store.PutValue(ctx, store.Value{Space: space, Name: name, Data: fresh}, 0)
		if err != nil && !errors.Is(err, store.ErrConflict) { // on a conflict another node was first
			return nil, fmt.Errorf("keep the sign-in secret: %w", err)
		}
	}
}

// adoptFileKeys gives the conversations that the keys of the file and the
// environment own by their names to those keys' ids, once per store. The keys
// in the store were given theirs by a migration.
func (a *App) adoptFileKeys(ctx context.Context) error {
	const space, name = "gate", "callers-by-id"
	if _, err := a.store.Value(ctx, space, name); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	for _, c := range auth.FixedCallers(a.config.Load().Auth, a.opts.AdminKey) {
		for {
			list, err := a.store.Sessions(ctx, store.SessionQuery{Owner: "key:" + c.Name})
			if err != nil {
				return fmt.Errorf("find the conversations of key %s: %w", c.Name, err)
			}
			for _, s := range list {
				if _, err := a.store.UpdateSession(ctx, s.ID, func(s *store.Session) error { s.Owner = c.ID; return nil }); err != nil && !errors.Is(err, store.ErrNotFound) {
					return fmt.Errorf("give conversation %s to key %s: %w", s.ID, c.Name, err)
				}
			}
			if len(list) == 0 {
				break
			}
		}
	}
	_, err := a.store.PutValue(ctx, store.Value{Space: space, Name: name, Data: []byte("1")}, store.AnyVersion)
	return err
}
