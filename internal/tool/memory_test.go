package tool

import "testing"

func TestResultMemory(t *testing.T) {
	const size = 100 << 10
	for name, tt := range map[string]struct {
		use  func(*ResultMemory)
		lent bool
	}{
		"a large result":             {func(m *ResultMemory) { m.Get(size) }, true},
		"nothing read":               {func(*ResultMemory) {}, false},
		"a small result":             {func(m *ResultMemory) { m.Get(1 << 10) }, false},
		"a result that is too large": {func(m *ResultMemory) { m.Get(maxPooled + 1) }, false},
		"a result that is kept":      {func(m *ResultMemory) { m.Get(size); m.Keep() }, false},
		"kept before it is read":     {func(m *ResultMemory) { m.Keep(); m.Get(size) }, false},
		"returned":                   {func(m *ResultMemory) { m.Get(size); m.Return() }, false},
		"read after the return":      {func(m *ResultMemory) { m.Get(size); m.Return(); m.Get(size) }, false},
	} {
		var m ResultMemory
		if tt.use(&m); m.Lent() != tt.lent {
			t.Errorf("%s: lent = %v", name, m.Lent())
		}
	}
}

// TestResultMemoryIsLentOnce: two results of one call, such as that of a retry,
// do not share memory.
func TestResultMemoryIsLentOnce(t *testing.T) {
	var m ResultMemory
	first, second := m.Get(100 << 10)[:1], m.Get(100 << 10)[:1]
	first[0], second[0] = 'a', 'b'
	if first[0] != 'a' {
		t.Error("the second result is where the first one is")
	}
}

func TestNoResultMemory(t *testing.T) {
	var none *ResultMemory
	if b := none.Get(100 << 10); len(b) != 0 || cap(b) < 100<<10 {
		t.Errorf("%d of %d bytes", len(b), cap(b))
	}
	none.Keep()
	none.Return()
}
