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
		cfg.Path = filepath.Join(dataDir, "junctor.db")
	}
	return sqlite.Open(ctx, cfg, log)
}

// HasKey reports whether the store has a valid API key.
func (a *App) HasKey(ctx context.Context) (bool, error) {
	keys, err := a.store.Keys(ctx)
	if err != nil {
		return false, fmt.Errorf("read the keys: %w", err)
	}
	return slices.ContainsFunc(keys, func(k store.Key) bool { return k.Valid(time.Now()) }), nil
}
