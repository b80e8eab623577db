package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"junctor/internal/store"
)

const sessionColumns = `id, owner, title, model, created, updated, metadata, version`

// versioned is a session with its version number.
type versioned struct {
	store.Session
	version int64
}

func scanSession(r row) (versioned, error) {
	var v versioned
	var created, updated int64
	err := r.Scan(&v.ID, &v.Owner, &v.Title, &v.Model, &created, &updated, (*[]byte)(&v.Metadata), &v.version)
	if errors.Is(err, sql.ErrNoRows) {
		err = store.ErrNotFound
	}
	v.Created, v.Updated = moment(created), moment(updated)
	return v, err
}

// CreateSession implements store.Sessions.
func (s *Store) CreateSession(ctx context.Context, c store.Session) error {
	if c.Updated.IsZero() {
		c.Updated = c.Created
	}
	err := s.write.submit(ctx, single, func(w *writer) error {
		err := w.exec(context.Background(), `INSERT INTO sessions (`+sessionColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, 1)`,
			c.ID, c.Owner, c.Title, c.Model, micros(c.Created), micros(c.Updated), text(c.Metadata))
		if taken(err) {
			return store.ErrConflict
		}
		return err
	})
	return s.announced(store.TopicSession(c.ID), s.explain("make session "+c.ID, err))
}

// Session implements store.Sessions.
func (s *Store) Session(ctx context.Context, id string) (store.Session, error) {
	v, err := s.session(ctx, id)
	return v.Session, err
}

func (s *Store) session(ctx context.Context, id string) (versioned, error) {
	v, err := scanSession(s.read.QueryRowContext(ctx, "SELECT "+sessionColumns+" FROM sessions WHERE id = ?", id))
	return v, s.explain("read session "+id, err)
}

// Sessions implements store.Sessions.
func (s *Store) Sessions(ctx context.Context, q store.SessionQuery) ([]store.Session, error) {
	query, args := "SELECT "+sessionColumns+" FROM sessions WHERE true", []any{}
	if q.Owner != "" {
		query, args = query+" AND owner = ?", append(args, q.Owner)
	}
	if !q.Before.IsZero() {
		query, args = query+" AND updated < ?", append(args, micros(q.Before))
	}
	out, err := collect(ctx, s.read, func(r row) (store.Session, error) {
		v, err := scanSession(r)
		return v.Session, err
	}, query+" ORDER BY updated DESC, id LIMIT ?", append(args, q.Rows())...)
	return out, s.explain("list the sessions", err)
}

// UpdateSession implements store.Sessions. The change runs in the caller's
// goroutine and is written only if no other writer has changed the session
// meanwhile.
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
		var updated int64
		err = s.write.submit(ctx, single, func(w *writer) error {
			return w.one(context.Background(), `UPDATE sessions SET owner = ?3, title = ?4, model = ?5, metadata = ?6, updated = max(updated, ?7), version = version + 1
WHERE id = ?1 AND version = ?2 RETURNING updated`, []any{id, v.version, next.Owner, next.Title, next.Model, text(next.Metadata), micros(s.now())}, &updated)
		})
		if errors.Is(err, sql.ErrNoRows) {
			continue // changed or deleted meanwhile: look again
		}
		if err != nil {
			return store.Session{}, s.explain("change session "+id, err)
		}
		next.ID, next.Created, next.Updated = id, v.Created, moment(updated)
		s.Wake(store.TopicSession(id))
		return next, nil
	}
}

// DeleteSession implements store.Sessions.
func (s *Store) DeleteSession(ctx context.Context, id string) error {
	err := s.write.submit(ctx, single, func(w *writer) error {
		return w.exec(context.Background(), "DELETE FROM sessions WHERE id = ?", id)
	})
	return s.announced(store.TopicSession(id), s.explain("delete session "+id, err))
}

// DeleteSessionsBefore implements store.Sessions, a few at a time: calls must
// not wait for it.
func (s *Store) DeleteSessionsBefore(ctx context.Context, t time.Time) (int, error) {
	var total int
	for {
		var n int64
		err := s.write.submit(ctx, single, func(w *writer) (err error) {
			n, err = w.affect(context.Background(), "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE updated < ? ORDER BY updated LIMIT 50)", micros(t))
			return err
		})
		total += int(n)
		if err != nil || n == 0 {
			return total, s.explain("delete old sessions", err)
		}
	}
}

// AppendMessages implements store.Sessions.
func (s *Store) AppendMessages(ctx context.Context, session string, msgs ...store.Message) error {
	err := s.write.submit(ctx, several, func(w *writer) error {
		bg := context.Background()
		n, err := w.affect(bg, "UPDATE sessions SET updated = max(updated, ?2), version = version + 1 WHERE id = ?1", session, micros(s.now()))
		if err != nil {
			return err
		}
		if n == 0 {
			return store.ErrNotFound
		}
		for _, m := range msgs {
			err := w.exec(bg, "INSERT INTO messages (session, seq, time, role, content, native) VALUES (?, ?, ?, ?, ?, ?)",
				session, m.Seq, micros(m.Time), m.Role, text(m.Content), text(m.Native))
			if taken(err) {
				return store.ErrConflict
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	return s.announced(store.TopicSession(session), s.explain("add to the history of session "+session, err))
}

// Messages implements store.Sessions.
func (s *Store) Messages(ctx context.Context, session string, after int64, limit int) ([]store.Message, error) {
	out, err := collect(ctx, s.read, func(r row) (store.Message, error) {
		m := store.Message{Session: session}
		var at int64
		err := r.Scan(&m.Seq, &at, &m.Role, (*[]byte)(&m.Content), (*[]byte)(&m.Native))
		m.Time = moment(at)
		return m, err
	}, "SELECT seq, time, role, content, native FROM messages WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?", session, after, rowLimit(limit))
	return out, s.explain("read the history of session "+session, err)
}

// AppendEvents implements store.Sessions.
func (s *Store) AppendEvents(ctx context.Context, session string, events ...store.Event) error {
	if len(events) == 0 {
		return nil
	}
	m := several
	if len(events) == 1 {
		m = single
	}
	err := s.write.submit(ctx, m, func(w *writer) error {
		for _, e := range events {
			err := w.exec(context.Background(), "INSERT INTO events (session, seq, time, data) VALUES (?, ?, ?, ?)",
				session, e.Seq, micros(e.Time), text(e.Data))
			switch {
			case taken(err):
				return store.ErrConflict
			case orphan(err):
				return store.ErrNotFound
			case err != nil:
				return err
			}
		}
		return nil
	})
	return s.announced(store.TopicSession(session), s.explain("add events to session "+session, err))
}

// Events implements store.Sessions.
func (s *Store) Events(ctx context.Context, session string, after int64, limit int) ([]store.Event, error) {
	out, err := collect(ctx, s.read, func(r row) (store.Event, error) {
		e := store.Event{Session: session}
		var at int64
		err := r.Scan(&e.Seq, &at, (*[]byte)(&e.Data))
		e.Time = moment(at)
		return e, err
	}, "SELECT seq, time, data FROM events WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?", session, after, rowLimit(limit))
	return out, s.explain("read the events of session "+session, err)
}

// TrimEvents implements store.Sessions.
func (s *Store) TrimEvents(ctx context.Context, session string, upTo int64) error {
	return s.explain("trim the events of session "+session, s.write.submit(ctx, single, func(w *writer) error {
		return w.exec(context.Background(), "DELETE FROM events WHERE session = ? AND seq <= ?", session, upTo)
	}))
}

// rowLimit returns SQLite's value for n, where 0 means all.
func rowLimit(n int) int {
	if n <= 0 {
		return -1
	}
	return n
}
