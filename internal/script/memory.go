package script

import (
	"sync"

	"github.com/tetratelabs/wazero/experimental"
)

// memoryPool bounds the memory of all programs together and divides it among
// their owners.
type memoryPool struct {
	limit int64

	mu     sync.Mutex
	used   int64
	owners map[string]int64 // bytes used by each
}

// take reserves n bytes for an owner. The programs of one owner never use more
// than what remains free for all others. Without an owner only the limit
// applies.
func (p *memoryPool) take(owner string, n int64) *Error {
	p.mu.Lock()
	defer p.mu.Unlock()
	left, own := p.limit-p.used-n, p.owners[owner]+n
	if left < 0 {
		return limitError(MemoryLimit, "all scripts together need more than %d MB of memory; try again when others have ended", p.limit>>20)
	}
	if owner == "" {
		p.used += n
		return nil
	}
	if own > left {
		return limitError(MemoryLimit, "the scripts of this caller need more than the %d MB of memory that they may use now; the rest is for other callers. Try again when scripts have ended", (p.owners[owner]+left+n)/2>>20)
	}
	if p.owners == nil {
		p.owners = map[string]int64{}
	}
	p.used, p.owners[owner] = p.used+n, own
	return nil
}

// release returns n bytes of an owner.
func (p *memoryPool) release(owner string, n int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= n
	if owner == "" {
		return
	}
	if p.owners[owner] -= n; p.owners[owner] <= 0 {
		delete(p.owners, owner)
	}
}

// linearMemory is the memory of one instance. Growth beyond the limit of the
// run that it serves ends the run.
type linearMemory struct {
	pool   *memoryPool
	first  uint64 // initial capacity
	run    *run
	owner  string // of the run that it serves, or served last
	limit  uint64
	buffer []byte
}

// serve sets the limit and the owner to those of a run.
func (m *linearMemory) serve(r *run) {
	if m.run = r; r != nil {
		m.limit, m.owner = uint64(r.limits.Memory), r.owner
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
		if err := m.pool.take(m.owner, int64(want-have)); err != nil {
			m.run.cancel(err)
			return nil
		}
		next := make([]byte, size, want)
		copy(next, m.buffer)
		m.buffer = next
	}
	m.buffer = m.buffer[:size]
	return m.buffer
}

// Free implements experimental.LinearMemory.
func (m *linearMemory) Free() {
	m.pool.release(m.owner, int64(cap(m.buffer)))
	m.buffer = nil
}
