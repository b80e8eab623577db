package sqlite

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"time"

	"junctor/internal/store"
)

const (
	probeInterval = 500 * time.Millisecond // while records cannot be written
	probeBytes    = 256 << 10              // size of the probe file
)

// writeFailure is the state of writes to the journal. While they fail, calls can
// be refused before they are executed.
type writeFailure struct {
	probe func() error

	mu    sync.Mutex
	err   error // nil: records can be written
	tried time.Time
}

// note records the outcome of writing a record. It ignores the errors of a
// cancelled caller and of a closed store.
func (f *writeFailure) note(err error) {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, store.ErrClosed) {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err = err; err != nil {
		f.tried = time.Now()
	}
}

// check returns why records cannot be written, or nil if they can. After a
// failure it tests the disk at most once per probeInterval.
func (f *writeFailure) check() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil || time.Since(f.tried) < probeInterval {
		return f.err
	}
	f.err = f.probe()
	f.tried = time.Now()
	return f.err
}

// probe returns an error if a file of probeBytes cannot be written beside the
// database.
func probe(base string) error {
	f, err := os.CreateTemp(filepath.Dir(base), filepath.Base(base)+"-probe-*")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, probeBytes))
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// Available implements store.CallLog.
func (s *Store) Available(context.Context) error {
	return s.explain("record the call", s.failure.check())
}
