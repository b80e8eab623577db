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

// template is an empty store with all of its tables. To create them costs
// many times what it costs to open a store that has them.
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

// Create makes an empty store in the file and returns its path. A file that
// exists is left as it is.
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
