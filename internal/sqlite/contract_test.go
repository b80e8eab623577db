package sqlite_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"junctor/internal/sqlite"
	"junctor/internal/sqlite/sqlitetest"
	"junctor/internal/store"
	"junctor/internal/store/storetest"
)

func TestContract(t *testing.T) {
	storetest.Run(t, func(t testing.TB) storetest.Opener {
		cfg := store.DefaultConfig()
		cfg.Path = sqlitetest.Create(t, filepath.Join(t.TempDir(), "data", "junctor.db"))
		return func(t testing.TB) store.Store {
			s, err := sqlite.Open(context.Background(), cfg, slog.New(slog.DiscardHandler))
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
	})
}
