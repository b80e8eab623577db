package config

import (
	"fmt"
	"strings"
)

// suggest returns "; did you mean …?" with the nearest of the names, or
// nothing when none is near.
func suggest(name string, names []string) string {
	if best := nearest(name, names); best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return ""
}

// nearest returns the name that needs the fewest changes, when they are few
// for its length. Case, hyphens and underscores do not count, because those
// are what people mix up between programs.
func nearest(name string, names []string) string {
	fold := func(s string) string {
		return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s))
	}
	best, least := "", 1+max(1, len(name)/3)
	for _, other := range names {
		if d := distance(fold(name), fold(other)); d < least {
			best, least = other, d
		}
	}
	return best
}

// distance is the number of letters to add, drop, change or swap.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64 // no key is that long: not worth the work
	}
	before := make([]int, len(b)+1)
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
