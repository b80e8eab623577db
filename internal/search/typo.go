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

// correct returns the term that a misspelt word was probably meant to be: the
// nearest within one edit, or two for long words, preferring the same first
// letter and then the term with more tools. Words are compared in their written
// form and by their stems, because a misspelt word may have a different stem
// than the correct one.
func (s *snapshot) correct(word, stem string) (uint32, bool) {
	const minLength = 4
	if len(word) < minLength || len(word) > maxTokenBytes {
		return 0, false
	}
	limit := 1
	if len(word) > 6 {
		limit = 2
	}
	wordSet, stemSet := letters(word), letters(stem)
	best, bestCost, bestTools := uint32(0), 2*limit+2, 0
	for id, set := range s.letters {
		if set == 0 {
			continue
		}
		// An edit changes the set by at most two letters, a suffix by more. The
		// written forms are compared only if the letters of the stem nearly
		// match.
		d := limit + 1
		if bits.OnesCount32(stemSet^set) <= 2*limit {
			d = edits(stem, s.terms.terms[id], limit)
		}
		if bits.OnesCount32(set&^wordSet) <= limit {
			d = min(d, edits(word, s.terms.forms[id], limit))
		}
		if d > limit {
			continue
		}
		cost := 2 * d
		if s.terms.terms[id][0] != word[0] {
			cost++
		}
		tools := len(s.list(uint32(id)))
		if cost < bestCost || cost == bestCost && tools > bestTools {
			best, bestCost, bestTools = uint32(id), cost, tools
		}
	}
	return best, bestTools > 0
}

// edits returns the number of insertions, deletions, substitutions and
// transpositions that turn a into b. It stops counting above the limit.
func edits(a, b string, limit int) int {
	if len(a) > len(b)+limit || len(b) > len(a)+limit {
		return limit + 1
	}
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	if len(a) == 0 || len(b) == 0 {
		return len(a) + len(b)
	}
	var rows [3][maxTokenBytes + 1]uint8
	before, above, row := &rows[0], &rows[1], &rows[2]
	for j := range min(len(b), limit) + 1 {
		above[j] = uint8(j)
	}
	far := uint8(limit + 1)
	for i := 1; i <= len(a); i++ {
		// Only cells near the diagonal can be within the limit.
		from, to := max(1, i-limit), min(len(b), i+limit)
		row[from-1] = far
		if from == 1 {
			row[0] = uint8(i)
		}
		if to == i+limit {
			above[to] = far
		}
		rowMin := row[from-1]
		for j := from; j <= to; j++ {
			change := uint8(1)
			if a[i-1] == b[j-1] {
				change = 0
			}
			d := min(above[j]+1, row[j-1]+1, above[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, before[j-2]+1)
			}
			row[j] = d
			rowMin = min(rowMin, d)
		}
		if rowMin >= far {
			return limit + 1
		}
		before, above, row = above, row, before
	}
	return int(min(far, above[len(b)]))
}
