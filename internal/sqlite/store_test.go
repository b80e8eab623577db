package sqlite

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"junctor/internal/store"
	"junctor/internal/store/storetest"
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

func TestContract(t *testing.T) {
	storetest.Run(t, func(t testing.TB) storetest.Opener {
		cfg := store.DefaultConfig()
		cfg.Path = filepath.Join(t.TempDir(), "data", "junctor.db")
		return func(t testing.TB) store.Store { return openAt(t, cfg) }
	})
}
