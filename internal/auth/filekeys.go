package auth

import (
	"context"
	"errors"
	"fmt"

	"junctor/internal/store"
	"junctor/internal/telemetry"
)

// AdoptFileKeys changes the owner of conversations from the name to the id of
// a key, for the keys of the file and the environment. It runs once per store.
// A migration did the same for the keys in the store.
func AdoptFileKeys(ctx context.Context, s interface {
	store.Values
	store.Sessions
}, cfg Config, adminKey telemetry.Secret) error {
	const space, name = "gate", "callers-by-id"
	if _, err := s.Value(ctx, space, name); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	for _, c := range FixedCallers(cfg, adminKey) {
		for {
			list, err := s.Sessions(ctx, store.SessionQuery{Owner: "key:" + c.Name})
			if err != nil {
				return fmt.Errorf("find the conversations of key %s: %w", c.Name, err)
			}
			for _, session := range list {
				if _, err := s.UpdateSession(ctx, session.ID, func(s *store.Session) error { s.Owner = c.ID; return nil }); err != nil && !errors.Is(err, store.ErrNotFound) {
					return fmt.Errorf("give conversation %s to key %s: %w", session.ID, c.Name, err)
				}
			}
			if len(list) == 0 {
				break
			}
		}
	}
	_, err := s.PutValue(ctx, store.Value{Space: space, Name: name, Data: []byte("1")}, store.AnyVersion)
	return err
}
