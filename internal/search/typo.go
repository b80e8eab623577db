package search

import "math/bits"

// letters returns the set of a term's letters, one bit each.
func letters(term string) uint32 {
	var set uint32
	for i := range len(term) {
		if c := term[i] - 'a'; c < 26 {
			set |= 1 << c
		}
	}
	return set
}

// correct returns the term that a misspelt one was likely meant to be: the
// nearest within one edit, or two for long words, preferring the same first
// letter and then the term that more tools have.
func (s *snapshot) correct(term string) (uint32, bool) {
	const shortest = 4
	if len(term) < shortest || len(term) > maxTokenBytes {
		return 0, false
	}
	limit := 1
	if len(term) > 6 {
		limit = 2
	}
	set := letters(term)
	best, bestCost, bestTools := uint32(0), 2*limit+2, 0
	for id, other := range s.letters {
		// An edit adds or takes one letter, or swaps one for another.
		if other == 0 || bits.OnesCount32(set^other) > 2*limit {
			continue
		}
		t := s.terms.terms[id]
		if len(t) < shortest || len(t) > len(term)+limit || len(t) < len(term)-limit {
			continue
		}
		d := edits(term, t, limit)
		if d > limit {
			continue
		}
		cost := 2 * d
		if t[0] != term[0] {
			cost++
		}
		tools := len(s.list(uint32(id)))
		if cost < bestCost || cost == bestCost && tools > bestTools {
			best, bestCost, bestTools = uint32(id), cost, tools
		}
	}
	return best, bestTools > 0
}

// edits counts the insertions, deletions, changes and swaps of neighbours that
// turn a into b. Above the limit it stops counting.
func edits(a, b string, limit int) int {
	var rows [3][maxTokenBytes + 8]uint8
	before, above, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		above[j] = uint8(j)
	}
	for i := 1; i <= len(a); i++ {
		row[0] = uint8(i)
		least := row[0]
		for j := 1; j <= len(b); j++ {
			change := uint8(1)
			if a[i-1] == b[j-1] {
				change = 0
			}
			d := min(above[j]+1, row[j-1]+1, above[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, before[j-2]+1)
			}
			row[j] = d
			least = min(least, d)
		}
		if int(least) > limit {
			return limit + 1
		}
		before, above, row = above, row, before
	}
	return int(above[len(b)])
}
