package sqlite

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"slices"
	"sync"

	"github.com/klauspost/compress/s2"

	"junctor/internal/store"
)

// withText returns those of the blocks whose records may have the text. To
// find a text is to decompress and read all there is, so that it is done on
// all processors.
func (t *snapshot) withText(b *blockReader, blocks []extent, q store.CallQuery) ([]extent, error) {
	text := []byte(foldText(q.Text))
	type body struct {
		i      int
		packed []byte
	}
	found := make([]bool, len(blocks))
	bodies := make(chan body)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			var plain []byte
			for next := range bodies {
				var err error
				plain, err = s2.Decode(plain[:cap(plain)], next.packed)
				// A damaged block is reported by whoever reads it.
				found[next.i] = err != nil || bytes.Contains(fold(plain), text)
			}
		})
	}
	err := func() error {
		defer close(bodies)
		for i, e := range blocks {
			if err := b.open(e); err != nil {
				return err
			}
			if !b.matchGroups(q) {
				continue
			}
			if err := t.part("body", e.seq, func(raw []byte) error {
				bodies <- body{i, slices.Clone(raw)}
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	}()
	wg.Wait()
	var out []extent
	for i, ok := range found {
		if ok {
			out = append(out, blocks[i])
		}
	}
	return out, err
}

// foldText returns s with ASCII letters in lower case.
func foldText(s string) string { return string(fold([]byte(s))) }

// fold changes ASCII letters to lower case, in place.
func fold(b []byte) []byte {
	low := b
	for len(low) >= 8 {
		// Eight bytes at once. Bytes above 127 stay: their high bit is taken
		// out of the comparison and put into its result.
		w := binary.LittleEndian.Uint64(low)
		seven := w & 0x7f7f7f7f7f7f7f7f
		from := seven + 0x3f3f3f3f3f3f3f3f   // bit 7: 'A' or above
		beyond := seven + 0x2525252525252525 // bit 7: above 'Z'
		upper := from &^ beyond &^ w & 0x8080808080808080
		binary.LittleEndian.PutUint64(low, w|upper>>2)
		low = low[8:]
	}
	for i, c := range low {
		if 'A' <= c && c <= 'Z' {
			low[i] = c | 0x20
		}
	}
	return b
}
