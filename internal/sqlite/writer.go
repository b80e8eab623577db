package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"junctor/internal/store"
)

// maxBatch bounds how many writes share one commit.
const maxBatch = 256

// writer owns the only connection that writes. Concurrent writes share its
// transactions.
type writer struct {
	db    *sql.DB
	conn  *sql.Conn
	group *store.Group[job]
	stmts map[string]*sql.Stmt // used by the leader of the group
}

// job is one write. Its failure does not affect the others in its batch.
type job struct {
	run    func(*writer) error
	txMode txMode
	err    error
}

// txMode is the kind of transaction that a job needs.
type txMode uint8

const (
	manyStatements txMode = iota // several statements: rolled back together when one fails
	oneStatement                 // at most one statement that writes: SQLite rolls it back when it fails
	noTransaction                // no transaction
)

func newWriter(ctx context.Context, db *sql.DB) (*writer, error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	w := &writer{db: db, conn: conn, stmts: map[string]*sql.Stmt{}}
	w.group = store.NewGroup(maxBatch, w.execute)
	return w, nil
}

// submit executes run within a transaction and returns when it is
// committed.
func (w *writer) submit(ctx context.Context, m txMode, run func(*writer) error) error {
	j := job{run: run, txMode: m}
	if err := w.group.Do(ctx, &j); err != nil {
		return err
	}
	return j.err
}

// execute runs a batch: first the jobs that need a transaction, in one, and then
// the others.
func (w *writer) execute(batch []*job) {
	var inside int
	for _, j := range batch {
		if j.txMode != noTransaction {
			inside++
		}
	}
	if inside > 0 {
		if err := w.transact(batch, inside == 1); err != nil {
			for _, j := range batch {
				if j.txMode != noTransaction && j.err == nil {
					j.err = err
				}
			}
		}
	}
	for _, j := range batch {
		if j.txMode == noTransaction {
			j.err = guard(w, j.run)
		}
	}
}

// transact runs a batch in one transaction and returns the error of the
// transaction. The error of a job is stored in the job. A job that is alone
// needs no savepoint: its error rolls back the transaction and is returned.
func (w *writer) transact(batch []*job, alone bool) (err error) {
	ctx := context.Background()
	if err := w.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = w.exec(ctx, "ROLLBACK") // fails if SQLite has already rolled back
		}
	}()
	for _, j := range batch {
		if j.txMode == noTransaction {
			continue
		}
		if alone {
			if err := guard(w, j.run); err != nil {
				return err
			}
		} else if err := w.runJob(ctx, j); err != nil {
			return err
		}
	}
	return w.exec(ctx, "COMMIT")
}

// runJob runs one job. If the job fails, only its own writes are rolled back.
// runJob returns an error if the whole transaction is lost.
func (w *writer) runJob(ctx context.Context, j *job) error {
	if j.txMode == manyStatements {
		if err := w.exec(ctx, "SAVEPOINT job"); err != nil {
			return err
		}
	}
	if j.err = guard(w, j.run); j.err != nil && fatal(j.err) {
		return j.err
	}
	switch {
	case j.txMode == oneStatement:
		return nil
	case j.err != nil:
		return errors.Join(w.exec(ctx, "ROLLBACK TO job"), w.exec(ctx, "RELEASE job"))
	}
	return w.exec(ctx, "RELEASE job")
}

// guard converts a panic into an error: other goroutines wait for the leader,
// and would wait forever if it stopped.
func guard(w *writer, run func(*writer) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("write to the store: panic: %v", p)
		}
	}()
	return run(w)
}

// stmt returns the prepared statement of a query. It is cached for ever, because
// all queries are constants.
func (w *writer) stmt(ctx context.Context, query string) (*sql.Stmt, error) {
	if st, ok := w.stmts[query]; ok {
		return st, nil
	}
	st, err := w.conn.PrepareContext(ctx, query)
	if err == nil {
		w.stmts[query] = st
	}
	return st, err
}

func (w *writer) exec(ctx context.Context, query string, args ...any) error {
	_, err := w.affect(ctx, query, args...)
	return err
}

// affect runs a statement and returns how many rows it changed.
func (w *writer) affect(ctx context.Context, query string, args ...any) (int64, error) {
	st, err := w.stmt(ctx, query)
	if err != nil {
		return 0, err
	}
	res, err := st.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

// one runs a statement that returns at most one row; sql.ErrNoRows for none.
func (w *writer) one(ctx context.Context, query string, args []any, into ...any) error {
	st, err := w.stmt(ctx, query)
	if err != nil {
		return err
	}
	return st.QueryRowContext(ctx, args...).Scan(into...)
}

// betweenTransactions runs f on the connection while no transaction is open.
func (w *writer) betweenTransactions(f func(*writer) error) error {
	return w.submit(context.Background(), noTransaction, f)
}

// dataVersion returns a number that changes when another connection writes to
// the file. Writes of this connection do not change it.
func (w *writer) dataVersion() (v int64, err error) {
	err = w.betweenTransactions(func(w *writer) error {
		return w.one(context.Background(), "PRAGMA data_version", nil, &v)
	})
	return v, err
}

// close rejects new writes, waits for the queued ones and closes the connection.
func (w *writer) close() error {
	if !w.group.Close() {
		return nil
	}
	var errs []error
	for _, st := range w.stmts {
		errs = append(errs, st.Close())
	}
	return errors.Join(append(errs, w.conn.Close(), w.db.Close())...)
}
