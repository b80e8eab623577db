package sqlite

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"junctor/internal/filelock"
	"junctor/internal/store"
)

// Limits of the journal.
const (
	flushAfter    = 100 * time.Millisecond // delay before an appended record is moved into a block
	flushRetry    = time.Second            // delay before a failed flush is retried
	flushBytes    = 512 << 10              // bytes that are moved at a time
	softBacklog   = 8 << 20                // backlog above which callers help to move records
	hardBacklog   = 64 << 20               // maximum backlog
	maxJournal    = 4 << 20                // bytes in a file before the next one is created
	maxSpare      = 3                      // files that are kept for reuse
	maxKeptBuffer = 1 << 20                // maximum size of a buffer that is kept for reuse
	journalMark   = "-calls-"              // between the database's name and the journal's own
)

// journal is the log of this process's records that are not in blocks yet. See
// the package comment.
type journal struct {
	base  string // the database's file
	fsync bool
	flush func() error // moves records into blocks
	group *store.Group[journalEntry]
	due   chan time.Duration // when to flush

	mu      sync.Mutex
	files   []*journalFile // oldest first; records are written to the last unless it is sealed
	spare   []*journalFile // empty, mapped files for reuse
	backlog int64          // bytes that are not in blocks
	failed  time.Time      // time of the last flush if it failed, otherwise zero
	batch   []byte         // of the group's leader
}

// journalEntry is an encoded record that is being written to the file.
type journalEntry struct {
	record []byte
	err    error
}

func newJournal(base string, fsync bool, flush func() error) *journal {
	j := &journal{base: base, fsync: fsync, flush: flush, due: make(chan time.Duration, 1)}
	j.group = store.NewGroup(maxBatch, j.write)
	return j
}

// append writes a record to the journal.
func (j *journal) append(ctx context.Context, record []byte) error {
	e := journalEntry{record: record}
	if err := j.group.Do(ctx, &e); err != nil {
		return err
	}
	return e.err
}

// write writes the records of a batch with one write to the file.
func (j *journal) write(entries []*journalEntry) {
	records := entries[0].record
	if len(entries) > 1 {
		j.batch = j.batch[:0]
		for _, e := range entries {
			j.batch = append(j.batch, e.record...)
		}
		records = j.batch
	}
	if err := j.put(records); err != nil {
		for _, e := range entries {
			e.err = err
		}
	}
	if cap(j.batch) > maxKeptBuffer {
		j.batch = nil
	}
}

func (j *journal) put(records []byte) error {
	if err := j.makeRoom(int64(len(records))); err != nil {
		return err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	f, err := j.current()
	if err == nil && f.isFull(len(records)) {
		f.sealed = true
		f, err = j.current()
	}
	if err != nil {
		return err
	}
	if !j.fsync && f.size >= mapAfter {
		f.mapOnce()
	}
	err = f.write(records)
	if err == nil && j.fsync {
		err = f.Sync()
	}
	if err != nil {
		// Another process may have read the part that was written. It must not
		// be overwritten, so nothing more is written to this file.
		if f.sealed, f.failed = true, true; f.size == 0 {
			j.files = j.files[:len(j.files)-1]
			err = errors.Join(err, f.remove())
		}
		return err
	}
	f.size += int64(len(records))
	before := j.backlog
	j.backlog += int64(len(records))
	switch {
	case before == 0:
		j.wake(flushAfter)
	case before < flushBytes && j.backlog >= flushBytes:
		j.wake(0)
	}
	return nil
}

// makeRoom applies back pressure: the caller flushes records if these arrive
// faster than they are moved, and gets an error if the backlog is full. While
// flushes fail, it tries one only if the backlog is full, at most once per
// flushRetry.
func (j *journal) makeRoom(size int64) error {
	j.mu.Lock()
	backlog, failed := j.backlog, j.failed
	j.mu.Unlock()
	if backlog == 0 || backlog+size <= softBacklog {
		return nil
	}
	if failed.IsZero() || backlog+size > hardBacklog && time.Since(failed) > flushRetry {
		if err := j.flush(); err == nil {
			return nil
		}
	}
	if backlog+size > hardBacklog {
		return fmt.Errorf("%d MiB of records are waiting to be moved into the database: %w", backlog>>20, store.ErrUnavailable)
	}
	return nil
}

// current returns the file that records are written to.
func (j *journal) current() (*journalFile, error) {
	if n := len(j.files); n > 0 && !j.files[n-1].sealed {
		return j.files[n-1], nil
	}
	var f *journalFile
	if n := len(j.spare); n > 0 {
		f, j.spare = j.spare[n-1], j.spare[:n-1]
		if err := f.rename(journalName(j.base+journalMark) + saltMark + newSalt()); err != nil {
			_ = f.remove() // if that fails, the next sweep removes it
			f = nil
		}
	}
	if f == nil {
		file, err := createLocked(j.base + journalMark)
		if err != nil {
			return nil, fmt.Errorf("begin a journal: %w", err)
		}
		f = &journalFile{File: file}
	}
	j.files = append(j.files, f)
	return f, nil
}

// wake schedules a flush. If one is already scheduled, it does nothing.
func (j *journal) wake(wait time.Duration) {
	select {
	case j.due <- wait:
	default:
	}
}

// next returns a file with records to move and the offset where they end, or
// nil. It removes or reuses sealed files whose records are all in blocks.
func (j *journal) next() (f *journalFile, end int64, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.files) > 0 {
		f = j.files[0]
		f.sealed = f.sealed || f.size >= maxJournal
		if f.done < f.size {
			return f, f.size, nil
		}
		if !f.sealed {
			return nil, 0, nil
		}
		if j.files = j.files[1:]; len(j.spare) < maxSpare && f.clear() {
			j.spare = append(j.spare, f)
		} else {
			err = errors.Join(err, f.remove())
		}
	}
	return nil, 0, err
}

// moved records that a file is in blocks up to the offset done.
func (j *journal) moved(f *journalFile, done int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.backlog -= min(done, f.size) - min(f.done, f.size)
	f.done = done
}

// flushed records the outcome of a flush.
func (j *journal) flushed(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.failed = (time.Time{}); err != nil {
		j.failed = time.Now()
	}
}

// owns reports whether a journal belongs to this process.
func (j *journal) owns(name string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	named := func(f *journalFile) bool { return f.name() == name }
	return slices.ContainsFunc(j.files, named) || slices.ContainsFunc(j.spare, named)
}

// close rejects new records and moves the remaining ones. Those that cannot be
// moved stay in the file, for the next process that opens the store.
func (j *journal) close() error {
	j.group.Close()
	err := j.flush()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, f := range j.spare {
		err = errors.Join(err, f.remove())
	}
	j.spare = nil
	for _, f := range j.files {
		if f.done < f.size {
			err = errors.Join(err, f.Close())
		} else {
			err = errors.Join(err, f.remove())
		}
	}
	j.files = nil
	return err
}

// journalName returns a new name. Names sort in the order of creation.
func journalName(prefix string) string {
	return fmt.Sprintf("%s%016x-%s", prefix, time.Now().UnixNano(), rand.Text()[:10])
}

// createLocked creates a file whose name begins with prefix. The file is locked
// until it is closed or this process exits.
func createLocked(prefix string) (*os.File, error) {
	for {
		f, err := os.OpenFile(journalName(prefix), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		if err = filelock.Hold(f); err == nil && sameFile(f) {
			return f, nil
		}
		gone := errors.Join(f.Close(), ignoreAbsent(os.Remove(f.Name())))
		if errors.Is(err, filelock.ErrHeld) {
			err = nil // another process locked it, looking for files of dead processes
		}
		if err = errors.Join(err, gone); err != nil {
			return nil, err
		}
	}
}

// sameFile reports whether the name of the open file still refers to it.
func sameFile(f *os.File) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(f.Name())
	return err == nil && os.SameFile(open, named)
}

func ignoreAbsent(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// journals returns the names of all journals beside a database.
func journals(base string) ([]string, error) { return filesOf(base, journalMark) }

// filesOf returns the names of the files beside a database that begin with its
// name and mark.
func filesOf(base, mark string) (names []string, err error) {
	files, err := os.ReadDir(filepath.Dir(base))
	for _, f := range files {
		if strings.HasPrefix(f.Name(), filepath.Base(base)+mark) {
			names = append(names, f.Name())
		}
	}
	return names, err
}
