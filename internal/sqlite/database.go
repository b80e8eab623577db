package sqlite

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"junctor/internal/store"
	"junctor/internal/store/sqlstore"
)

// database implements sqlstore.Database.
type database struct {
	*Store
	translated *sync.Map // by statement, of which there are few
}

// Query implements sqlstore.Database.
func (d database) Query(ctx context.Context, op sqlstore.Op, s sqlstore.Statement, read func(sqlstore.Rows) error) error {
	query, args := d.translate(s)
	take := func(rows *sql.Rows, err error) error {
		if err != nil {
			return err
		}
		return errors.Join(read(rows), rows.Close())
	}
	var err error
	if op.Kind == sqlstore.Read {
		err = take(d.read.QueryContext(ctx, query, args...))
	} else {
		err = d.write.submit(ctx, oneStatement, func(w *writer) error {
			st, err := w.stmt(context.Background(), query)
			if err != nil {
				return err
			}
			return take(st.Query(args...))
		})
	}
	return d.explain(op.Name, constraintError(err))
}

// Exec implements sqlstore.Database.
func (d database) Exec(ctx context.Context, op sqlstore.Op, list ...sqlstore.Statement) (n int64, err error) {
	m := manyStatements
	if len(list) == 1 {
		m = oneStatement
	}
	err = d.write.submit(ctx, m, func(w *writer) (err error) {
		n, err = d.execAll(w, list)
		return err
	})
	return n, d.explain(op.Name, constraintError(err))
}

// execAll executes statements and returns how many rows the first one changed.
func (d database) execAll(w *writer, list []sqlstore.Statement) (first int64, err error) {
	for i, s := range list {
		query, args := d.translate(s)
		n, err := w.affect(context.Background(), query, args...)
		if err != nil {
			return first, err
		}
		if i == 0 {
			first = n
		}
	}
	return first, nil
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

// translate returns a statement in SQLite's dialect. The current time, if used,
// is an additional parameter after the others.
func (d database) translate(s sqlstore.Statement) (query string, args []any) {
	args = make([]any, len(s.Args), len(s.Args)+1)
	for i, arg := range s.Args {
		args[i] = argument(arg)
	}
	if strings.Contains(s.SQL, "{now}") || strings.Contains(s.SQL, "{ticks}") {
		args = append(args, micros(d.now()))
	}
	if query, ok := d.translated.Load(s.SQL); ok {
		return query.(string), args
	}
	now := "?" + strconv.Itoa(len(s.Args)+1)
	query = strings.NewReplacer("{now}", now, "{ticks}", now, "{none}", "= 0", "{max}", "max", "{bytes}", "", "{like}", "LIKE", "{content}", "content").Replace(s.SQL)
	d.translated.Store(s.SQL, query)
	return query, args
}

// argument returns the stored form of a value or of the value that a pointer
// refers to.
func argument(v any) any {
	switch v := v.(type) {
	case time.Time:
		return micros(v)
	case *time.Time:
		return micros(*v)
	case []byte:
		return blob(v)
	case *[]byte:
		return blob(*v)
	case json.RawMessage:
		return text(v)
	case *json.RawMessage:
		return text(*v)
	case *[]json.RawMessage:
		return string(store.JoinRaw(*v))
	case *[]string: // nil differs from an empty list
		if *v == nil {
			return nil
		}
		b, _ := json.Marshal(*v) // strings always marshal
		return string(b)
	}
	return v // database/sql follows pointers
}

// Fields implements sqlstore.Database.
func (d database) Fields(pointers []any) []any {
	for i, p := range pointers {
		switch p := p.(type) {
		case *time.Time:
			pointers[i] = scanner(func(v any) error {
				us, ok := v.(int64)
				if !ok {
					return fmt.Errorf("%v is not a time", v)
				}
				*p = moment(us)
				return nil
			})
		case *json.RawMessage:
			pointers[i] = (*[]byte)(p)
		case *[]json.RawMessage:
			pointers[i] = scanner(func(v any) (err error) {
				*p, err = store.SplitRaw(bytesOf(v))
				return err
			})
		case *[]string:
			pointers[i] = scanner(func(v any) error {
				if *p = nil; v == nil {
					return nil
				}
				return json.Unmarshal(bytesOf(v), p)
			})
		}
	}
	return pointers
}

// scanner is a sql.Scanner.
type scanner func(any) error

func (s scanner) Scan(v any) error { return s(v) }

// bytesOf returns the bytes of a text or blob column.
func bytesOf(v any) []byte {
	if s, ok := v.(string); ok {
		return []byte(s)
	}
	b, _ := v.([]byte)
	return b
}
