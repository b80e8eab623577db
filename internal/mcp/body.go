package mcp

import (
	"errors"
	"io"
	"sync"

	"junctor/internal/tool"
)

const (
	// trustedLength is how much of an announced length is allocated before
	// the bytes have come.
	trustedLength = 1 << 20

	scratchSize    = 32 << 10 // of a new scratch buffer
	maxKeptScratch = 1 << 20  // the largest that is kept for the next use
)

// scratches are buffers in which something of unknown length is gathered
// before one copy of the right size is made.
var scratches = sync.Pool{New: func() any { return &scratch{make([]byte, 0, scratchSize)} }}

type scratch struct{ b []byte }

func newScratch() *scratch { return scratches.Get().(*scratch) }

// release gives the buffer back; nothing may refer to its bytes afterwards.
func (s *scratch) release() {
	if cap(s.b) <= maxKeptScratch {
		s.b = s.b[:0]
		scratches.Put(s)
	}
}

// ReadAll reads r to its end and returns bytes that belong to the caller, in
// memory that may be nil. length is what was announced, negative when nothing
// was: with it the bytes are read into the place where they stay, and without it
// they are gathered in a pooled buffer and copied once. The caller limits r.
func ReadAll(r io.Reader, length int64, memory *tool.ResultMemory) ([]byte, error) {
	if length >= 0 && length <= trustedLength {
		return appendAll(memory.Get(int(length)+1), r) // one more, so that the end needs no growing
	}
	s := newScratch()
	defer s.release()
	var err error
	if s.b, err = appendAll(s.b, r); err != nil {
		return nil, err
	}
	if cap(s.b) > maxKeptScratch { // it is not used again
		return s.b, nil
	}
	return append(memory.Get(len(s.b)), s.b...), nil
}

// appendAll appends what r holds until its end.
func appendAll(b []byte, r io.Reader) ([]byte, error) {
	for {
		if len(b) == cap(b) {
			b = append(b, make([]byte, max(cap(b), 512))...)[:len(b)]
		}
		n, err := r.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return b, err
		}
	}
}
