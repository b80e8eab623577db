package catalog

import (
	"slices"
	"strings"
)

const (
	// maxCompared is the number of characters of a name that are compared.
	maxCompared = 100

	// A name with a lower similarity is not suggested, nor is one that is less
	// similar than the best by more than the margin.
	minSimilarity = 0.6
	maxDifference = 0.3
)

// Nearest returns up to n of the names that are most similar to want, best
// first. A qualified name is compared as a whole and by its tool part, because
// either part may be wrong.
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
		if score >= minSimilarity {
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
		if f.score >= found[0].score-maxDifference {
			out = append(out, f.name)
		}
	}
	return out
}

// foldCase makes names equal that differ only in case and separators.
func foldCase(s string) string {
	s = strings.ToLower(s)
	if len(s) > maxCompared {
		s = s[:maxCompared]
	}
	return separators.Replace(s)
}

var separators = strings.NewReplacer("-", "_", ".", "_", "/", "_", " ", "_")

// measure compares strings. It reuses its buffers, because thousands of names
// may be compared.
type measure struct{ before, prev, row [maxCompared + 1]int }

// similarity returns 1 for equal strings and 0 for strings without a common
// letter. A string that contains the other as whole words counts as similar.
// Values below minSimilarity are not exact.
func (m *measure) similarity(a, b string) float64 {
	if a == b {
		return 1
	}
	longer, shorter := max(len(a), len(b)), min(len(a), len(b))
	if longer == 0 || shorter == 0 {
		return 0
	}
	s := 0.0
	if 1-float64(letterDifference(a, b))/float64(longer) >= minSimilarity { // a cheap lower bound excludes most names
		s = 1 - float64(m.distance(a, b))/float64(longer)
	}
	if shorter >= 3 && (containsWords(a, b) || containsWords(b, a)) {
		s = max(s, 0.6+0.3*float64(shorter)/float64(longer))
	}
	return s
}

// containsWords reports whether s contains part as whole words.
func containsWords(s, part string) bool {
	return strings.Contains(s, part) &&
		strings.Contains("_"+strings.ReplaceAll(s, ":", "_")+"_", "_"+strings.ReplaceAll(part, ":", "_")+"_")
}

// letterDifference returns the number of letters that only one of the strings has,
// in any order. It is a lower bound of their distance.
func letterDifference(a, b string) int {
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

// distance returns the edit distance of a and b, in which a transposition
// counts as one edit.
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
