package sqlite

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"junctor/internal/filelock"
	"junctor/internal/store"
)

// How records wait for the tables.
const (
	settleAfter = 100 * time.Millisecond // a record is in the tables this long after it came
	settleRetry = time.Second            // and when that failed
	enough      = 256 << 10              // bytes that are moved at once
	maxWaiting  = 4 << 20                // bytes that wait at most
	maxJournal  = 1 << 20                // bytes in a file before the next is begun
	keepBuffer  = 2 * enough             // bytes of memory worth keeping for the next
	journalMark = "-calls-"              // between the database's name and the journal's own
)

// journal holds the records of calls on their way into the tables. A record
// that is in the journal's file survives the process: to put it there is one
// system call, shared by those who come together, where a commit is a dozen
// and a page for the table and each index. The tables get it a moment later,
// with many others, in one commit that also notes how far the journal is in
// them. Whoever opens the store next takes in what a dead process left.
type journal struct {
	base  string // the database's file
	fsync bool
	move  func(name string, from int64, records []byte) error // into the tables
	group *store.Group[entry]
	due   chan time.Duration // when to move what waits

	moving sync.Mutex // held while records are moved

	mu      sync.Mutex
	file    *os.File // nil until a record comes
	size    int64    // bytes in the file that count
	waiting []byte   // the last of them: those that are not in the tables
	spare   []byte   // the buffer that waiting had before
	batch   []byte   // of the group's leader
}

// entry is one encoded record on its way into the file.
type entry struct {
	record []byte
	err    error
}

func newJournal(base string, fsync bool, move func(name string, from int64, records []byte) error) *journal {
	j := &journal{base: base, fsync: fsync, move: move, due: make(chan time.Duration, 1)}
	j.group = store.NewGroup(maxBatch, j.write)
	return j
}

// append returns when the record is in the journal.
func (j *journal) append(ctx context.Context, record []byte) error {
	e := entry{record: record}
	if err := j.group.Do(ctx, &e); err != nil {
		return err
	}
	return e.err
}

// write puts the records of all who came together into the file.
func (j *journal) write(entries []*entry) {
	j.batch = j.batch[:0]
	for _, e := range entries {
		j.batch = append(j.batch, e.record...)
	}
	if err := j.put(j.batch); err != nil {
		for _, e := range entries {
			e.err = err
		}
	}
	if cap(j.batch) > keepBuffer {
		j.batch = nil
	}
}

func (j *journal) put(records []byte) error {
	j.mu.Lock()
	full := len(j.waiting)+len(records) > maxWaiting
	j.mu.Unlock()
	if full {
		if err := j.settle(); err != nil {
			return err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		f, err := createJournal(j.base)
		if err != nil {
			return fmt.Errorf("begin a journal: %w", err)
		}
		j.file, j.size = f, 0
	}
	// At a place of its own choice: what a failed write left behind is
	// written over by the next.
	if _, err := j.file.WriteAt(records, j.size); err != nil {
		return err
	}
	if j.fsync {
		if err := j.file.Sync(); err != nil {
			return err
		}
	}
	before := len(j.waiting)
	j.size += int64(len(records))
	j.waiting = append(j.waiting, records...)
	switch after := len(j.waiting); {
	case before == 0:
		j.tell(settleAfter)
	case before < enough && after >= enough:
		j.tell(0)
	}
	return nil
}

// tell says when to move what waits; whoever has been told before and has not
// listened yet will come anyway.
func (j *journal) tell(wait time.Duration) {
	select {
	case j.due <- wait:
	default:
	}
}

// settle moves what waits into the tables.
func (j *journal) settle() error {
	j.moving.Lock()
	defer j.moving.Unlock()
	j.mu.Lock()
	records, from := j.waiting, j.size-int64(len(j.waiting))
	if len(records) == 0 {
		j.mu.Unlock()
		return nil
	}
	name := filepath.Base(j.file.Name())
	j.waiting, j.spare = j.spare[:0], nil
	j.mu.Unlock()

	err := j.move(name, from, records)

	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.waiting = append(records, j.waiting...)
		return err
	}
	if cap(records) <= keepBuffer {
		j.spare = records
	}
	if len(j.waiting) == 0 && j.size >= maxJournal {
		return j.drop()
	}
	return nil
}

// drop ends the file, all of which is in the tables.
func (j *journal) drop() error {
	if j.file == nil {
		return nil
	}
	f := j.file
	j.file = nil
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// close refuses new records and moves the last ones. What cannot be moved
// stays in the file, for the next who opens the store.
func (j *journal) close() error {
	j.group.Close()
	err := j.settle()
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		f := j.file
		j.file, j.waiting = nil, nil
		return errors.Join(err, f.Close())
	}
	return j.drop()
}

// createJournal makes a file that is marked as in use.
func createJournal(base string) (*os.File, error) {
	for {
		f, err := os.OpenFile(base+journalMark+rand.Text(), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if err != nil {
			return nil, err
		}
		if err = filelock.Hold(f); err == nil && sameFile(f) {
			return f, nil
		}
		gone := errors.Join(f.Close(), ignoreAbsent(os.Remove(f.Name())))
		if errors.Is(err, filelock.ErrHeld) {
			err = nil // a neighbour who is looking for what the dead left behind was faster
		}
		if err = errors.Join(err, gone); err != nil {
			return nil, err
		}
	}
}

// sameFile reports whether the open file is still the one of its name.
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
func journals(base string) (names []string, err error) {
	files, err := os.ReadDir(filepath.Dir(base))
	for _, f := range files {
		if strings.HasPrefix(f.Name(), filepath.Base(base)+journalMark) {
			names = append(names, f.Name())
		}
	}
	return names, err
}
