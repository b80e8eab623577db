package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

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
