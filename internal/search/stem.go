package search

import (
	"strings"

	"github.com/blevesearch/go-porterstemmer"
)

// stem reduces an English word in lower-case ASCII to its stem with
// Porter's algorithm of 1980, and treats British endings as American ones. Words
// with other bytes, with digits, shorter than three letters, or in -us are
// returned unchanged. It works in place, and may write up to eight bytes after
// the word.
func stem(w []byte) []byte {
	if len(w) < 3 {
		return w
	}
	for _, c := range w {
		if c < 'a' || c > 'z' {
			return w
		}
	}
	americaniseBytes(w)
	if hasSuffix(w, "us") {
		return w
	}
	return append(w[:0], string(porterstemmer.StemWithoutLowerCasing([]rune(string(w))))...)
}

func hasSuffix(w []byte, s string) bool {
	return len(w) >= len(s) && string(w[len(w)-len(s):]) == s
}

// americanise converts British spellings such as summarise and colour to
// American ones.
func americanise(w string) string {
	if len(w) < 5 {
		return w
	}
	b := []byte(w)
	if americaniseBytes(b) {
		return string(b)
	}
	if i := strings.LastIndex(w, "our"); i > 1 && len(w)-i <= 6 {
		return w[:i] + "or" + w[i+3:]
	}
	return w
}

// americaniseBytes replaces the s of -ise, -ised, -ises, -ising and -isation by
// a z. A wrong replacement does no harm, because it is applied to queries and
// tools alike.
func americaniseBytes(w []byte) bool {
	for _, end := range [...]string{"ise", "ised", "ises", "ising", "isation", "isations"} {
		if n := len(w) - len(end); n > 2 && hasSuffix(w, end) {
			w[n+1] = 'z'
			return true
		}
	}
	return false
}
