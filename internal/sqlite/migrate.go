package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"time"

	"github.com/pressly/goose/v3"

	"junctor/internal/store"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrate brings the tables up to date. If several processes start
// simultaneously, one does the work: each step is one transaction, so the others
// fail, retry and find it done.
func migrate(ctx context.Context, db *sql.DB) error {
	want, err := store.NewestMigration(migrations)
	if err != nil {
		return err
	}
	for try := 1; ; try++ {
		have, err := version(ctx, db)
		switch {
		case err != nil:
			err = fmt.Errorf("read the tables' version: %w", err)
		case have > want:
			return fmt.Errorf("the file was written by a newer Junctor (its tables are version %d, this one knows %d); upgrade Junctor, or name another file with store.path", have, want)
		case have < want:
			if err = up(ctx, db); err != nil {
				err = fmt.Errorf("migrate the tables from version %d to %d: %w", have, want, err)
			}
		}
		if err == nil {
			return nil
		}
		if try == startRetries || ctx.Err() != nil || fatal(err) && !isBusy(err) {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(time.Duration(try) * 5 * time.Millisecond):
		}
	}
}

func up(ctx context.Context, db *sql.DB) error {
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, dir, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	_, err = p.Up(ctx)
	return err
}

// version returns the version of the tables, 0 for a new file. It queries the
// table itself, because that is much cheaper than goose.
func version(ctx context.Context, db *sql.DB) (v int64, err error) {
	var tables int
	if err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = ?", goose.DefaultTablename).Scan(&tables); err != nil || tables == 0 {
		return 0, err
	}
	err = db.QueryRowContext(ctx, "SELECT coalesce(max(version_id), 0) FROM "+goose.DefaultTablename+" WHERE is_applied").Scan(&v)
	return v, err
}
