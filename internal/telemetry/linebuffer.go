package telemetry

import (
	"io"
	"sync"
	"time"
)

const (
	flushAfter = 50 * time.Millisecond // the longest that a line waits
	flushBytes = 32 << 10              // or until so much has gathered
)

// LineBuffer gathers the lines of a busy log, so that many go out with one
// write. A line that comes alone is written at once; those that follow it
// within flushAfter are written together at the end of that time. Flush writes
// what has gathered: the logger calls it behind every warning and error, and
// the program when it ends. It is safe for concurrent use, and a nil
// *LineBuffer has nothing to flush.
type LineBuffer struct {
	out io.Writer

	mu      sync.Mutex
	lines   []byte
	last    time.Time   // of the last write
	timer   *time.Timer // writes what has gathered; nil before the first use
	waiting bool        // for the timer
	direct  bool        // every line is written at once
}

// NewLineBuffer gathers lines before out.
func NewLineBuffer(out io.Writer) *LineBuffer { return &LineBuffer{out: out} }

// Write takes whole lines.
func (b *LineBuffer) Write(lines []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, lines...)
	if b.direct || len(b.lines) >= flushBytes {
		return len(lines), b.flush()
	}
	if b.waiting {
		return len(lines), nil
	}
	since := time.Since(b.last)
	if since >= flushAfter {
		return len(lines), b.flush()
	}
	b.waiting = true
	if b.timer == nil {
		b.timer = time.AfterFunc(flushAfter-since, func() { _ = b.Flush() }) // a write error of the log cannot be logged
	} else {
		b.timer.Reset(flushAfter - since)
	}
	return len(lines), nil
}

// Flush writes what has gathered.
func (b *LineBuffer) Flush() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.flush()
}

// Unbuffer flushes, and has every later line written at once: for a program
// that may be ended from outside at any moment.
func (b *LineBuffer) Unbuffer() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.direct = true
	return b.flush()
}

// flush writes what has gathered. b.mu is held.
func (b *LineBuffer) flush() error {
	if b.waiting {
		b.waiting = false
		b.timer.Stop()
	}
	b.last = time.Now()
	if len(b.lines) == 0 {
		return nil
	}
	_, err := b.out.Write(b.lines)
	if b.lines = b.lines[:0]; cap(b.lines) > 2*flushBytes {
		b.lines = nil // one line was very long
	}
	return err
}
