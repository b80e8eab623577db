package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"junctor/internal/postgres"
	"junctor/internal/sqlite"
	"junctor/internal/store"
)

// OpenStore opens the configured store: PostgreSQL if there is a URL,
// otherwise the embedded one in the data folder.
func OpenStore(ctx context.Context, cfg store.Config, dataDir string, log *slog.Logger) (store.Store, error) {
	if cfg.URL != "" {
		return postgres.Open(ctx, cfg, log)
	}
	if cfg.Path == "" {
		if err := os.MkdirAll(dataDir, 0o700); err != nil {
			return nil, fmt.Errorf("create the data folder: %w; set store.path to a file in a writable folder", err)
		}
	}
	cfg.Path = StorePath(cfg, dataDir)
	return sqlite.Open(ctx, cfg, log)
}

// StorePath returns the file of the embedded store, or "" with PostgreSQL.
func StorePath(cfg store.Config, dataDir string) string {
	switch {
	case cfg.URL != "":
		return ""
	case cfg.Path == "":
		return filepath.Join(dataDir, "junctor.db")
	}
	return cfg.Path
}

// NewStoreAdvice returns how to get a new, empty store instead of the configured
// one.
func NewStoreAdvice(cfg store.Config, dataDir string) string {
	if cfg.URL != "" {
		return "set store.url to a new database"
	}
	return fmt.Sprintf("move %s together into another folder, or set store.path to a new file", sqlite.Files(StorePath(cfg, dataDir)))
}

// HasKey reports whether the store has a valid API key.
func (a *App) HasKey(ctx context.Context) (bool, error) {
	keys, err := a.store.Keys(ctx)
	if err != nil {
		return false, fmt.Errorf("read the keys: %w", err)
	}
	return slices.ContainsFunc(keys, func(k store.Key) bool { return k.Valid(time.Now()) }), nil
}
