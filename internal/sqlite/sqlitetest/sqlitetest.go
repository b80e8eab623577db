// Package sqlitetest creates SQLite stores for tests.
package sqlitetest

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"junctor/internal/sqlite"
	"junctor/internal/store"
)

// template is an empty store with all of its tables. Copying it is much cheaper
// than creating the tables.
var template = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "junctor-sqlite")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "junctor.db")
	s, err := sqlite.Open(context.Background(), store.Config{Path: path}, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// Create creates an empty store at path and returns path. It leaves an existing
// file unchanged.
func Create(t testing.TB, path string) string {
	t.Helper()
	if _, err := os.Stat(path); err == nil {
		return path
	}
	data, err := template()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
