package catalog

import (
	"slices"
	"strings"
)

const (
	// maxCompared bounds the names that are compared letter by letter; a
	// longer one is cut.
	maxCompared = 100

	// A name that is less like the wanted one than this is no help, nor is
	// one that is so much less like it than the best.
	leastLike = 0.6
	behind    = 0.3
)

// Nearest returns up to n of the names that look like want, the nearest
// first. A qualified name is compared whole and by its tool alone, because
// people misremember either part.
func Nearest(want string, names []string, n int) []string {
	type scored struct {
		name  string
		score float64
	}
	want = foldCase(want)
	_, wantTool, qualified := strings.Cut(want, ":")
	if !qualified {
		wantTool = want
	}
	var found []scored
	var m measure
	for _, name := range names {
		folded := foldCase(name)
		_, t, _ := strings.Cut(folded, ":")
		score := m.similarity(want, folded)
		if t != "" {
			score = max(score, m.similarity(wantTool, t)*0.95)
		}
		if score >= leastLike {
			found = append(found, scored{name, score})
		}
	}
	slices.SortStableFunc(found, func(a, b scored) int {
		switch {
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return strings.Compare(a.name, b.name)
	})
	var out []string
	for _, f := range found[:min(n, len(found))] {
		if f.score >= found[0].score-behind {
			out = append(out, f.name)
		}
	}
	return out
}

// foldCase makes names comparable that differ in case and in separators alone.
func foldCase(s string) string {
	s = strings.ToLower(s)
	if len(s) > maxCompared {
		s = s[:maxCompared]
	}
	return separators.Replace(s)
}

var separators = strings.NewReplacer("-", "_", ".", "_", "/", "_", " ", "_")

// measure compares strings. It is used for one wanted name and thousands of
// others, so it keeps its rows.
type measure struct{ before, prev, row [maxCompared + 1]int }

// similarity is 1 for equal strings and 0 for strings without a letter in
// common; a string that holds the other as words counts as near. What is less
// than leastLike is not distinguished.
func (m *measure) similarity(a, b string) float64 {
	if a == b {
		return 1
	}
	longer, shorter := max(len(a), len(b)), min(len(a), len(b))
	if longer == 0 || shorter == 0 {
		return 0
	}
	s := 0.0
	if 1-float64(lettersApart(a, b))/float64(longer) >= leastLike { // most are not, and need no closer look
		s = 1 - float64(m.distance(a, b))/float64(longer)
	}
	if shorter >= 3 && (holdsWords(a, b) || holdsWords(b, a)) {
		s = max(s, 0.6+0.3*float64(shorter)/float64(longer))
	}
	return s
}

// holdsWords reports whether part stands in s as whole words.
func holdsWords(s, part string) bool {
	return strings.Contains(s, part) &&
		strings.Contains("_"+strings.ReplaceAll(s, ":", "_")+"_", "_"+strings.ReplaceAll(part, ":", "_")+"_")
}

// lettersApart is how many letters one of the strings has that the other has
// not, in whatever order: their distance is at least that.
func lettersApart(a, b string) int {
	var count [256]int8 // names are no longer than maxCompared
	for i := range len(a) {
		count[a[i]]++
	}
	missing := 0
	for i := range len(b) {
		if count[b[i]]--; count[b[i]] < 0 {
			missing++
		}
	}
	return max(missing, missing+len(a)-len(b))
}

// distance is the edit distance of a and b in which a swap of neighbours
// counts as one.
func (m *measure) distance(a, b string) int {
	before, prev, row := m.before[:len(b)+1], m.prev[:len(b)+1], m.row[:len(b)+1]
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev, row = prev, row, before
	}
	return prev[len(b)]
}
