package search

import "hash/maphash"

// dictionary numbers terms. It is an open hash without the terms themselves,
// so that a copy for readers costs four bytes a slot; the terms are a slice
// that only ever grows at its end, which both copies share.
type dictionary struct {
	seed  maphash.Seed
	slots []uint32 // 1 + the term's number; the length is a power of two
	terms []string
}

func newDictionary() *dictionary {
	return &dictionary{seed: maphash.MakeSeed(), slots: make([]uint32, 1024)}
}

// find returns the number of a term.
func (d *dictionary) find(term string) (uint32, bool) {
	mask := uint64(len(d.slots) - 1)
	for h := maphash.String(d.seed, term); ; h++ {
		s := d.slots[h&mask]
		if s == 0 {
			return 0, false
		}
		if d.terms[s-1] == term {
			return s - 1, true
		}
	}
}

// add returns the number of a term, new or known.
func (d *dictionary) add(term string) uint32 {
	if id, ok := d.find(term); ok {
		return id
	}
	if 2*len(d.terms) >= len(d.slots) {
		d.slots = make([]uint32, 2*len(d.slots))
		for i, t := range d.terms {
			d.place(t, uint32(i))
		}
	}
	id := uint32(len(d.terms))
	d.terms = append(d.terms, term)
	d.place(term, id)
	return id
}

func (d *dictionary) place(term string, id uint32) {
	mask := uint64(len(d.slots) - 1)
	h := maphash.String(d.seed, term)
	for d.slots[h&mask] != 0 {
		h++
	}
	d.slots[h&mask] = id + 1
}

// frozen returns a copy that later calls of add leave alone.
func (d *dictionary) frozen() *dictionary {
	c := &dictionary{seed: d.seed, slots: make([]uint32, len(d.slots)), terms: d.terms[:len(d.terms):len(d.terms)]}
	copy(c.slots, d.slots)
	return c
}
