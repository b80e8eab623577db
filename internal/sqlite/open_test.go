package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"junctor/internal/store"
	"junctor/internal/store/storetest"
)

func try(path string) error {
	s, err := Open(context.Background(), store.Config{Path: path}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	return s.Close()
}

func TestOpenErrors(t *testing.T) {
	dir := t.TempDir()
	garbage := filepath.Join(dir, "garbage.db")
	if err := os.WriteFile(garbage, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(dir, "damaged.db")
	if err := try(damaged); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(damaged)
	if err != nil {
		t.Fatal(err)
	}
	for i := 100; i < len(b); i++ {
		b[i] = 0xa5
	}
	if err := os.WriteFile(damaged, b, 0o600); err != nil {
		t.Fatal(err)
	}
	newer := filepath.Join(dir, "newer.db")
	if err := try(newer); err != nil {
		t.Fatal(err)
	}
	execSQL(t, newer, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (9999, 1)")
	inFile := filepath.Join(garbage, "under", "a-file.db")

	for name, tt := range map[string]struct{ path, says string }{
		"none":           {"", "store.path is empty"},
		"folder":         {dir, "is a folder"},
		"no database":    {garbage, "damaged or not a Junctor store"},
		"damaged":        {damaged, "damaged or not a Junctor store"},
		"newer":          {newer, "newer Junctor"},
		"under a file":   {inFile, "not a directory"},
		"name too large": {filepath.Join(dir, strings.Repeat("n", 300)), "file name too long"},
	} {
		t.Run(name, func(t *testing.T) {
			err := try(tt.path)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("Open(%q) = %v, want an error that says %q", tt.path, err, tt.says)
			}
		})
	}
}

// TestOpenWithoutDatabase checks that Open leaves the files of a database that
// was moved away unchanged. Files without records do not prevent a new database.
func TestOpenWithoutDatabase(t *testing.T) {
	const journal = journalMark + "0001-X"
	for name, tt := range map[string]struct {
		marks []string
		named []string // nil: the store is created
	}{
		"write-ahead log":       {[]string{walMark, shmMark}, []string{walMark, shmMark}},
		"journal":               {[]string{journal}, []string{journal}},
		"all files":             {[]string{walMark, shmMark, journal, ownerMark + "0001-X"}, []string{walMark, shmMark, journal}},
		"files without records": {[]string{shmMark, ownerMark + "0001-X"}, nil},
		"files of another":      {[]string{"-old", "-walrus", "2" + walMark, "2" + journal}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "junctor.db")
			for _, mark := range tt.marks {
				if err := os.WriteFile(path+mark, []byte("records"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			err := try(path)
			if tt.named == nil {
				if err != nil {
					t.Errorf("Open = %v, want a new store", err)
				}
				return
			}
			var files []string
			for _, mark := range tt.named {
				files = append(files, path+mark)
			}
			slices.Sort(files)
			if err == nil || !strings.Contains(err.Error(), strings.Join(files, ", ")+"; ") {
				t.Errorf("Open = %v, want an error that names %q", err, files)
			}
			if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a database was created: %v", err)
			}
			for _, mark := range tt.marks {
				if b, err := os.ReadFile(path + mark); string(b) != "records" {
					t.Errorf("%s is now %q, %v", mark, b, err)
				}
			}
		})
	}
}

// TestOpenAfterDeletedDatabase checks that a closed store leaves no files that
// prevent a new one.
func TestOpenAfterDeletedDatabase(t *testing.T) {
	path := filepath.Join(t.TempDir(), "junctor.db")
	s, err := Open(t.Context(), store.Config{Path: path}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Append(t.Context(), storetest.Call(1)), s.Close(), os.Remove(path), try(path)); err != nil {
		t.Error(err)
	}
}

// TestReadOnly checks the error for a file that cannot be written. File modes do
// not restrict the superuser, so a read-only connection simulates it.
func TestReadOnly(t *testing.T) {
	cfg := store.Config{Path: filepath.Join(t.TempDir(), "junctor.db")}
	s := openAt(t, cfg)
	if err := s.write.betweenTransactions(func(w *writer) error { return w.exec(context.Background(), "PRAGMA query_only = 1") }); err != nil {
		t.Fatal(err)
	}
	err := s.CreateSession(context.Background(), store.Session{ID: "x"})
	if err == nil || !strings.Contains(err.Error(), "cannot be written") {
		t.Errorf("writing to a read-only file = %v", err)
	}
	if os.Geteuid() != 0 && runtime.GOOS != "windows" {
		dir := filepath.Join(t.TempDir(), "closed")
		if err := os.Mkdir(dir, 0o500); err != nil {
			t.Fatal(err)
		}
		if err := try(filepath.Join(dir, "junctor.db")); err == nil || !strings.Contains(err.Error(), "writable for this user") {
			t.Errorf("Open in a read-only folder = %v", err)
		}
	}
}

func TestFileMode(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no mode bits")
	}
	path := filepath.Join(t.TempDir(), "new", "junctor.db")
	s := openAt(t, store.Config{Path: path})
	if err := s.Append(context.Background(), storetest.Call(1)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", filepath.Base(name), info.Mode().Perm())
		}
	}
	open := filepath.Join(t.TempDir(), "open.db")
	if err := os.WriteFile(open, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(open, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := try(open); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(open); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("an existing file has mode %v, want 0600", info.Mode().Perm())
	}
}

// TestOpenPathWithSpecialCharacters: special characters in a path are not
// parsed as options.
func TestOpenPathWithSpecialCharacters(t *testing.T) {
	for _, name := range []string{"with space", "per%20cent", "question?mode=ro", "hash#tag", "a&b=c;d", "ümläut"} {
		path := filepath.Join(t.TempDir(), name, "junctor.db")
		if err := try(path); err != nil {
			t.Errorf("Open(%q) = %v", name, err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%q: the file is elsewhere: %v", name, err)
		}
	}
}

// TestConcurrentOpen checks that when several processes open a new file
// simultaneously, one creates the tables.
func TestConcurrentOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "junctor.db")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := try(path); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestFsync(t *testing.T) {
	for fsync, want := range map[bool]int{false: 1, true: 2} {
		s := openAt(t, store.Config{Path: filepath.Join(t.TempDir(), "junctor.db"), Fsync: fsync})
		var got int
		if err := s.write.betweenTransactions(func(w *writer) error {
			return w.one(context.Background(), "PRAGMA synchronous", nil, &got)
		}); err != nil || got != want {
			t.Errorf("fsync %v: synchronous = %d, %v; want %d", fsync, got, err, want)
		}
	}
}

// TestLockedFileFailsWrites checks that writes wait for the lock of another
// program and then fail with an explanation. Calls are still recorded.
func TestLockedFileFailsWrites(t *testing.T) {
	s := openAt(t, store.Config{Path: filepath.Join(t.TempDir(), "junctor.db")})
	other := openAt(t, store.Config{Path: s.path})
	ctx := context.Background()
	if err := s.write.betweenTransactions(func(w *writer) error { return w.exec(ctx, "PRAGMA busy_timeout = 20") }); err != nil {
		t.Fatal(err)
	}
	if err := other.write.betweenTransactions(func(w *writer) error { return w.exec(ctx, "BEGIN IMMEDIATE") }); err != nil {
		t.Fatal(err)
	}
	err := s.CreateSession(ctx, store.Session{ID: "x"})
	if !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "locked by another program") {
		t.Errorf("writing to a locked file = %v", err)
	}
	if err := s.Append(ctx, storetest.Call(1)); err != nil {
		t.Errorf("recording a call beside a locked file: %v", err)
	}
	if calls, err := s.Calls(ctx, store.CallQuery{}); err != nil || len(calls) != 0 {
		t.Errorf("reading a locked file: %d calls, %v", len(calls), err)
	}
	if err := other.write.betweenTransactions(func(w *writer) error { return w.exec(ctx, "ROLLBACK") }); err != nil {
		t.Fatal(err)
	}
	if calls, err := s.Calls(ctx, store.CallQuery{}); err != nil || len(calls) != 1 {
		t.Errorf("when the lock is gone: %d calls, %v", len(calls), err)
	}
}

// TestBatchIsolation checks that a failed write does not affect others in the
// same commit.
func TestBatchIsolation(t *testing.T) {
	s := openAt(t, store.Config{Path: filepath.Join(t.TempDir(), "junctor.db")})
	ctx := context.Background()
	if err := s.CreateSession(ctx, store.Session{ID: "x"}); err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	started := make(chan struct{})
	first := make(chan error, 1)
	go func() {
		first <- s.write.submit(ctx, manyStatements, func(*writer) error {
			close(started)
			<-release
			panic("a bug")
		})
	}()
	<-started
	// These are queued and become one batch.
	type result struct {
		name string
		err  error
	}
	results := make(chan result, 8)
	canceled, cancel := context.WithCancel(ctx)
	for name, act := range map[string]func() error{
		"ok":       func() error { return s.AppendEvents(ctx, "x", store.Event{Seq: 7}) },
		"conflict": func() error { return s.AppendEvents(ctx, "x", store.Event{Seq: 1}, store.Event{Seq: 1}) },
		"missing":  func() error { return s.AppendMessages(ctx, "none", store.Message{Seq: 1}) },
		"ok too":   func() error { return s.AppendMessages(ctx, "x", store.Message{Seq: 1}) },
		"canceled": func() error { return s.AppendEvents(canceled, "x", store.Event{Seq: 8}) },
	} {
		go func() { results <- result{name, act()} }()
	}
	for s.write.group.Waiting() < 5 {
		runtime.Gosched()
	}
	cancel()
	if r := <-results; r.name != "canceled" || !errors.Is(r.err, context.Canceled) {
		t.Errorf("the first to return is %q with %v, want the one that gave up", r.name, r.err)
	}
	close(release)
	if err := <-first; err == nil || !strings.Contains(err.Error(), "panic: a bug") {
		t.Errorf("a write that panics = %v", err)
	}
	for range 4 {
		r := <-results
		var want error
		switch r.name {
		case "conflict":
			want = store.ErrConflict
		case "missing":
			want = store.ErrNotFound
		}
		if !errors.Is(r.err, want) {
			t.Errorf("%s: %v, want %v", r.name, r.err, want)
		}
	}
	if events, err := s.Events(ctx, "x", 0, 0); err != nil || len(events) != 1 || events[0].Seq != 7 {
		t.Errorf("the events are %v, %v; want the one that did not fail and was not given up", events, err)
	}
}

// TestCloseWaitsForAcceptedWrites checks that Close loses no acknowledged write.
func TestCloseWaitsForAcceptedWrites(t *testing.T) {
	path := filepath.Join(t.TempDir(), "junctor.db")
	s, err := Open(context.Background(), store.Config{Path: path}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	written := make(chan string, 1000)
	for w := range 8 {
		wg.Go(func() {
			for i := range 100 {
				c := storetest.Call(i)
				c.ID = fmt.Sprint(w, "-", i)
				if err := s.Append(context.Background(), c); err != nil {
					if !errors.Is(err, store.ErrClosed) {
						t.Error(err)
					}
					return
				}
				written <- c.ID
			}
		})
	}
	first := <-written
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	close(written)
	again := openAt(t, store.Config{Path: path})
	for id, ok := first, true; ok; id, ok = <-written {
		if _, err := again.Call(context.Background(), id); err != nil {
			t.Errorf("call %s was accepted and is not there: %v", id, err)
		}
	}
}

func execSQL(t *testing.T, path, query string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(query); err != nil {
		t.Fatal(err)
	}
}

// soon is a timeout that is long enough for any machine.
const soon = time.Minute

// TestCheck checks that Check finds damage in a page that Open does not read.
func TestCheck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "junctor.db")
	check := func() error {
		s, err := Open(t.Context(), store.Config{Path: path}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		return s.Check(t.Context())
	}
	if err := check(); err != nil {
		t.Fatalf("a new store: %v", err)
	}
	var page, size int64
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.QueryRow("SELECT rootpage FROM sqlite_schema WHERE name = 'messages'").Scan(&page), db.QueryRow("PRAGMA page_size").Scan(&size), db.Close()); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteAt([]byte(strings.Repeat("x", int(size))), (page-1)*size)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	if err := check(); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("with a broken page: %v", err)
	}
}
