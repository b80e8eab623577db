// Package sqlstore is the part that the stores of both databases share: the
// records of small tables, their columns, and the statements that read and
// write them.
//
// A statement is written once. Parameters are numbered (?1, ?2 …). Where the two
// SQL dialects differ, it has a word in braces, which each [Database] replaces:
//
//	{now}   the database's time
//	{ticks} the same as a number, in microseconds since 1970
//	{none}  the condition that a time is not set
//	{max}   the function that returns the larger of two values
//	{like}  the operator that matches a pattern, ignoring the case of ASCII letters
//	{content}  the column content as text
//	{bytes} orders text by its bytes
//
// The call log, the acquisition of leases and budgets differ between the
// databases and are not part of this package.
package sqlstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"junctor/internal/store"
)

// Database executes statements.
type Database interface {
	// Query executes a statement and passes its rows to read. It may do so
	// more than once, each time from the first row.
	Query(ctx context.Context, op Op, s Statement, read func(Rows) error) error

	// Exec executes statements, all or none, and returns how many rows the
	// first one changed. The error is store.ErrConflict when the key of a row
	// exists already, and store.ErrNotFound when a row refers to another that
	// does not exist.
	Exec(ctx context.Context, op Op, s ...Statement) (int64, error)

	// Fields converts pointers to the fields of a record into a form that
	// Rows.Scan accepts.
	Fields(pointers []any) []any

	// Announce publishes a change.
	Announce(topic string)
}

// Op is an operation: its name, for errors, and its kind.
type Op struct {
	Name string
	Kind Kind
}

// Kind is the effect of an operation on the database. It determines whether the
// operation may be retried.
type Kind uint8

// The kinds of operations.
const (
	Read   Kind = iota
	Repeat      // writes, and may be retried when the connection breaks
	Once        // writes, and must not be executed twice
)

// Statement is a statement in the common dialect, with its parameters: values,
// or pointers to them.
type Statement struct {
	SQL  string
	Args []any
}

// Rows is the result of a query.
type Rows interface {
	Next() bool
	Scan(into ...any) error
	Err() error
}

// Records implements the interfaces of package store for small records.
type Records struct{ db Database }

// New returns the records in a database.
func New(db Database) Records { return Records{db} }

// table describes the table of a record.
type table[T any] struct {
	name    string
	columns string
	fields  func(*T) []any // pointers, in the order of the columns
}

// insert returns the statement that adds a record.
func (t table[T]) insert(record T) Statement {
	fields := t.fields(&record)
	var b strings.Builder
	b.WriteString("INSERT INTO " + t.name + " (" + t.columns + ") VALUES (?1")
	for i := range fields[1:] {
		b.WriteString(", ?" + strconv.Itoa(i+2))
	}
	b.WriteByte(')')
	return Statement{b.String(), fields}
}

// list returns the records selected by rest, which is the part of a SELECT
// after FROM: the condition and the order.
func (t table[T]) list(ctx context.Context, db Database, name, rest string, args ...any) ([]T, error) {
	return t.query(ctx, db, Op{name, Read}, "SELECT "+t.columns+" FROM "+t.name+rest, args...)
}

// one returns the first record of a list; store.ErrNotFound when it is empty.
func (t table[T]) one(ctx context.Context, db Database, name, rest string, args ...any) (T, error) {
	return t.first(ctx, db, Op{name, Read}, "SELECT "+t.columns+" FROM "+t.name+rest, args...)
}

// change executes a statement on one record and returns the changed record;
// store.ErrNotFound when the statement changed none.
func (t table[T]) change(ctx context.Context, db Database, name, statement string, args ...any) (T, error) {
	return t.first(ctx, db, Op{name, Once}, statement+" RETURNING "+t.columns, args...)
}

func (t table[T]) first(ctx context.Context, db Database, op Op, query string, args ...any) (record T, err error) {
	list, err := t.query(ctx, db, op, query, args...)
	if err != nil {
		return record, err
	}
	if len(list) == 0 {
		return record, notFound(op)
	}
	return list[0], nil
}

func (t table[T]) query(ctx context.Context, db Database, op Op, query string, args ...any) (out []T, err error) {
	err = db.Query(ctx, op, Statement{query, args}, func(rows Rows) error {
		out = []T{}
		for rows.Next() {
			var record T
			if err := rows.Scan(db.Fields(t.fields(&record))...); err != nil {
				return err
			}
			out = append(out, record)
		}
		return rows.Err()
	})
	return out, err
}

// exec executes one statement.
func (r Records) exec(ctx context.Context, op Op, query string, args ...any) (int64, error) {
	return r.db.Exec(ctx, op, Statement{query, args})
}

// announced announces a change unless err is set, and returns err.
func (r Records) announced(topic string, err error) error {
	if err == nil {
		r.db.Announce(topic)
	}
	return err
}

func notFound(op Op) error { return fmt.Errorf("%s: %w", op.Name, store.ErrNotFound) }
func conflict(op Op) error { return fmt.Errorf("%s: %w", op.Name, store.ErrConflict) }

// Clean replaces NUL and invalid UTF-8, which not every database accepts in
// text columns, by U+FFFD.
func Clean(s string) string {
	if strings.IndexByte(s, 0) >= 0 {
		s = strings.ReplaceAll(s, "\x00", "\uFFFD")
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// Import returns the statements that add the records of a batch except calls.
// They do not change existing records.
func Import(b store.Batch) []Statement {
	var out []Statement
	out = add(out, catalogues, b.Catalogues)
	out = add(out, fingerprints, b.Fingerprints)
	out = add(out, keys, b.Keys)
	out = add(out, values, b.Values)
	for _, s := range b.Sessions {
		out = add(out, sessions, []session{{s, 1}})
	}
	out = add(out, messages, b.Messages)
	return add(out, events, b.Events)
}

func add[T any](out []Statement, t table[T], records []T) []Statement {
	for _, record := range records {
		s := t.insert(record)
		s.SQL += " ON CONFLICT DO NOTHING"
		out = append(out, s)
	}
	return out
}
