package postgres

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"junctor/internal/store"
	"junctor/internal/store/sqlstore"
)

// database implements sqlstore.Database.
type database struct{ *Store }

// Query implements sqlstore.Database.
func (d database) Query(ctx context.Context, op sqlstore.Op, s sqlstore.Statement, read func(sqlstore.Rows) error) error {
	return d.try(ctx, op.Name, d.timeout, op.Kind != sqlstore.Once, func(ctx context.Context) error {
		rows, err := d.pool.Query(ctx, dialect.Replace(s.SQL), arguments(s.Args)...)
		if err != nil {
			return err
		}
		defer rows.Close()
		return constraintError(read(rows))
	})
}

// Exec implements sqlstore.Database. The statements of a batch are one
// transaction and one round trip.
func (d database) Exec(ctx context.Context, op sqlstore.Op, list ...sqlstore.Statement) (n int64, err error) {
	err = d.try(ctx, op.Name, d.timeout, op.Kind != sqlstore.Once, func(ctx context.Context) error {
		if len(list) == 1 {
			tag, err := d.pool.Exec(ctx, dialect.Replace(list[0].SQL), arguments(list[0].Args)...)
			n = tag.RowsAffected()
			return constraintError(err)
		}
		results := d.pool.SendBatch(ctx, batch(list))
		tag, err := results.Exec()
		n = tag.RowsAffected()
		if closed := results.Close(); err == nil {
			err = closed
		}
		return constraintError(err)
	})
	return n, err
}

// batch returns statements to be sent together.
func batch(list []sqlstore.Statement) *pgx.Batch {
	b := &pgx.Batch{}
	for _, s := range list {
		b.Queue(dialect.Replace(s.SQL), arguments(s.Args)...)
	}
	return b
}

// constraintError maps constraint violations to errors of package store and
// returns other errors unchanged.
func constraintError(err error) error {
	switch {
	case isUniqueViolation(err):
		return store.ErrConflict
	case isForeignKeyViolation(err):
		return store.ErrNotFound
	}
	return err
}

// dialect translates a statement to PostgreSQL's dialect.
var dialect = strings.NewReplacer("?", "$", "{now}", "clock_timestamp()", "{ticks}", ticks,
	"{none}", "IS NULL", "{max}", "greatest", "{bytes}", `COLLATE "C"`, "{like}", "ILIKE", "{content}", "convert_from(content, 'UTF8')")

// arguments returns the stored form of values or of the values that pointers
// refer to.
func arguments(list []any) []any {
	out := make([]any, len(list))
	for i, v := range list {
		switch v := v.(type) {
		case time.Time:
			out[i] = stamp(v)
		case *time.Time:
			out[i] = stamp(*v)
		case string:
			out[i] = sqlstore.Clean(v)
		case *string:
			out[i] = sqlstore.Clean(*v)
		case []byte:
			out[i] = blob(v)
		case *[]byte:
			out[i] = blob(*v)
		case json.RawMessage:
			out[i] = raw(v)
		case *json.RawMessage:
			out[i] = raw(*v)
		case *[]json.RawMessage:
			out[i] = store.JoinRaw(*v)
		case **bool:
			out[i] = *v
		default: // pgx follows pointers
			out[i] = v
		}
	}
	return out
}

// Fields implements sqlstore.Database.
func (d database) Fields(pointers []any) []any {
	for i, p := range pointers {
		switch p := p.(type) {
		case *time.Time:
			pointers[i] = timeScanner{p}
		case *json.RawMessage:
			pointers[i] = (*[]byte)(p)
		case *[]json.RawMessage:
			pointers[i] = listScanner{p}
		}
	}
	return pointers
}

// timeScanner reads a time; NULL is the zero time.
type timeScanner struct{ into *time.Time }

// ScanTimestamptz implements pgtype.TimestamptzScanner.
func (s timeScanner) ScanTimestamptz(v pgtype.Timestamptz) error {
	*s.into = moment(v)
	return nil
}

// listScanner reads a list of JSON values.
type listScanner struct{ into *[]json.RawMessage }

// ScanBytes implements pgtype.BytesScanner.
func (s listScanner) ScanBytes(v []byte) (err error) {
	*s.into, err = store.SplitRaw(v)
	return err
}
