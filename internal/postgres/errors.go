package postgres

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"junctor/internal/store"
)

// sqlstate returns the SQLSTATE code of an error, or "".
func sqlstate(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// isUniqueViolation reports whether the key of a row exists already.
// isForeignKeyViolation reports whether the row that a row refers to does not
// exist.
func isUniqueViolation(err error) bool     { return sqlstate(err) == "23505" }
func isForeignKeyViolation(err error) bool { return sqlstate(err) == "23503" }

// isRetryable reports whether an error means that the statement had no effect:
// it was not sent, the server was shutting down, or the transaction was rolled
// back in favour of another. A retry is then safe.
func isRetryable(err error) bool {
	if pgconn.SafeToRetry(err) || isConnectError(err) {
		return true
	}
	switch sqlstate(err) {
	case "57P01", "57P02", "57P03", // the server is shutting down or starting, or terminated this session
		"40001", "40P01": // serialization failure or deadlock
		return true
	}
	return false
}

// isConnectError reports whether no connection could be established.
func isConnectError(err error) bool {
	_, is := errors.AsType[*pgconn.ConnectError](err)
	return is
}

// isConnectionLost reports whether the connection broke. The outcome of the
// statement is then unknown.
func isConnectionLost(err error) bool {
	_, network := errors.AsType[net.Error](err)
	return network || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed) ||
		strings.Contains(err.Error(), "conn closed") || strings.HasPrefix(sqlstate(err), "08")
}

// explain adds the operation and a remedy to an error. It wraps errors that
// callers distinguish.
func explain(act string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrConflict), errors.Is(err, store.ErrClosed),
		errors.Is(err, store.ErrUnavailable), errors.Is(err, context.Canceled):
		return fmt.Errorf("%s: %w", act, err)
	case errors.Is(err, pgx.ErrNoRows):
		return fmt.Errorf("%s: %w", act, store.ErrNotFound)
	case err.Error() == "closed pool":
		return fmt.Errorf("%s: %w", act, store.ErrClosed)
	}
	state := sqlstate(err)
	switch {
	case strings.HasPrefix(state, "28"):
		return fmt.Errorf("%s: the database refuses the user or the password of store.url: %w", act, err)
	case state == "3D000":
		return fmt.Errorf("%s: the database of store.url does not exist; create it with createdb: %w", act, err)
	case state == "42501":
		return fmt.Errorf("%s: the user of store.url lacks a permission; grant it CREATE on the database: %w", act, err)
	case state == "53100":
		return fmt.Errorf("%s: the database's disk is full: %w: %w", act, store.ErrUnavailable, err)
	case state == "53300" || isRetryable(err) || isConnectionLost(err) || errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: the database does not answer; check that it runs and that store.url is valid: %w: %w", act, store.ErrUnavailable, err)
	}
	return fmt.Errorf("%s: %w", act, err)
}
