package tool

import "sync"

const (
	minPooled = 64 << 10 // smaller results are not worth it
	maxPooled = 1 << 20
)

// ResultMemory holds the bytes of one large result and is used for other
// results once the response to the caller has been written. It comes from a face
// that writes a result and keeps nothing of it. On the way there whoever keeps
// bytes of the result copies them, or calls Keep.
//
// A nil ResultMemory lends nothing. The methods are not for concurrent use.
type ResultMemory struct {
	lent *[]byte
	kept bool
}

// resultPool has memory that no result uses.
var resultPool sync.Pool

// Get returns an empty slice with room for n bytes. What it lends is lent once.
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

// Lent reports whether the result may be in memory that is used again.
func (m *ResultMemory) Lent() bool { return m != nil && m.lent != nil && !m.kept }

// Keep leaves what was lent to the garbage collector.
func (m *ResultMemory) Keep() {
	if m != nil {
		m.kept = true
	}
}

// Return ends the loan: nothing may refer to the bytes any more.
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
