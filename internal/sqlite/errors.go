package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	driver "modernc.org/sqlite"
	codes "modernc.org/sqlite/lib"

	"junctor/internal/store"
)

// code returns the primary and extended SQLite result codes of an error, or
// zeros if it is not an SQLite error.
func code(err error) (primary, extended int) {
	if e, ok := errors.AsType[*driver.Error](err); ok {
		return e.Code() & 0xff, e.Code()
	}
	return 0, 0
}

// fatal reports whether an error may have rolled back the transaction and with
// it the other writes in it. A constraint violation rolls back only its own
// statement.
func fatal(err error) bool {
	primary, _ := code(err)
	switch primary {
	case codes.SQLITE_FULL, codes.SQLITE_IOERR, codes.SQLITE_NOMEM, codes.SQLITE_BUSY, codes.SQLITE_LOCKED,
		codes.SQLITE_INTERRUPT, codes.SQLITE_CORRUPT, codes.SQLITE_NOTADB, codes.SQLITE_READONLY, codes.SQLITE_CANTOPEN:
		return true
	}
	return false
}

// isBusy reports whether another connection held a lock on the file.
func isBusy(err error) bool {
	primary, _ := code(err)
	return primary == codes.SQLITE_BUSY || primary == codes.SQLITE_LOCKED
}

// isUniqueViolation reports whether a row was refused because its key exists
// already.
func isUniqueViolation(err error) bool {
	_, extended := code(err)
	return extended == codes.SQLITE_CONSTRAINT_UNIQUE || extended == codes.SQLITE_CONSTRAINT_PRIMARYKEY || extended == codes.SQLITE_CONSTRAINT_ROWID
}

// isForeignKeyViolation reports whether a row was refused because the row that
// it refers to does not exist.
func isForeignKeyViolation(err error) bool {
	_, extended := code(err)
	return extended == codes.SQLITE_CONSTRAINT_FOREIGNKEY
}

// explain adds the operation and a remedy to an error. It wraps errors that
// callers distinguish.
func (s *Store) explain(act string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrClosed),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: %w", act, err)
	case err.Error() == "sql: database is closed":
		return fmt.Errorf("%s: %w", act, store.ErrClosed)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("%s %s: %w; make the file and its folder writable for this user, or name another file with store.path", act, s.path, err)
	}
	primary, _ := code(err)
	switch primary {
	case codes.SQLITE_BUSY, codes.SQLITE_LOCKED:
		return fmt.Errorf("%s: %s has been locked by another program for more than %v; close that program, or name another file with store.path: %w: %w",
			act, s.path, busyTimeout, store.ErrUnavailable, err)
	case codes.SQLITE_CORRUPT, codes.SQLITE_NOTADB:
		return fmt.Errorf("%s: %s is damaged or not a Junctor store; restore a backup, or let Junctor create an empty store; for both, first move %s together into another folder: %w", act, s.path, Files(s.path), err)
	case codes.SQLITE_READONLY, codes.SQLITE_CANTOPEN, codes.SQLITE_PERM:
		return fmt.Errorf("%s: %s cannot be written; make the file and its folder writable for this user, or name another file with store.path: %w", act, s.path, err)
	case codes.SQLITE_FULL:
		return fmt.Errorf("%s: the disk that holds %s is full; free some space, or lower store.retention: %w: %w", act, s.path, store.ErrUnavailable, err)
	}
	return fmt.Errorf("%s %s: %w", act, s.path, err)
}

// Check reads the whole file and returns an error if it is damaged.
func (s *Store) Check(ctx context.Context) error {
	var result string
	err := s.read.QueryRowContext(ctx, "PRAGMA quick_check(1)").Scan(&result)
	if err == nil && result != "ok" {
		return fmt.Errorf("check the store: %s is damaged: %s; restore a backup, or let Junctor create an empty store; for both, first move %s together into another folder",
			s.path, strings.ReplaceAll(result, "\n", " "), Files(s.path))
	}
	return s.explain("check the store", err)
}
