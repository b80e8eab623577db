package postgres

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"junctor/internal/store"
)

//go:embed migrations/*.sql
var migrations embed.FS

// migrationLock is the advisory lock that the migrating node holds.
const migrationLock = 0x6a756e63746f72 // "junctor"

// migrate brings the tables up to date. If several nodes start simultaneously,
// one does the work while the others wait for its lock and find it done.
func migrate(ctx context.Context, pool *pgxpool.Pool, own bool) error {
	want, err := store.NewestMigration(migrations)
	if err != nil {
		return err
	}
	if have, err := version(ctx, pool); err == nil && have == want {
		return nil // the usual case
	}
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", migrationLock); err != nil {
		return err
	}
	defer conn.Exec(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", migrationLock)
	if own {
		if _, err := conn.Exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+schema); err != nil {
			return err
		}
	}
	have, err := version(ctx, pool)
	if err != nil {
		return err
	}
	if have > want {
		return fmt.Errorf("the database was migrated by a newer Junctor (its tables are version %d, this one knows %d); upgrade this node", have, want)
	}
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	p, err := goose.NewProvider(goose.DialectPostgres, db, dir, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return err
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate the tables from version %d to %d: %w", have, want, err)
	}
	return nil
}

// version returns the version of the tables, 0 when there are none.
func version(ctx context.Context, pool *pgxpool.Pool) (v int64, err error) {
	var there bool
	if err := pool.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", goose.DefaultTablename).Scan(&there); err != nil || !there {
		return 0, err
	}
	err = pool.QueryRow(ctx, "SELECT coalesce(max(version_id), 0) FROM "+goose.DefaultTablename+" WHERE is_applied").Scan(&v)
	return v, err
}
