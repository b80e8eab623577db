package postgres

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"junctor/internal/postgres/pgtest"
	"junctor/internal/sqlite"
	"junctor/internal/store"
	"junctor/internal/store/storetest"
	"junctor/internal/telemetry"
)

var shared pgtest.Shared

func TestMain(m *testing.M) {
	if url := os.Getenv(loadEnv); url != "" {
		load(url)
		return
	}
	os.Exit(shared.Main(m))
}

func config(url string) store.Config {
	cfg := store.DefaultConfig()
	cfg.URL = telemetry.Secret(url)
	cfg.TimeoutMs = 60_000 // so that a busy machine does not cause an outage
	return cfg
}

// outageConfig returns the configuration of tests that stop the database: the
// timeout is the default.
func outageConfig(url string) store.Config {
	cfg := config(url)
	cfg.TimeoutMs = store.DefaultConfig().TimeoutMs
	return cfg
}

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
		cfg := config(shared.Database(t))
		return func(t testing.TB) store.Store { return openAt(t, cfg) }
	})
}

// TestBackup copies a database that is in use, as store backup does.
func TestBackup(t *testing.T) {
	to, err := sqlite.Open(context.Background(), store.Config{Path: filepath.Join(t.TempDir(), "backup.db")}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer to.Close()
	storetest.CopyOnline(t, openAt(t, config(shared.Database(t))), to)
}

// TestCopyFromSQLite checks the migration from one machine to several nodes.
func TestCopyFromSQLite(t *testing.T) {
	from, err := sqlite.Open(context.Background(), store.Config{Path: filepath.Join(t.TempDir(), "junctor.db")}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	storetest.Copy(t, from, openAt(t, config(shared.Database(t))))
}
