package mcp

import (
	"errors"
	"io"
	"sync"

	"junctor/internal/tool"
)

const (
	// trustedLength bounds the memory that is allocated for an announced
	// length before the bytes have been received.
	trustedLength = 1 << 20

	scratchSize    = 32 << 10 // of a new scratch buffer
	maxKeptScratch = 1 << 20  // the largest one that is kept for reuse
)

// scratches are buffers for reading data of unknown length before it is copied
// into memory of the right size.
var scratches = sync.Pool{New: func() any { return &scratch{make([]byte, 0, scratchSize)} }}

type scratch struct{ b []byte }

func newScratch() *scratch { return scratches.Get().(*scratch) }

// release returns the buffer to the pool; its bytes must not be used
// afterwards.
func (s *scratch) release() {
	if cap(s.b) <= maxKeptScratch {
		s.b = s.b[:0]
		scratches.Put(s)
	}
}

// ReadAll reads r to its end and returns bytes that belong to the caller. It
// allocates them from memory, which may be nil. length is the announced length,
// negative if unknown. If it is known and not too large, the bytes are read
// into their final place; otherwise they are read into a pooled buffer and
// copied once. The caller must limit r.
func ReadAll(r io.Reader, length int64, memory *tool.ResultMemory) ([]byte, error) {
	if length >= 0 && length <= trustedLength {
		return appendAll(memory.Get(int(length)+1), r) // one more, so that reading EOF does not grow the slice
	}
	s := newScratch()
	defer s.release()
	var err error
	if s.b, err = appendAll(s.b, r); err != nil {
		return nil, err
	}
	if cap(s.b) > maxKeptScratch { // it is not reused
		return s.b, nil
	}
	return append(memory.Get(len(s.b)), s.b...), nil
}

// appendAll appends the bytes of r until its end.
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
