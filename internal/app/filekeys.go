package app

import (
	"context"
	"errors"
	"fmt"

	"junctor/internal/auth"
	"junctor/internal/store"
)

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
