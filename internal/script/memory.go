package script

import (
	"sync/atomic"

	"github.com/tetratelabs/wazero/experimental"
)

// memoryPool bounds the memory of all programs together.
type memoryPool struct {
	limit int64
	used  atomic.Int64
}

// take reserves n bytes, and reports whether there were so many.
func (p *memoryPool) take(n int64) bool {
	if p.used.Add(n) > p.limit {
		p.used.Add(-n)
		return false
	}
	return true
}

// linearMemory is the memory of one instance. Growth beyond the limit of the
// run that it serves ends the run.
type linearMemory struct {
	pool   *memoryPool
	first  uint64 // capacity to begin with
	run    *run
	limit  uint64
	buffer []byte
}

// serve makes the limit that of a run.
func (m *linearMemory) serve(r *run) {
	if m.run = r; r != nil {
		m.limit = uint64(r.limits.Memory)
	}
}

// Allocate implements experimental.MemoryAllocator.
func (m *linearMemory) Allocate(uint64, uint64) experimental.LinearMemory { return m }

// Reallocate implements experimental.LinearMemory. Capacity doubles, so that
// growth in small steps is not quadratic.
func (m *linearMemory) Reallocate(size uint64) []byte {
	if size > m.limit {
		m.run.cancel(m.run.limits.memoryError())
		return nil
	}
	if have := uint64(cap(m.buffer)); size > have {
		want := min(max(size, m.first, 2*have), m.limit)
		if !m.pool.take(int64(want - have)) {
			m.run.cancel(allMemoryError())
			return nil
		}
		next := make([]byte, size, want)
		copy(next, m.buffer)
		m.buffer = next
	}
	m.buffer = m.buffer[:size]
	return m.buffer
}

func allMemoryError() *Error {
	return limitError(MemoryLimit, "all scripts together need more than %d MB of memory; try again when others have ended", totalMemory>>20)
}

// Free implements experimental.LinearMemory.
func (m *linearMemory) Free() {
	m.pool.used.Add(-int64(cap(m.buffer)))
	m.buffer = nil
}
