package sqlite

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"junctor/internal/store"
	"junctor/internal/store/storetest"
)

// dies ends a store as the end of its process would: nothing is moved, and
// the system lets go of the journal.
func dies(t *testing.T, s *Store) {
	t.Helper()
	s.journal.group.Close()
	if err := s.journal.file.Close(); err != nil {
		t.Fatal(err)
	}
	s.journal.file, s.journal.waiting = nil, nil
}

func record(t *testing.T, s *Store, calls ...int) {
	t.Helper()
	for _, n := range calls {
		if err := s.Append(context.Background(), storetest.Call(n)); err != nil {
			t.Fatal(err)
		}
	}
}

func ids(t *testing.T, s *Store) string {
	t.Helper()
	calls, err := s.Calls(context.Background(), store.CallQuery{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range calls {
		out = append(out, strings.TrimPrefix(c.ID, "req-"))
	}
	return strings.Join(out, " ")
}

func left(t *testing.T, s *Store) []string {
	t.Helper()
	names, err := journals(s.path)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestInherit: what a dead process had not moved is taken in by the next,
// once, whichever part of it was in the tables; what a living one has is its
// own.
func TestInherit(t *testing.T) {
	cfg := store.Config{Path: filepath.Join(t.TempDir(), "junctor.db")}
	living, dead := openAt(t, cfg), openAt(t, cfg)
	record(t, living, 1)
	record(t, dead, 2, 3)
	if got := ids(t, dead); got != "2 3" { // which moves them
		t.Errorf("the second has %q", got)
	}
	record(t, dead, 4, 5)
	dies(t, dead)
	next := openAt(t, cfg)
	if got := ids(t, next); got != "2 3 4 5" {
		t.Errorf("the next has %q", got)
	}
	if names := left(t, next); len(names) != 1 {
		t.Errorf("the journals are %q, want that of the living one", names)
	}
	if got := ids(t, living); got != "2 3 4 5 1" {
		t.Errorf("the living one has %q", got)
	}
	noted, err := next.notedJournals(context.Background())
	if err != nil || len(noted) != 1 {
		t.Errorf("%q are noted, %v; want the living one's", noted, err)
	}
}

// TestTornJournal: a record that was being written when the process ended is
// no record, and spoils none.
func TestTornJournal(t *testing.T) {
	cfg := store.Config{Path: filepath.Join(t.TempDir(), "junctor.db")}
	s := openAt(t, cfg)
	record(t, s, 1, 2)
	half, err := encodeRecord(callArgs(storetest.Call(3)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.journal.file.WriteAt(half[:len(half)-1], s.journal.size); err != nil {
		t.Fatal(err)
	}
	dies(t, s)
	// A file of another making is none of our business, and goes.
	if err := os.WriteFile(s.path+journalMark+"junk", []byte(strings.Repeat("junk", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	next := openAt(t, cfg)
	if got := ids(t, next); got != "1 2" || len(left(t, next)) != 0 {
		t.Errorf("the next has %q, and journals %q", got, left(t, next))
	}
}

// TestForeignRecord: a record with other columns is left out; those around it
// are kept.
func TestForeignRecord(t *testing.T) {
	s := openAt(t, store.Config{Path: filepath.Join(t.TempDir(), "junctor.db")})
	record(t, s, 1)
	foreign, err := encodeRecord([]any{"of another version", int64(1), nil})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.journal.append(context.Background(), foreign); err != nil {
		t.Fatal(err)
	}
	record(t, s, 2)
	if got := ids(t, s); got != "1 2" {
		t.Errorf("kept: %q", got)
	}
}

// TestJournalRotates: a file ends when it is large and all of it is in the
// tables, and what waits is bounded though nobody moves it.
func TestJournalRotates(t *testing.T) {
	s := openAt(t, store.Config{Path: filepath.Join(t.TempDir(), "junctor.db"), Fsync: true})
	c := storetest.Call(1)
	c.Result = json.RawMessage(`"` + strings.Repeat("x", 1<<20) + `"`)
	ctx := context.Background()
	for range 9 {
		if err := s.Append(ctx, c); err != nil {
			t.Fatal(err)
		}
		if n := len(s.journal.waiting); n > maxWaiting {
			t.Fatalf("%d bytes wait", n)
		}
	}
	if n, err := s.LastSeq(ctx); err != nil || n != 9 {
		t.Errorf("%d records, %v", n, err)
	}
	if names := left(t, s); len(names) != 0 {
		t.Errorf("journals %q are left though all is in the tables", names)
	}
	record(t, s, 2)
	s.tidy(ctx)
	if noted, err := s.notedJournals(ctx); err != nil || len(noted) != 1 {
		t.Errorf("%q are noted, %v; want the new one", noted, err)
	}
}

// TestJournalTrouble: a record that cannot be written is an error; one that
// cannot be moved yet waits, and survives the end of the process.
func TestJournalTrouble(t *testing.T) {
	cfg := store.Config{Path: filepath.Join(t.TempDir(), "junctor.db")}
	s := openAt(t, cfg)
	ctx := context.Background()
	record(t, s, 1)
	good := s.journal.file
	broken, err := os.Open(good.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer broken.Close()
	s.journal.file = broken // which may only be read
	if err := s.Append(ctx, storetest.Call(2)); err == nil {
		t.Error("a record that was not written counts as one")
	}
	s.journal.file = good
	record(t, s, 3)

	if err := s.write.outside(func(w *writer) error { return w.exec(ctx, "PRAGMA query_only = 1") }); err != nil {
		t.Fatal(err)
	}
	record(t, s, 4)
	if got := ids(t, s); got != "" {
		t.Errorf("%q are in tables that nobody may write to", got)
	}
	if err := s.journal.close(); err == nil {
		t.Error("nobody is told that records were left behind")
	}
	next := openAt(t, cfg)
	if got := ids(t, next); got != "1 3 4" {
		t.Errorf("the next has %q", got)
	}
}

// FuzzRows: whatever is in a journal, nothing panics, and what comes out goes
// in again.
func FuzzRows(f *testing.F) {
	one, err := encodeRecord(callArgs(storetest.Call(1)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(one)
	f.Add(append(append([]byte{}, one...), one[:20]...))
	f.Add([]byte{0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		for row := range rows(b) {
			again, err := encodeRecord(row)
			if err != nil {
				t.Fatal(err)
			}
			for same := range rows(again) {
				if !reflect.DeepEqual(row, same) {
					t.Errorf("%v became %v", row, same)
				}
			}
		}
		_, _ = decodeRow(b)
	})
}
