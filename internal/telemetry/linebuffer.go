package telemetry

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	flushAfter   = 50 * time.Millisecond // the longest that a line waits
	flushBytes   = 32 << 10              // or until so much has gathered
	stallTimeout = time.Second           // the longest that the program waits for a write
	maxStalled   = 256 << 10             // bytes kept while the output accepts nothing
)

// LineBuffer gathers the lines of a busy log, so that many go out with one
// write. A line that comes alone is written at once; those that follow it
// within flushAfter are written together at the end of that time. Flush writes
// what has gathered: the logger calls it behind every warning and error, and
// the program when it ends. It is safe for concurrent use, and a nil
// *LineBuffer has nothing to flush.
//
// An output that accepts nothing, such as a pipe that its reader ignores, does
// not block the program: after stallTimeout the program no longer waits for the
// write. Lines that follow are kept up to maxStalled bytes; further ones are
// dropped and counted.
type LineBuffer struct {
	out     io.Writer
	dropped atomic.Int64 // lines

	mu       sync.Mutex
	lines    []byte
	spare    []byte        // the memory of the last write
	appended int64         // bytes, in all
	written  int64         // of these
	writing  chan struct{} // closed when the current write ends; nil if there is none
	stalled  bool          // the current write has taken longer than stallTimeout
	err      error         // of the last write
	last     time.Time     // of the last write
	timer    *time.Timer   // writes what has gathered; nil before the first use
	waiting  bool          // for the timer
	direct   bool          // every line is written at once
}

// NewLineBuffer gathers lines before out.
func NewLineBuffer(out io.Writer) *LineBuffer { return &LineBuffer{out: out} }

// Write takes whole lines.
func (b *LineBuffer) Write(lines []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stalled && len(b.lines)+len(lines) > maxStalled {
		b.dropped.Add(int64(bytes.Count(lines, []byte("\n"))))
		return len(lines), nil
	}
	b.lines = append(b.lines, lines...)
	b.appended += int64(len(lines))
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
// that may be ended from outside at any moment. It waits for a stalled output
// once more.
func (b *LineBuffer) Unbuffer() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.direct, b.stalled = true, false
	return b.flush()
}

// takeDropped returns how many lines were dropped since the last call. It returns
// 0 until the output accepts lines again.
func (b *LineBuffer) takeDropped() int64 {
	if b.dropped.Load() == 0 {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.stalled {
		return 0
	}
	return b.dropped.Swap(0)
}

// flush writes what has gathered, and waits for it unless the output is
// stalled. b.mu is held, and released while waiting.
func (b *LineBuffer) flush() (err error) {
	if b.waiting {
		b.waiting = false
		b.timer.Stop()
	}
	b.last = time.Now()
	for upTo := b.appended; b.written < upTo && !b.stalled; {
		if b.writing == nil {
			b.write()
		}
		b.await(b.writing)
		err = b.err
	}
	return err
}

// write begins to write what has gathered. b.mu is held.
func (b *LineBuffer) write() {
	lines, upTo, done := b.lines, b.appended, make(chan struct{})
	b.lines, b.spare, b.writing = b.spare, nil, done
	go func() {
		begun := time.Now()
		_, err := b.out.Write(lines)
		slow := time.Since(begun) >= stallTimeout
		b.mu.Lock()
		defer b.mu.Unlock()
		b.err, b.written, b.writing = err, upTo, nil
		if cap(lines) <= 2*flushBytes { // otherwise one line was very long
			b.spare = lines[:0]
		}
		close(done)
		if b.stalled && len(b.lines) > 0 { // no flush will write them
			b.write()
		}
		b.stalled = b.stalled && b.writing != nil && slow // the next write may be slow, too
	}()
}

// await waits for a write, but not longer than stallTimeout. b.mu is held, and
// released while waiting.
func (b *LineBuffer) await(done chan struct{}) {
	b.mu.Unlock()
	timer := time.NewTimer(stallTimeout)
	select {
	case <-done:
	case <-timer.C:
	}
	timer.Stop()
	b.mu.Lock()
	if b.writing == done {
		b.stalled = true
	}
}
