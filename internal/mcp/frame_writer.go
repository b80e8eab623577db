package mcp

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"sync"
)

// frameWriter writes messages to a byte stream. It is safe for concurrent use.
type frameWriter struct {
	mu      sync.Mutex
	w       io.Writer
	framing Framing
	buf     []byte
}

// newFrameWriter writes messages to w.
func newFrameWriter(w io.Writer, framing Framing) *frameWriter {
	return &frameWriter{w: w, framing: framing}
}

// setFraming changes the framing of later messages to the one that the Reader
// detected.
func (w *frameWriter) setFraming(f Framing) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.framing = f
}

// maxKeptBuffer is the size of the largest buffer that a frameWriter keeps for
// reuse.
const maxKeptBuffer = 64 << 10

// writeMessages writes all messages with one write of the underlying stream.
func (w *frameWriter) writeMessages(messages ...*Message) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.buf[:0]
	for _, m := range messages {
		if w.framing == FramingHeaders {
			b = appendWithHeader(b, m)
		} else {
			b = append(AppendMessage(b, m), '\n')
		}
	}
	w.keep(b)
	return w.write(b)
}

// tryWriter is a stream that can write a part of the data without blocking.
type tryWriter interface {
	TryWrite([]byte) (int, error)
}

// try writes a message as far as possible without blocking. begun reports
// whether any part was written. The rest, which belongs to the caller, must be
// written with finish before anything else.
func (w *frameWriter) try(to tryWriter, m *Message) (begun bool, rest []byte, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	b := w.buf[:0]
	if w.framing == FramingHeaders {
		b = appendWithHeader(b, m)
	} else {
		b = append(AppendMessage(b, m), '\n')
	}
	w.keep(b)
	n, err := to.TryWrite(b)
	if err != nil || n == 0 {
		return false, nil, err
	}
	if n < len(b) {
		rest = bytes.Clone(b[n:])
	}
	return true, rest, nil
}

// finish writes the rest of a message.
func (w *frameWriter) finish(rest []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.write(rest)
}

// appendWithHeader appends a Content-Length header and a message. The length is
// known only after encoding, so the message is moved if the header does not
// have the reserved size.
func appendWithHeader(b []byte, m *Message) []byte {
	const prefix, room = "Content-Length: ", 4
	b = append(b, prefix...)
	b = append(b, "0000\r\n\r\n"...)
	start := len(b)
	b = AppendMessage(b, m)
	var digits [20]byte
	n := strconv.AppendInt(digits[:0], int64(len(b)-start), 10)
	at := start - len("0000\r\n\r\n")
	return slices.Replace(b, at, at+room, n...)
}

func (w *frameWriter) keep(b []byte) {
	if cap(b) <= maxKeptBuffer {
		w.buf = b
	}
}

func (w *frameWriter) write(b []byte) error {
	n, err := w.w.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}
