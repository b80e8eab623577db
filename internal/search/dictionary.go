package search

import (
	"hash/maphash"
	"slices"
)

// dictionary numbers terms. It is an open-addressing hash table without the
// terms themselves, so that a copy for readers costs four bytes per slot. The
// terms are in an append-only slice that all copies share.
type dictionary struct {
	seed  maphash.Seed
	slots []uint32 // 1 + the term's number; the length is a power of two
	terms []string
	forms []string // by term: the shortest word seen with that stem
}

func newDictionary() *dictionary {
	return &dictionary{seed: maphash.MakeSeed(), slots: make([]uint32, 1024)}
}

// find returns the number of a term and whether it is known.
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

// add returns the number of a term, and adds it if it is new. form is a word
// with that stem.
func (d *dictionary) add(term, form string) uint32 {
	if id, ok := d.find(term); ok {
		// The result must not depend on the order of insertion.
		if f := &d.forms[id]; len(form) < len(*f) || len(form) == len(*f) && form < *f {
			*f = form
		}
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
	d.forms = append(d.forms, form)
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

// frozen returns a copy that later calls of add do not change.
func (d *dictionary) frozen() *dictionary {
	n := len(d.terms)
	return &dictionary{seed: d.seed, slots: slices.Clone(d.slots), terms: d.terms[:n:n], forms: slices.Clone(d.forms)}
}
