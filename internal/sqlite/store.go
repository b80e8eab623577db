package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	driver "modernc.org/sqlite"

	"junctor/internal/store"
	"junctor/internal/store/sqlstore"
	"junctor/internal/telemetry"
)

// Settings of the database. The caches are small because the operating system
// caches the file anyway.
const (
	busyTimeout   = 10 * time.Second // another process may be writing
	writerCache   = 1024             // KiB
	readerCache   = 256              // KiB, for each connection
	maxReaders    = 4
	walLimit      = 4 << 20                // bytes to which the write-ahead log is truncated
	pollInterval  = 500 * time.Millisecond // for writes of other processes
	sweepInterval = time.Minute            // for maintenance
	startRetries  = 20
)

// The ends of the names of SQLite's files beside the database.
const (
	walMark = "-wal" // the write-ahead log
	shmMark = "-shm" // its index, in shared memory
)

// Store is a store in one SQLite file. Use Open to create one.
type Store struct {
	store.Hub
	sqlstore.Records

	path      string
	retention store.Retention
	log       *slog.Logger
	now       func() time.Time
	write     *writer
	read      *sql.DB
	poll      time.Duration
	sweep     time.Duration

	journal *journal
	failure writeFailure // of writes to the journal
	serveOn bool         // calls are served even if their records cannot be written
	lost    atomic.Int64 // number of records not written for that reason
	owners  leaseOwners

	database database

	flushing sync.Mutex       // held while records are moved into blocks
	blocks   blockWriter      // guarded by flushing
	chunk    []byte           // guarded by flushing
	others   map[string]int64 // bytes of other processes' journals that are in blocks
	joined   int64            // no small blocks before this number; only maintain uses it
}

var _ store.Store = (*Store)(nil)

// Open opens the file at cfg.Path and migrates its tables. It creates the file
// (mode 0600) and its folder if they do not exist, but not beside the
// write-ahead log or a journal of a database that is missing. The errors explain
// what to do about a file that is locked, damaged, read-only or of a newer
// Junctor.
func Open(ctx context.Context, cfg store.Config, log *slog.Logger) (*Store, error) {
	s := &Store{
		path: cfg.Path, retention: cfg.Retention, log: log.With(telemetry.KeyComponent, "store"),
		now: time.Now, poll: pollInterval, sweep: sweepInterval, others: map[string]int64{},
		serveOn: cfg.WhenAway == store.FailOpen,
	}
	s.database = database{s, &sync.Map{}}
	s.Records = sqlstore.New(s.database)
	if err := s.open(ctx, cfg.Fsync); err != nil {
		return nil, s.explain("open the store", err)
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, fsync bool) error {
	if s.path == "" {
		return errors.New("store.path is empty")
	}
	fresh, err := prepareFile(s.path)
	if err != nil {
		return err
	}
	sync := "NORMAL"
	if fsync {
		sync = "FULL"
	}
	pragmas := []string{"journal_mode(WAL)", "synchronous(" + sync + ")", "foreign_keys(1)",
		fmt.Sprintf("cache_size(-%d)", writerCache), fmt.Sprintf("journal_size_limit(%d)", walLimit)}
	if fresh {
		// auto_vacuum allows freed pages to be returned later. It can only be
		// set on an empty file, and on any other would wait for the current
		// writer. Pages are large because most reads and writes are of blocks.
		pragmas = append([]string{"page_size(16384)", "auto_vacuum(2)"}, pragmas...)
	}
	wdb, err := connect(s.path, 1, pragmas...)
	if err != nil {
		return err
	}
	if err := migrate(ctx, wdb); err != nil {
		return errors.Join(err, wdb.Close())
	}
	if s.read, err = connect(s.path, maxReaders, "query_only(1)", fmt.Sprintf("cache_size(-%d)", readerCache)); err != nil {
		return errors.Join(err, wdb.Close())
	}
	if s.write, err = newWriter(ctx, wdb); err != nil {
		return errors.Join(err, s.read.Close(), wdb.Close())
	}
	s.owners.files = map[string]*os.File{}
	if _, err := s.endDeadLeases(ctx); err != nil { // they still expire
		s.log.DebugContext(ctx, "cannot end the leases of an earlier process", "err", err)
	}
	s.failure.probe = func() error { return probe(s.path) }
	s.journal = newJournal(s.path, fsync, s.flushOwn)
	if err := s.convertCalls(ctx); err != nil { // Run retries
		s.log.WarnContext(ctx, "some records of an earlier version are not in the call log yet", "err", s.explain("convert the call log", err))
	}
	if err := s.recoverJournals(ctx); err != nil { // Run retries
		s.log.WarnContext(ctx, "some records of an earlier process are not in the call log yet", "err", s.explain("recover a journal", err))
	}
	return nil
}

// prepareFile creates the file before SQLite does, so that other users can never
// read it, and reports whether it is empty. An existing file is not opened:
// closing it would release the locks that this process may hold on it.
func prepareFile(path string) (fresh bool, err error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		if err := checkLeftovers(path); err != nil {
			return false, err
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return false, err
		}
		f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if errors.Is(err, fs.ErrExist) {
			return false, nil // another process was faster
		}
		if err != nil {
			return false, err
		}
		return true, f.Close()
	case err != nil:
		return false, err
	case info.IsDir():
		return false, fmt.Errorf("%s is a folder; store.path must name a file", path)
	case info.Mode().Perm()&0o077 != 0 && runtime.GOOS != "windows":
		// The file may contain the arguments and results of calls.
		if err := os.Chmod(path, info.Mode().Perm()&^0o077); err != nil {
			return false, fmt.Errorf("the store can be read by other users: %w", err)
		}
	}
	return info.Size() == 0, nil
}

// checkLeftovers returns an error if files of a database that does not exist
// contain records. A new database would take over its journals and delete its
// write-ahead log. A crash leaves no such files without their database, because
// it is created first. The index of the write-ahead log (-shm) and the files of
// leases contain no records.
func checkLeftovers(path string) error {
	names, err := filesOf(path, "-")
	if err != nil {
		return nil // the folder does not exist or cannot be listed
	}
	var found []string
	records := false
	for _, name := range names {
		mark := strings.TrimPrefix(name, filepath.Base(path))
		switch {
		case mark == walMark, strings.HasPrefix(mark, journalMark):
			records = true
		case mark != shmMark:
			continue
		}
		found = append(found, filepath.Join(filepath.Dir(path), name))
	}
	if !records {
		return nil
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return nil // another process has created it
	}
	return fmt.Errorf("the file does not exist, but other files of its store do, which may contain records that are in no other file: %s; if you moved %s, move it back; to begin a new store, move it and all of these files together into another folder, without renaming them",
		strings.Join(found, ", "), filepath.Base(path))
}

// Files names all files that a store at path may have, for messages. A process
// that was killed leaves the ones beside the database.
func Files(path string) string {
	return fmt.Sprintf("%[1]s and, if they exist, %[1]s%[2]s, %[1]s%[3]s and %[1]s%[4]s*", path, walMark, shmMark, journalMark)
}

// connect returns a pool of at most n connections to the file.
func connect(path string, n int, pragmas ...string) (*sql.DB, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	q := url.Values{"_txlock": {"immediate"}}
	q.Add("_pragma", fmt.Sprintf("busy_timeout(%d)", busyTimeout.Milliseconds()))
	for _, p := range pragmas {
		q.Add("_pragma", p)
	}
	slashed := filepath.ToSlash(abs)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a drive letter
	}
	u := url.URL{Scheme: "file", Path: slashed, RawQuery: q.Encode()}
	c, err := driver.NewConnector(u.String())
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(c)
	db.SetMaxOpenConns(n)
	db.SetMaxIdleConns(1)
	return db, nil
}

// Close waits for the writes in flight and closes the file.
func (s *Store) Close() error {
	return errors.Join(s.journal.close(), s.owners.close(), s.write.close(), s.read.Close())
}

// Announce wakes the watchers in this process. Other processes notice by polling
// that the file changed.
func (s *Store) Announce(topic string) { s.Wake(topic) }

// Run moves the records of calls into blocks, deletes those over the retention
// limits, and wakes watchers when another process wrote to the file, until ctx
// is done.
func (s *Store) Run(ctx context.Context) error {
	poll, sweep, flush := time.NewTicker(s.poll), time.NewTicker(s.sweep), time.NewTimer(0)
	defer poll.Stop()
	defer sweep.Stop()
	defer flush.Stop()
	var seen int64
	s.maintain(ctx)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-poll.C:
			if !s.Watched() {
				continue
			}
			if v, err := s.write.dataVersion(); err == nil && v != seen {
				seen = v
				s.WakeAll()
			}
		case <-sweep.C:
			s.maintain(ctx)
		case wait := <-s.journal.due:
			flush.Reset(wait)
		case <-flush.C:
			if err := s.flushOwn(); err != nil {
				s.log.WarnContext(ctx, "records of calls are still in the journal", "err", s.explain("move the records of calls", err))
				flush.Reset(flushRetry)
			}
		}
	}
}

// micros and moment convert times to and from their stored form, microseconds
// since 1970; 0 is the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

func moment(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return time.UnixMicro(us).UTC()
}

// text returns the column value of JSON: text, or NULL if raw is empty.
func text(raw []byte) any {
	if len(raw) == 0 {
		return nil
	}
	return string(raw)
}

// blob returns b, or an empty slice if b is nil, which would be stored as NULL.
func blob(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}
