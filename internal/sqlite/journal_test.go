package sqlite

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"junctor/internal/store"
	"junctor/internal/store/storetest"
)

// die simulates a crash of the store's process: no records are moved, and the
// locks on the journal are released.
func die(t *testing.T, s *Store) {
	t.Helper()
	s.journal.group.Close()
	s.journal.files = append(s.journal.files, s.journal.spare...)
	for _, f := range s.journal.files {
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	s.journal.files, s.journal.spare, s.journal.backlog = nil, nil, 0
}

func appendCalls(t *testing.T, s *Store, calls ...int) {
	t.Helper()
	for _, n := range calls {
		if err := s.Append(context.Background(), storetest.Call(n)); err != nil {
			t.Fatal(err)
		}
	}
}

func ids(t *testing.T, s *Store) string {
	t.Helper()
	calls, err := s.Calls(context.Background(), store.CallQuery{Limit: store.MaxLimit})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range calls {
		out = append(out, strings.TrimPrefix(c.ID, "req-"))
	}
	return strings.Join(out, " ")
}

// journalsOf returns the journals beside the store and their total size.
func journalsOf(t *testing.T, s *Store) (names []string, size int64) {
	t.Helper()
	names, err := journals(s.path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if info, err := os.Stat(filepath.Join(filepath.Dir(s.path), name)); err == nil {
			size += info.Size()
		}
	}
	return names, size
}

func bigCall(n, size int) store.Call {
	c := storetest.Call(n)
	c.Result = json.RawMessage(`"` + strings.Repeat("x", size) + `"`)
	return c
}

// frame returns a journal record with the given fields.
func frame(fields string) []byte { return finish(append(make([]byte, recordHead), fields...)) }

// TestRecoverJournal checks that the records a dead process had not moved are
// moved once by the next process, and that a live process is not affected.
func TestRecoverJournal(t *testing.T) {
	cfg := store.Config{Path: filepath.Join(t.TempDir(), "junctor.db")}
	living, dead := openAt(t, cfg), openAt(t, cfg)
	appendCalls(t, dead, 2, 3)
	if got := ids(t, dead); got != "2 3" { // which moves them
		t.Errorf("the second has %q", got)
	}
	appendCalls(t, dead, 4, 5)
	die(t, dead)
	appendCalls(t, living, 1)
	next := openAt(t, cfg)
	if got := ids(t, next); got != "2 3 4 5 1" {
		t.Errorf("the next has %q", got)
	}
	if names, _ := journalsOf(t, next); len(names) != 1 {
		t.Errorf("the journals are %q, want that of the living one", names)
	}
	appendCalls(t, living, 6)
	if got := ids(t, living); got != "2 3 4 5 1 6" {
		t.Errorf("the living one has %q", got)
	}
	noted, err := next.journalNames(context.Background())
	if err != nil || len(noted) != 1 {
		t.Errorf("%q are noted, %v; want the living one's", noted, err)
	}
}

// TestRecoverLargeJournal checks that a large journal is recovered completely,
// including a record that is larger than one read.
func TestRecoverLargeJournal(t *testing.T) {
	cfg := store.Config{Path: filepath.Join(t.TempDir(), "junctor.db")}
	dead := openAt(t, cfg)
	lock(t, dead) // nothing can be moved
	const n = 600
	var size int
	for i := range n {
		c := bigCall(i, 15<<10)
		if i == n/2 {
			c = bigCall(i, 6<<20)
		}
		size += len(c.Result)
		if err := dead.Append(context.Background(), c); err != nil {
			t.Fatal(err)
		}
	}
	if _, have := journalsOf(t, dead); have < int64(size) {
		t.Fatalf("the journals have %d bytes, want %d", have, size)
	}
	die(t, dead)
	next := openAt(t, cfg)
	calls, err := next.Calls(context.Background(), store.CallQuery{Limit: store.MaxLimit})
	if err != nil || len(calls) != n || len(calls[n/2].Result) < 6<<20 {
		t.Fatalf("%d of %d records were recovered, %v", len(calls), n, err)
	}
	if names, _ := journalsOf(t, next); len(names) != 0 {
		t.Errorf("journals %q are left", names)
	}
}

// lock makes the store's own writer fail as if another program had locked the
// database, until the test ends or unlock is called.
func lock(t *testing.T, s *Store) (unlock func()) {
	t.Helper()
	set := func(pragma string) {
		if err := s.write.betweenTransactions(func(w *writer) error {
			_, err := w.conn.ExecContext(context.Background(), pragma)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	set("PRAGMA query_only = 1")
	return func() { set("PRAGMA query_only = 0") }
}

// TestReadJournalOfOtherProcess checks that a record acknowledged by one process
// is immediately visible to every other, and is moved once.
func TestReadJournalOfOtherProcess(t *testing.T) {
	cfg := store.Config{Path: filepath.Join(t.TempDir(), "junctor.db")}
	a, b := openAt(t, cfg), openAt(t, cfg)
	for i := range 20 {
		appendCalls(t, a, i)
		c, err := b.Call(context.Background(), fmt.Sprintf("req-%d", i))
		if err != nil || c.Seq != int64(i+1) {
			t.Fatalf("another process reads call %d as number %d, %v", i, c.Seq, err)
		}
		if n, err := a.LastSeq(context.Background()); err != nil || n != int64(i+1) {
			t.Fatalf("LastSeq = %d, %v; want %d", n, err, i+1)
		}
	}
}

// TestReadersAndWriters checks that each record is in the log once when several
// processes move records.
func TestReadersAndWriters(t *testing.T) {
	cfg := store.Config{Path: filepath.Join(t.TempDir(), "junctor.db")}
	handles := []*Store{openAt(t, cfg), openAt(t, cfg), openAt(t, cfg)}
	const writers, each = 6, 150
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			s := handles[w%len(handles)]
			for i := range each {
				c := bigCall(w*each+i, rand.IntN(60<<10)) // several files of the journal
				if err := s.Append(context.Background(), c); err != nil {
					t.Error(err)
				}
				if i%10 == w {
					if _, err := s.LastSeq(context.Background()); err != nil {
						t.Error(err)
					}
				}
				if i%50 == 0 && w < len(handles) { // one goroutine per store
					s.maintain(context.Background())
				}
			}
		})
	}
	wg.Wait()
	for _, s := range handles {
		calls, err := s.Calls(context.Background(), store.CallQuery{Limit: store.MaxLimit})
		seen := map[string]bool{}
		for _, c := range calls {
			seen[c.ID] = true
		}
		if err != nil || len(calls) != writers*each || len(seen) != writers*each {
			t.Errorf("%d records, %d different, %v; want %d", len(calls), len(seen), err, writers*each)
		}
	}
}

// TestTornJournal checks that a record that was being written when the process
// died is skipped without affecting others, and that its size is reported.
func TestTornJournal(t *testing.T) {
	cfg := store.Config{Path: filepath.Join(t.TempDir(), "junctor.db")}
	s := openAt(t, cfg)
	appendCalls(t, s, 1, 2)
	c := storetest.Call(3)
	half := encodeRecord(nil, &c)
	half = half[:len(half)-1]
	f := s.journal.files[0]
	if _, err := f.WriteAt(half, f.size); err != nil {
		t.Fatal(err)
	}
	die(t, s)
	// A file with other content has no records and is removed.
	if err := os.WriteFile(s.path+journalMark+"junk", []byte(strings.Repeat("junk", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	var log lockedBuffer
	next, err := Open(context.Background(), cfg, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	defer next.Close()
	if names, _ := journalsOf(t, next); ids(t, next) != "1 2" || len(names) != 0 {
		t.Errorf("the next has %q, and journals %q", ids(t, next), names)
	}
	for _, size := range []int{len(half), 400} {
		if want := fmt.Sprintf("torn_bytes=%d", size); !strings.Contains(log.String(), want) {
			t.Errorf("the log does not say %s:\n%s", want, log.String())
		}
	}
}

// TestUnknownRecordIsSkipped checks that a record of an unknown format is
// skipped and those around it are kept.
func TestUnknownRecordIsSkipped(t *testing.T) {
	s := openAt(t, store.Config{Path: filepath.Join(t.TempDir(), "junctor.db")})
	appendCalls(t, s, 1)
	if err := s.journal.append(context.Background(), frame("sof another version")); err != nil {
		t.Fatal(err)
	}
	appendCalls(t, s, 2)
	if got := ids(t, s); got != "1 2" {
		t.Errorf("kept: %q", got)
	}
}

// TestJournalIsBounded checks that the files do not grow under steady load, when
// records are moved continuously but never all of them.
func TestJournalIsBounded(t *testing.T) {
	s := openAt(t, store.Config{Path: filepath.Join(t.TempDir(), "junctor.db")})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	var n, most atomic.Int64
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 400 {
				if err := s.Append(ctx, bigCall(w*1000+i, 16<<10)); err != nil {
					t.Error(err)
					return
				}
				if n.Add(1)%50 == 0 {
					_, size := journalsOf(t, s)
					most.Store(max(most.Load(), size))
				}
			}
		})
	}
	wg.Wait()
	cancel()
	<-ended
	if limit := int64(softBacklog + 2*maxJournal); most.Load() > limit {
		t.Errorf("the journals had %d MiB while %d MiB came, want %d at most", most.Load()>>20, n.Load()*16>>10, limit>>20)
	}
	if last, err := s.LastSeq(context.Background()); err != nil || last != n.Load() {
		t.Errorf("%d of %d records, %v", last, n.Load(), err)
	}
}

// TestJournalOfLockedDatabase checks that records that cannot be moved are
// acknowledged without waiting up to a limit, and rejected beyond it.
func TestJournalOfLockedDatabase(t *testing.T) {
	s := openAt(t, store.Config{Path: filepath.Join(t.TempDir(), "junctor.db"), WhenAway: store.FailOpen})
	unlock := lock(t, s)
	ctx := context.Background()
	var kept int64
	var err error
	for err == nil && kept < 2*hardBacklog>>20 {
		if err = s.Append(ctx, bigCall(int(kept), 1<<20)); err == nil {
			kept++
		}
	}
	if _, size := journalsOf(t, s); err == nil || size > hardBacklog+1<<20 || size < softBacklog {
		t.Fatalf("the journals have %d MiB, %v; want a refusal at %d", size>>20, err, hardBacklog>>20)
	}
	if s.Lost() != 1 || s.Available(ctx) == nil {
		t.Errorf("%d records count as lost, and the store is available: %v", s.Lost(), s.Available(ctx))
	}
	unlock()
	if err := s.flushOwn(); err != nil {
		t.Fatal(err)
	}
	if n, err := s.LastSeq(ctx); err != nil || n != kept {
		t.Errorf("%d of %d records, %v", n, kept, err)
	}
}

// TestJournalErrors checks that a record that cannot be written is an error and
// leaves the others intact, and that one that cannot be moved yet survives a
// crash of the process.
func TestJournalErrors(t *testing.T) {
	cfg := store.Config{Path: filepath.Join(t.TempDir(), "junctor.db")}
	s := openAt(t, cfg)
	ctx := context.Background()
	appendCalls(t, s, 1)
	f := s.journal.files[0]
	good := f.File
	broken, err := os.Open(good.Name()) // read-only
	if err != nil {
		t.Fatal(err)
	}
	f.File = broken
	if err := s.Append(ctx, storetest.Call(2)); err == nil {
		t.Error("a record that was not written counts as one")
	}
	if s.Available(ctx) == nil || s.Lost() != 0 {
		t.Errorf("the store counts as available, with %d records lost; want none: the call is not answered", s.Lost())
	}
	s.failure.tried = s.failure.tried.Add(-probeInterval)
	if err := s.Available(ctx); err != nil {
		t.Errorf("the disk takes records again, and yet: %v", err)
	}
	f.File = good
	broken.Close()
	appendCalls(t, s, 3) // into another file: part of the second may be in the first

	lock(t, s)
	appendCalls(t, s, 4)
	if got := ids(t, s); got != "" {
		t.Errorf("%q are in a database that nobody may write to", got)
	}
	if err := s.journal.close(); err == nil {
		t.Error("nobody is told that records were left behind")
	}
	next := openAt(t, cfg)
	if got := ids(t, next); got != "1 3 4" {
		t.Errorf("the next has %q", got)
	}
}

// FuzzRecords checks that no content of a journal causes a panic, and that the
// records read from it survive a round trip through a block.
func FuzzRecords(f *testing.F) {
	c := storetest.Call(1)
	one := encodeRecord(nil, &c)
	f.Add(one[recordHead:])
	f.Add([]byte("s\x01ai\x02i\x02s\x02oks\x00s\x00s\x00s\x00s\x00s\x00s\x00s\x00s\x00i\x00s\x00s\x00nn"))
	f.Fuzz(func(t *testing.T, b []byte) {
		for range records(b, 0) {
		}
		var w blockWriter
		for j := range records(frame(string(b)), 0) {
			if j.err != nil {
				return
			}
			w.add(&j.record)
			made := w.take()
			var again blockWriter
			if err := again.addBlock(made.head, made.ids, made.body); err != nil {
				t.Fatal(err)
			}
			if copied := again.take(); !reflect.DeepEqual(made, copied) {
				t.Errorf("%v became %v", made, copied)
			}
		}
		var h blockHead
		_ = decodeHead(b, &h, true)
		_, _ = texts(string(b), 3)
	})
}
