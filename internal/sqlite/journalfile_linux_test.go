package sqlite

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"junctor/internal/store"
	"junctor/internal/store/storetest"
)

// fill appends large records, numbered from n, until the journal has started
// another file, and moves all of them. It returns the next number.
func fill(t *testing.T, s *Store, n int) int {
	t.Helper()
	for size := 0; size <= maxJournal; size += 128 << 10 {
		if err := s.Append(context.Background(), bigCall(n, 128<<10)); err != nil {
			t.Fatal(err)
		}
		n++
	}
	if err := s.flushOwn(); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestJournalFileIsUsedAgain checks that files whose records are in blocks are
// reused, and that neither other processes nor the next one read old records in
// them.
func TestJournalFileIsUsedAgain(t *testing.T) {
	cfg := store.Config{Path: filepath.Join(t.TempDir(), "junctor.db")}
	s, other := openAt(t, cfg), openAt(t, cfg)
	n := 0
	for range 4 {
		n = fill(t, s, n)
		appendCalls(t, s, n)
		n++
		if last, err := other.LastSeq(t.Context()); err != nil || last != int64(n) {
			t.Fatalf("another process reads %d records, %v; want %d", last, err, n)
		}
	}
	names, size := journalsOf(t, s)
	if len(names) > 2 || size > 3*maxJournal {
		t.Errorf("the journals are %q with %d bytes, want two files", names, size)
	}
	current := s.journal.files[len(s.journal.files)-1]
	if current.salt == 0 || saltOf(current.name()) != current.salt || current.mapped == nil {
		t.Errorf("the file %s is not one that was used before", current.name())
	}
	appendCalls(t, s, n) // only in the journal
	n++
	die(t, s)
	var log lockedBuffer
	next, err := Open(t.Context(), cfg, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	calls, err := next.Calls(t.Context(), store.CallQuery{Limit: store.MaxLimit, Brief: true})
	if err != nil || len(calls) != n || calls[n-1].ID != fmt.Sprintf("req-%d", n-1) {
		t.Errorf("%d records, %v; want %d", len(calls), err, n)
	}
	if strings.Contains(log.String(), "torn") {
		t.Errorf("the empty part of a file counts as torn:\n%s", log.String())
	}
	if names, _ := journalsOf(t, next); len(names) != 0 {
		t.Errorf("journals %q are left", names)
	}
}

// TestOldRecordsOfJournalFile checks that old records that a system crash left
// in a reused file are not read.
func TestOldRecordsOfJournalFile(t *testing.T) {
	cfg := store.Config{Path: filepath.Join(t.TempDir(), "junctor.db")}
	s := openAt(t, cfg)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	var old, young []byte
	for i := range 3 {
		c := storetest.Call(i)
		old = append(old, encodeRecord(nil, &c)...)
		if i == 0 {
			young = append(young, old...)
		}
	}
	addSalt(old, 0x1234)
	addSalt(young, 0x5678)
	copy(old, young) // the first page was written, the others were not
	if err := os.WriteFile(cfg.Path+journalMark+"0-A"+saltMark+"00005678", old, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := ids(t, openAt(t, cfg)); got != "0" {
		t.Errorf("recovered %q, want the first record alone", got)
	}
	for name, want := range map[string]uint32{
		"x-calls-0-A-s00005678": 0x5678, "x-calls-0-A": 0, "x-s00005678-calls-0-A": 0, "x-s0000567g": 0, "": 0,
	} {
		if got := saltOf(name); got != want {
			t.Errorf("salt of %q = %x, want %x", name, got, want)
		}
	}
}

// TestMappedJournalErrors checks that a page that the system cannot provide
// fails the record, not the process, and that later records go into another
// file. A record that was being copied when the process died is reported.
func TestMappedJournalErrors(t *testing.T) {
	cfg := store.Config{Path: filepath.Join(t.TempDir(), "junctor.db")}
	s := openAt(t, cfg)
	if err := s.Append(t.Context(), bigCall(1, mapAfter)); err != nil {
		t.Fatal(err)
	}
	appendCalls(t, s, 2)
	f := s.journal.files[0]
	if f.mapped == nil || ids(t, s) != "1 2" {
		t.Fatalf("mapped %d bytes, records %q", len(f.mapped), ids(t, s))
	}
	if err := f.Truncate(0); err != nil {
		t.Fatal(err)
	}
	if err := s.Append(t.Context(), storetest.Call(3)); err == nil {
		t.Error("a record that was not written counts as one")
	}
	appendCalls(t, s, 4)
	if got := ids(t, s); got != "1 2 4" {
		t.Errorf("after the error: %q", got)
	}
	if err := s.Append(t.Context(), bigCall(5, mapAfter)); err != nil {
		t.Fatal(err)
	}
	appendCalls(t, s, 6)
	c := storetest.Call(7)
	half := encodeRecord(nil, &c)
	half = half[:len(half)-1]
	f = s.journal.files[len(s.journal.files)-1]
	if f.mapped == nil {
		t.Fatal("the file is not mapped")
	}
	copy(f.mapped[f.size:], half)
	die(t, s)
	var log lockedBuffer
	next, err := Open(t.Context(), cfg, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if got := ids(t, next); got != "1 2 4 5 6" {
		t.Errorf("the next has %q", got)
	}
	if want := fmt.Sprintf("torn_bytes=%d", len(half)); !strings.Contains(log.String(), want) {
		t.Errorf("the log does not say %s:\n%s", want, log.String())
	}
}
