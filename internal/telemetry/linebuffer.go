package telemetry

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

const (
	flushAfter   = 50 * time.Millisecond // maximum time that a line is buffered
	flushBytes   = 32 << 10              // size of the buffer at which it is flushed
	stallTimeout = time.Second           // maximum time that the program waits for a write
	maxStalled   = 256 << 10             // bytes buffered while the output is stalled
)

// LineBuffer buffers the lines of a busy log, so that many are written with one
// write. A single line is written immediately; lines that follow it within
// flushAfter are written together at the end of that time. Flush writes the
// buffered lines: the logger calls it after every warning and error, and the
// program before it exits. A LineBuffer is safe for concurrent use, and a nil
// *LineBuffer has nothing to flush.
//
// A stalled output, such as a pipe whose reader does not read, does not block
// the program: it waits for a write at most for stallTimeout. Later lines are
// buffered up to maxStalled bytes; further ones are dropped and counted.
type LineBuffer struct {
	out     io.Writer
	dropped atomic.Int64 // lines

	mu       sync.Mutex
	lines    []byte
	spare    []byte        // the buffer of the last write, for reuse
	appended int64         // total bytes accepted
	written  int64         // total bytes written
	writing  chan struct{} // closed when the current write returns; nil if there is none
	stalled  bool          // the current write has taken longer than stallTimeout
	err      error         // of the last write
	last     time.Time     // of the last flush
	timer    *time.Timer   // flushes; nil before the first use
	waiting  bool          // the timer is running
	direct   bool          // every line is written immediately
}

// NewLineBuffer returns a LineBuffer that writes to out.
func NewLineBuffer(out io.Writer) *LineBuffer { return &LineBuffer{out: out} }

// Write buffers or writes lines, which must be complete.
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
		b.timer = time.AfterFunc(flushAfter-since, func() { _ = b.Flush() }) // a failed log write cannot be logged
	} else {
		b.timer.Reset(flushAfter - since)
	}
	return len(lines), nil
}

// Flush writes the buffered lines.
func (b *LineBuffer) Flush() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.flush()
}

// Unbuffer flushes, and makes every later line be written immediately, for a
// program that may be killed at any moment. If the output is stalled it waits
// for it once more.
func (b *LineBuffer) Unbuffer() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.direct, b.stalled = true, false
	return b.flush()
}

// takeDropped returns and resets the number of dropped lines. It returns 0
// while the output is stalled.
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

// flush writes the buffered lines, and waits for that unless the output is
// stalled. The caller holds b.mu, which is released while waiting.
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

// write starts to write the buffered lines. The caller holds b.mu.
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
		if cap(lines) <= 2*flushBytes { // do not keep the memory of a very long line
			b.spare = lines[:0]
		}
		close(done)
		if b.stalled && len(b.lines) > 0 { // flush writes nothing while stalled
			b.write()
		}
		b.stalled = b.stalled && b.writing != nil && slow // the next write is probably slow, too
	}()
}

// await waits for a write for at most stallTimeout. The caller holds b.mu,
// which is released while waiting.
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
