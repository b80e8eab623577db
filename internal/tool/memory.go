package tool

import "sync"

const (
	minPooled = 64 << 10 // smaller results are not worth pooling
	maxPooled = 1 << 20
)

// ResultMemory lends pooled memory for the bytes of one large result. It is
// provided by a face that writes the result, retains nothing of it and then
// returns the memory to the pool. Code that retains bytes of the result must
// copy them or call Keep.
//
// A nil ResultMemory lends nothing. The methods are not safe for concurrent
// use.
type ResultMemory struct {
	lent *[]byte
	kept bool
}

// resultPool contains memory that is not in use.
var resultPool sync.Pool

// Get returns an empty slice with capacity for n bytes. At most one slice comes
// from the pool; all others are allocated.
func (m *ResultMemory) Get(n int) []byte {
	if m == nil || m.lent != nil || m.kept || n < minPooled || n > maxPooled {
		return make([]byte, 0, n)
	}
	b, _ := resultPool.Get().(*[]byte)
	if b == nil || cap(*b) < n {
		b = new(make([]byte, 0, (n+minPooled-1)/minPooled*minPooled))
	}
	m.lent = b
	return (*b)[:0]
}

// Lent reports whether the result may be in memory that will be reused.
func (m *ResultMemory) Lent() bool { return m != nil && m.lent != nil && !m.kept }

// Keep leaves the lent memory to the garbage collector instead of the pool.
func (m *ResultMemory) Keep() {
	if m != nil {
		m.kept = true
	}
}

// Return puts the memory back into the pool, unless Keep was called. The bytes
// must no longer be used.
func (m *ResultMemory) Return() {
	if !m.Lent() {
		return
	}
	b := m.lent
	m.kept = true
	if overwrite {
		for whole, i := (*b)[:cap(*b)], 0; i < len(whole); i++ {
			whole[i] = '#'
		}
	}
	resultPool.Put(b)
}
