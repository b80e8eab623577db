package sqlite

import (
	"bytes"
	"database/sql"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/klauspost/compress/s2"

	"junctor/internal/store"
)

// withText returns the blocks that may contain the text of the query. It
// decompresses and searches, on all processors, the blocks whose filters do not
// exclude the text.
func (t *snapshot) withText(b *blockReader, blocks []extent, q store.CallQuery) ([]extent, error) {
	text := newNeedle(q.Text)
	type body struct {
		i      int
		packed *[]byte
	}
	buffers := sync.Pool{New: func() any { return new([]byte) }}
	found := make([]bool, len(blocks))
	bodies := make(chan body, runtime.GOMAXPROCS(0)) // buffered, so that reading continues while all workers decompress
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			var plain []byte
			for next := range bodies {
				var err error
				plain, err = s2.Decode(plain[:cap(plain)], *next.packed)
				buffers.Put(next.packed)
				// A damaged block is reported when it is read.
				found[next.i] = err != nil || text.in(plain)
			}
		})
	}
	give := func(i int, raw []byte) {
		packed := buffers.Get().(*[]byte)
		*packed = append((*packed)[:0], raw...)
		bodies <- body{i, packed}
	}
	err := func() error {
		defer close(bodies)
		if !byName(q) {
			return t.bodies(blocks, q.Oldest(), func(i int, head, ids, raw []byte) {
				// The names and ids of a block are not compressed.
				if found[i] = text.in(head) || text.in(ids); !found[i] {
					give(i, raw)
				}
			})
		}
		for i, e := range blocks {
			if e.excluded {
				continue
			}
			if err := b.open(e); err != nil {
				return err
			}
			if !b.matchGroups(q) {
				continue
			}
			if slices.Contains(b.groupText, true) {
				found[i] = true
				continue
			}
			ids, err := b.rawIDs()
			if err != nil {
				return err
			}
			if text.in([]byte(ids)) {
				found[i] = true
				continue
			}
			if err := t.part("body", e.seq, func(raw []byte) error { give(i, raw); return nil }); err != nil {
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

// bodies calls use with the parts of the blocks that are not excluded. It makes
// one query for each run of adjacent blocks, because one query for each block
// would cost as much as reading it.
func (t *snapshot) bodies(blocks []extent, oldest bool, use func(i int, head, ids, body []byte)) error {
	for i := 0; i < len(blocks); i++ {
		first := i
		for i < len(blocks) && !blocks[i].excluded {
			i++
		}
		if first == i {
			continue
		}
		if err := t.run(blocks[first:i], oldest, func(i int, head, ids, body []byte) { use(first+i, head, ids, body) }); err != nil {
			return err
		}
	}
	return nil
}

func (t *snapshot) run(blocks []extent, oldest bool, use func(i int, head, ids, body []byte)) error {
	order, low, high := " DESC", blocks[len(blocks)-1].seq, blocks[0].seq
	if oldest {
		order, low, high = "", high, low
	}
	rows, err := t.conn.QueryContext(t.ctx, "SELECT seq, head, ids, body FROM call_blocks WHERE seq BETWEEN ? AND ? ORDER BY seq"+order, low, high)
	if err != nil {
		return err
	}
	defer rows.Close()
	for i := 0; i < len(blocks) && rows.Next(); {
		var seq int64
		var head, ids, body sql.RawBytes
		if err := rows.Scan(&seq, &head, &ids, &body); err != nil {
			return err
		}
		if seq == blocks[i].seq { // other blocks are outside the time range of the query
			use(i, head, ids, body)
			i++
		}
	}
	return rows.Err()
}

// byName reports whether the query has a condition on the fields of a group.
func byName(q store.CallQuery) bool {
	return q.Server != "" || q.Tool != "" || q.Caller != "" || q.Face != "" || q.Status != "" || q.Tools != nil
}

// needle is a search text; the case of ASCII letters is ignored.
type needle struct {
	text string // in lower case
	rare int    // index of its rarest byte
}

// frequent are the most frequent bytes of JSON texts, the most frequent first.
const frequent = " etaoinsr\"lhdcum,pf:gywb.v-k0_1/2"

func newNeedle(text string) needle {
	n := needle{text: strings.Map(lowerRune, text)}
	most := -1
	for i := range len(n.text) {
		rank := strings.IndexByte(frequent, n.text[i])
		if rank < 0 {
			rank = len(frequent)
		}
		if rank > most {
			n.rare, most = i, rank
		}
	}
	return n
}

func lowerRune(r rune) rune {
	if r < 0x80 {
		return rune(lower(byte(r)))
	}
	return r
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// in reports whether b contains the text. For speed it compares only at the
// occurrences of the rarest byte.
func (n needle) in(b []byte) bool {
	if n.text == "" {
		return true
	}
	c := n.text[n.rare]
	if n.at(b, c) {
		return true
	}
	return 'a' <= c && c <= 'z' && n.at(b, c-0x20)
}

func (n needle) at(b []byte, c byte) bool {
	for at := 0; ; at++ {
		i := bytes.IndexByte(b[at:], c)
		if i < 0 {
			return false
		}
		at += i
		if from := at - n.rare; from >= 0 && from+len(n.text) <= len(b) && n.equal(b[from:]) {
			return true
		}
	}
}

func (n needle) equal(b []byte) bool {
	for i := range len(n.text) {
		if lower(b[i]) != n.text[i] {
			return false
		}
	}
	return true
}
