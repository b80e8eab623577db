package sqlite

import (
	"context"
	"log/slog"
	"testing"

	"junctor/internal/store"
)

func openAt(t testing.TB, cfg store.Config) *Store {
	t.Helper()
	s, err := Open(context.Background(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	})
	return s
}
