package postgres

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"junctor/internal/store"
)

const sessionColumns = `id, owner, title, model, created, updated, metadata, version`

// versioned is a session with its version number.
type versioned struct {
	store.Session
	version int64
}

func scanSession(r pgx.CollectableRow) (versioned, error) {
	var v versioned
	var created, updated pgtype.Timestamptz
	err := r.Scan(&v.ID, &v.Owner, &v.Title, &v.Model, &created, &updated, (*[]byte)(&v.Metadata), &v.version)
	v.Created, v.Updated = moment(created), moment(updated)
	return v, err
}

// CreateSession implements store.Sessions.
func (s *Store) CreateSession(ctx context.Context, c store.Session) error {
	if c.Updated.IsZero() {
		c.Updated = c.Created
	}
	err := s.write(ctx, "make session "+c.ID, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, `INSERT INTO sessions (`+sessionColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7, 1)`,
			c.ID, c.Owner, clean(c.Title), c.Model, stamp(c.Created), stamp(c.Updated), raw(c.Metadata))
		if taken(err) {
			return store.ErrConflict
		}
		return err
	})
	return s.announced(store.TopicSession(c.ID), err)
}

// Session implements store.Sessions.
func (s *Store) Session(ctx context.Context, id string) (store.Session, error) {
	v, err := s.session(ctx, id)
	return v.Session, err
}

func (s *Store) session(ctx context.Context, id string) (v versioned, err error) {
	err = s.read(ctx, "read session "+id, func(ctx context.Context) (err error) {
		v, err = one(ctx, s, scanSession, "SELECT "+sessionColumns+" FROM sessions WHERE id = $1", id)
		return err
	})
	return v, err
}

// Sessions implements store.Sessions.
func (s *Store) Sessions(ctx context.Context, q store.SessionQuery) (out []store.Session, err error) {
	query, args := "SELECT "+sessionColumns+" FROM sessions WHERE true", []any{}
	if q.Owner != "" {
		args = append(args, q.Owner)
		query += " AND owner = $" + strconv.Itoa(len(args))
	}
	if !q.Before.IsZero() {
		args = append(args, q.Before)
		query += " AND updated < $" + strconv.Itoa(len(args))
	}
	query += " ORDER BY updated DESC, id LIMIT " + strconv.Itoa(q.Rows())
	err = s.read(ctx, "list the sessions", func(ctx context.Context) (err error) {
		out, err = collect(ctx, s, func(r pgx.CollectableRow) (store.Session, error) {
			v, err := scanSession(r)
			return v.Session, err
		}, query, args...)
		return err
	})
	return out, err
}

// UpdateSession implements store.Sessions. The change is written only if no
// other writer has changed the session meanwhile.
func (s *Store) UpdateSession(ctx context.Context, id string, change func(*store.Session) error) (store.Session, error) {
	for {
		v, err := s.session(ctx, id)
		if err != nil {
			return store.Session{}, err
		}
		next := v.Session
		if err := change(&next); err != nil {
			return store.Session{}, err
		}
		var updated pgtype.Timestamptz
		err = s.write(ctx, "change session "+id, func(ctx context.Context) error {
			return s.pool.QueryRow(ctx, `UPDATE sessions SET owner = $3, title = $4, model = $5, metadata = $6, updated = greatest(updated, clock_timestamp()), version = version + 1
WHERE id = $1 AND version = $2 RETURNING updated`, id, v.version, next.Owner, clean(next.Title), next.Model, raw(next.Metadata)).Scan(&updated)
		})
		if errors.Is(err, store.ErrNotFound) {
			continue // changed or deleted meanwhile: look again
		}
		if err != nil {
			return store.Session{}, err
		}
		next.ID, next.Created, next.Updated = id, v.Created, moment(updated)
		s.Announce(store.TopicSession(id))
		return next, nil
	}
}

// DeleteSession implements store.Sessions.
func (s *Store) DeleteSession(ctx context.Context, id string) error {
	err := s.read(ctx, "delete session "+id, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, "DELETE FROM sessions WHERE id = $1", id)
		return err
	})
	return s.announced(store.TopicSession(id), err)
}

// DeleteSessionsBefore implements store.Sessions, a few at a time.
func (s *Store) DeleteSessionsBefore(ctx context.Context, t time.Time) (int, error) {
	var total int
	for {
		var n int64
		err := s.read(ctx, "delete old sessions", func(ctx context.Context) error {
			tag, err := s.pool.Exec(ctx, "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE updated < $1 ORDER BY updated LIMIT 50)", t)
			n = tag.RowsAffected()
			return err
		})
		total += int(n)
		if err != nil || n == 0 {
			return total, err
		}
	}
}

// AppendMessages implements store.Sessions.
func (s *Store) AppendMessages(ctx context.Context, session string, msgs ...store.Message) error {
	err := s.write(ctx, "add to the history of session "+session, func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, s.pool, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, "UPDATE sessions SET updated = greatest(updated, clock_timestamp()), version = version + 1 WHERE id = $1", session)
			if err != nil {
				return err
			}
			if tag.RowsAffected() == 0 {
				return store.ErrNotFound
			}
			return insertMessages(ctx, tx, session, msgs, "")
		})
	})
	return s.announced(store.TopicSession(session), err)
}

// execer is a connection or a transaction.
type execer interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// insertMessages adds messages; those without a session belong to the one
// given.
func insertMessages(ctx context.Context, tx execer, session string, msgs []store.Message, conflict string) error {
	b := &pgx.Batch{}
	for _, m := range msgs {
		of := session
		if of == "" {
			of = m.Session
		}
		b.Queue("INSERT INTO messages (session, seq, time, role, content, native) VALUES ($1, $2, $3, $4, $5, $6)"+conflict,
			of, m.Seq, stamp(m.Time), m.Role, raw(m.Content), raw(m.Native))
	}
	return translated(tx.SendBatch(ctx, b).Close())
}

// translated names the broken rule.
func translated(err error) error {
	switch {
	case taken(err):
		return store.ErrConflict
	case orphan(err):
		return store.ErrNotFound
	}
	return err
}

// Messages implements store.Sessions.
func (s *Store) Messages(ctx context.Context, session string, after int64, limit int) (out []store.Message, err error) {
	err = s.read(ctx, "read the history of session "+session, func(ctx context.Context) (err error) {
		out, err = collect(ctx, s, func(r pgx.CollectableRow) (store.Message, error) {
			m := store.Message{Session: session}
			var at pgtype.Timestamptz
			err := r.Scan(&m.Seq, &at, &m.Role, (*[]byte)(&m.Content), (*[]byte)(&m.Native))
			m.Time = moment(at)
			return m, err
		}, "SELECT seq, time, role, content, native FROM messages WHERE session = $1 AND seq > $2 ORDER BY seq LIMIT $3", session, after, rowLimit(limit))
		return err
	})
	return out, err
}

const insertEvents = `INSERT INTO events (session, seq, time, data) SELECT * FROM unnest($1::text[], $2::bigint[], $3::timestamptz[], $4::bytea[])`

func eventColumns(session string, events []store.Event) []any {
	n := len(events)
	ids, seqs, times, data := make([]string, n), make([]int64, n), make([]pgtype.Timestamptz, n), make([][]byte, n)
	for i, e := range events {
		if ids[i] = session; session == "" {
			ids[i] = e.Session
		}
		seqs[i], times[i], data[i] = e.Seq, stamp(e.Time), raw(e.Data)
	}
	return []any{ids, seqs, times, data}
}

// AppendEvents implements store.Sessions.
func (s *Store) AppendEvents(ctx context.Context, session string, events ...store.Event) error {
	if len(events) == 0 {
		return nil
	}
	err := s.write(ctx, "add events to session "+session, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, insertEvents, eventColumns(session, events)...)
		return translated(err)
	})
	return s.announced(store.TopicSession(session), err)
}

// Events implements store.Sessions.
func (s *Store) Events(ctx context.Context, session string, after int64, limit int) (out []store.Event, err error) {
	err = s.read(ctx, "read the events of session "+session, func(ctx context.Context) (err error) {
		out, err = collect(ctx, s, func(r pgx.CollectableRow) (store.Event, error) {
			e := store.Event{Session: session}
			var at pgtype.Timestamptz
			err := r.Scan(&e.Seq, &at, (*[]byte)(&e.Data))
			e.Time = moment(at)
			return e, err
		}, "SELECT seq, time, data FROM events WHERE session = $1 AND seq > $2 ORDER BY seq LIMIT $3", session, after, rowLimit(limit))
		return err
	})
	return out, err
}

// TrimEvents implements store.Sessions.
func (s *Store) TrimEvents(ctx context.Context, session string, upTo int64) error {
	return s.read(ctx, "trim the events of session "+session, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, "DELETE FROM events WHERE session = $1 AND seq <= $2", session, upTo)
		return err
	})
}

// rowLimit returns PostgreSQL's value for n, where 0 means all.
func rowLimit(n int) *int {
	if n <= 0 {
		return nil
	}
	return &n
}
