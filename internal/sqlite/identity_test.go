package sqlite

import (
	"context"
	"io/fs"
	"path/filepath"
	"testing"

	"github.com/pressly/goose/v3"

	"junctor/internal/store"
)

// TestMigrateOwnersToIDs opens a store in which callers are identified by the
// names of their keys. Each conversation and record is assigned to the key that
// had the name when it was created; those without such a key are unchanged.
func TestMigrateOwnersToIDs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "junctor.db")
	db, err := connect(path, 1)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := fs.Sub(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, dir, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.UpTo(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{
		`INSERT INTO keys (id, name, hash, hint, admin, rate_calls, rate_per, created, expires, revoked, last_used) VALUES
			('K1', 'bob', x'01', '', 0, 0, 0, 100, 0, 200, 0),
			('K2', 'bob', x'02', '', 0, 0, 0, 300, 0, 0, 0)`,
		`INSERT INTO sessions (id, owner, title, model, created, updated, version) VALUES
			('old', 'key:bob', '', '', 150, 350, 1), ('new', 'key:bob', '', '', 310, 310, 1),
			('file', 'key:filed', '', '', 150, 150, 1), ('mine', 'local', '', '', 150, 150, 1)`,
		`INSERT INTO calls (id, time, duration, status, server, tool, method, face, caller, session, kind, trace_id, node, result_bytes, stages, error) VALUES
			('a', 150, 0, 'ok', '', '', '', '', 'key:bob', '', '', '', '', 0, '', ''),
			('b', 310, 0, 'ok', '', '', '', '', 'key:bob', '', '', '', '', 0, '', ''),
			('c', 310, 0, 'ok', '', '', '', '', 'local', '', '', '', '', 0, '', '')`,
		`INSERT INTO vals (space, name, data, version, updated, expires) VALUES ('chat-approvals', 'key:bob', x'5b5d', 1, 1, 0)`,
	} {
		if _, err := db.ExecContext(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	s := openAt(t, store.Config{Path: path})
	for id, want := range map[string]string{"old": "key:K1", "new": "key:K2", "file": "key:filed", "mine": "local"} {
		if got, err := s.Session(t.Context(), id); err != nil || got.Owner != want {
			t.Errorf("session %s belongs to %q, %v; want %q", id, got.Owner, err, want)
		}
	}
	for id, want := range map[string]string{"a": "key:K1", "b": "key:K2", "c": "local"} {
		if got, err := s.Call(t.Context(), id); err != nil || got.Caller != want {
			t.Errorf("call %s is by %q, %v; want %q", id, got.Caller, err, want)
		}
	}
	if v, err := s.Values(context.Background(), "chat-approvals"); err != nil || len(v) != 0 {
		t.Errorf("approvals = %v, %v; want none", v, err)
	}
}
