package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"

	"junctor/internal/store"
)

// session is a session with its version number.
type session struct {
	store.Session
	version int64
}

var sessions = table[session]{
	"sessions", "id, owner, title, model, created, updated, metadata, version",
	func(s *session) []any {
		return []any{&s.ID, &s.Owner, &s.Title, &s.Model, &s.Created, &s.Updated, &s.Metadata, &s.version}
	},
}

var messages = table[store.Message]{
	"messages", "session, seq, time, role, content, native",
	func(m *store.Message) []any {
		return []any{&m.Session, &m.Seq, &m.Time, &m.Role, &m.Content, &m.Native}
	},
}

var events = table[store.Event]{
	"events", "session, seq, time, data",
	func(e *store.Event) []any { return []any{&e.Session, &e.Seq, &e.Time, &e.Data} },
}

// CreateSession implements store.Sessions.
func (r Records) CreateSession(ctx context.Context, s store.Session) error {
	if s.Updated.IsZero() {
		s.Updated = s.Created
	}
	_, err := r.db.Exec(ctx, Op{"create session " + s.ID, Once}, sessions.insert(session{s, 1}))
	return r.announced(store.TopicSession(s.ID), err)
}

// Session implements store.Sessions.
func (r Records) Session(ctx context.Context, id string) (store.Session, error) {
	s, err := r.session(ctx, id)
	return s.Session, err
}

func (r Records) session(ctx context.Context, id string) (session, error) {
	return sessions.one(ctx, r.db, "read session "+id, " WHERE id = ?1", id)
}

// Sessions implements store.Sessions.
func (r Records) Sessions(ctx context.Context, q store.SessionQuery) ([]store.Session, error) {
	where, args := " WHERE true", []any{}
	if q.Owner != "" {
		args = append(args, q.Owner)
		where += " AND owner = ?1"
	}
	if !q.Before.IsZero() {
		args = append(args, q.Before)
		where += " AND updated < ?" + strconv.Itoa(len(args))
	}
	if q.Text != "" {
		plain, quoted := q.Pattern()
		args = append(args, plain, quoted)
		where += fmt.Sprintf(` AND (title {like} ?%d ESCAPE '\' OR EXISTS (SELECT 1 FROM messages WHERE session = sessions.id AND {content} {like} ?%d ESCAPE '\'))`, len(args)-1, len(args))
	}
	args = append(args, q.Rows())
	list, err := sessions.list(ctx, r.db, "list the sessions", where+" ORDER BY updated DESC, id LIMIT ?"+strconv.Itoa(len(args)), args...)
	if err != nil {
		return nil, err
	}
	out := make([]store.Session, len(list))
	for i, s := range list {
		out[i] = s.Session
	}
	return out, nil
}

// UpdateSession implements store.Sessions. change runs in the caller's
// goroutine. Its result is written only if no other writer has changed the
// session meanwhile; otherwise UpdateSession starts over.
func (r Records) UpdateSession(ctx context.Context, id string, change func(*store.Session) error) (store.Session, error) {
	for {
		s, err := r.session(ctx, id)
		if err != nil {
			return store.Session{}, err
		}
		next := s.Session
		if err := change(&next); err != nil {
			return store.Session{}, err
		}
		changed, err := sessions.change(ctx, r.db, "change session "+id, `UPDATE sessions
SET owner = ?3, title = ?4, model = ?5, metadata = ?6, updated = {max}(updated, {now}), version = version + 1
WHERE id = ?1 AND version = ?2`, id, s.version, next.Owner, next.Title, next.Model, next.Metadata)
		if errors.Is(err, store.ErrNotFound) {
			continue // changed or deleted meanwhile: read it again
		}
		return changed.Session, r.announced(store.TopicSession(id), err)
	}
}

// DeleteSession implements store.Sessions.
func (r Records) DeleteSession(ctx context.Context, id string) error {
	_, err := r.exec(ctx, Op{"delete session " + id, Repeat}, "DELETE FROM sessions WHERE id = ?1", id)
	return r.announced(store.TopicSession(id), err)
}

// AppendMessages implements store.Sessions.
func (r Records) AppendMessages(ctx context.Context, session string, msgs ...store.Message) error {
	op := Op{"add to the history of session " + session, Once}
	statements := []Statement{{"UPDATE sessions SET updated = {max}(updated, {now}), version = version + 1 WHERE id = ?1", []any{session}}}
	for _, m := range msgs {
		m.Session = session
		statements = append(statements, messages.insert(m))
	}
	n, err := r.db.Exec(ctx, op, statements...)
	if err == nil && n == 0 {
		err = notFound(op)
	}
	return r.announced(store.TopicSession(session), err)
}

// Messages implements store.Sessions.
func (r Records) Messages(ctx context.Context, session string, after int64, limit int) ([]store.Message, error) {
	return messages.list(ctx, r.db, "read the history of session "+session, " WHERE session = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3", session, after, rowLimit(limit))
}

// AppendEvents implements store.Sessions.
func (r Records) AppendEvents(ctx context.Context, session string, list ...store.Event) error {
	if len(list) == 0 {
		return nil
	}
	var statements []Statement
	for _, e := range list {
		e.Session = session
		statements = append(statements, events.insert(e))
	}
	_, err := r.db.Exec(ctx, Op{"add events to session " + session, Once}, statements...)
	return r.announced(store.TopicSession(session), err)
}

// Events implements store.Sessions.
func (r Records) Events(ctx context.Context, session string, after int64, limit int) ([]store.Event, error) {
	return events.list(ctx, r.db, "read the events of session "+session, " WHERE session = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3", session, after, rowLimit(limit))
}

// TrimEvents implements store.Sessions.
func (r Records) TrimEvents(ctx context.Context, session string, upTo int64) error {
	_, err := r.exec(ctx, Op{"trim the events of session " + session, Repeat}, "DELETE FROM events WHERE session = ?1 AND seq <= ?2", session, upTo)
	return err
}

// rowLimit returns the limit of a query for n, where 0 means all.
func rowLimit(n int) int64 {
	if n <= 0 {
		return math.MaxInt64
	}
	return int64(n)
}
