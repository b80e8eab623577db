package search

import "strings"

// stem reduces an English word in lower-case ASCII to its stem with Porter's
// algorithm of 1980, and treats British endings as American ones. Words with
// other bytes, with digits, or shorter than three letters are returned
// unchanged. It works in place, and may write up to eight bytes after the word.
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
	w = stemPlural(w)
	w = stemPast(w)
	if hasSuffix(w, "y") && hasVowel(w[:len(w)-1]) {
		w[len(w)-1] = 'i'
	}
	w = replaceFirst(w, stemStep2[:], 0)
	w = replaceFirst(w, stemStep3[:], 0)
	w = stemStep4(w)
	return stemEnd(w)
}

type suffixRule struct{ from, to string }

var stemStep2 = [...]suffixRule{
	{"ational", "ate"}, {"tional", "tion"}, {"enci", "ence"}, {"anci", "ance"},
	{"izer", "ize"}, {"abli", "able"}, {"alli", "al"}, {"entli", "ent"},
	{"eli", "e"}, {"ousli", "ous"}, {"ization", "ize"}, {"ation", "ate"},
	{"ator", "ate"}, {"alism", "al"}, {"iveness", "ive"}, {"fulness", "ful"},
	{"ousness", "ous"}, {"aliti", "al"}, {"iviti", "ive"}, {"biliti", "ble"},
}

var stemStep3 = [...]suffixRule{
	{"icate", "ic"}, {"ative", ""}, {"alize", "al"}, {"iciti", "ic"},
	{"ical", "ic"}, {"ful", ""}, {"ness", ""},
}

var stemStep4Suffixes = [...]string{
	"ement", "ance", "ence", "able", "ible", "ment", "ant", "ent", "ion",
	"ism", "ate", "iti", "ous", "ive", "ize", "al", "er", "ic", "ou",
}

func hasSuffix(w []byte, s string) bool {
	return len(w) >= len(s) && string(w[len(w)-len(s):]) == s
}

// consonant follows Porter: y is a consonant after a vowel or at the start.
func consonant(w []byte, i int) bool {
	switch w[i] {
	case 'a', 'e', 'i', 'o', 'u':
		return false
	case 'y':
		return i == 0 || !consonant(w, i-1)
	}
	return true
}

func hasVowel(w []byte) bool {
	for i := range w {
		if !consonant(w, i) {
			return true
		}
	}
	return false
}

// measure counts the transitions from vowel to consonant.
func measure(w []byte) int {
	n, vowel := 0, false
	for i := range w {
		c := consonant(w, i)
		if c && vowel {
			n++
		}
		vowel = !c
	}
	return n
}

// shortEnd reports whether w ends consonant, vowel, consonant, the last not
// being w, x or y.
func shortEnd(w []byte) bool {
	n := len(w)
	if n < 3 || !consonant(w, n-3) || consonant(w, n-2) || !consonant(w, n-1) {
		return false
	}
	c := w[n-1]
	return c != 'w' && c != 'x' && c != 'y'
}

func doubleEnd(w []byte) bool {
	n := len(w)
	return n > 1 && w[n-1] == w[n-2] && consonant(w, n-1)
}

func stemPlural(w []byte) []byte {
	switch {
	case hasSuffix(w, "sses"), hasSuffix(w, "ies"):
		return w[:len(w)-2]
	case hasSuffix(w, "ss"), hasSuffix(w, "us"), !hasSuffix(w, "s"):
		return w
	}
	return w[:len(w)-1]
}

func stemPast(w []byte) []byte {
	var cut int
	switch {
	case hasSuffix(w, "eed"):
		if measure(w[:len(w)-3]) > 0 {
			return w[:len(w)-1]
		}
		return w
	case hasSuffix(w, "ed") && hasVowel(w[:len(w)-2]):
		cut = 2
	case hasSuffix(w, "ing") && hasVowel(w[:len(w)-3]):
		cut = 3
	default:
		return w
	}
	w = w[:len(w)-cut]
	switch {
	case hasSuffix(w, "at"), hasSuffix(w, "bl"), hasSuffix(w, "iz"):
		return append(w, 'e')
	case doubleEnd(w) && !hasSuffix(w, "l") && !hasSuffix(w, "s") && !hasSuffix(w, "z"):
		return w[:len(w)-1]
	case measure(w) == 1 && shortEnd(w):
		return append(w, 'e')
	}
	return w
}

// replaceFirst applies the first rule whose suffix w has, if the measure of the
// rest is greater than min.
func replaceFirst(w []byte, rules []suffixRule, min int) []byte {
	for _, r := range rules {
		if hasSuffix(w, r.from) {
			if left := w[:len(w)-len(r.from)]; measure(left) > min {
				return append(left, r.to...)
			}
			return w
		}
	}
	return w
}

func stemStep4(w []byte) []byte {
	for _, s := range stemStep4Suffixes {
		if !hasSuffix(w, s) {
			continue
		}
		left := w[:len(w)-len(s)]
		if measure(left) > 1 && (s != "ion" || hasSuffix(left, "s") || hasSuffix(left, "t")) {
			return left
		}
		return w
	}
	return w
}

func stemEnd(w []byte) []byte {
	if hasSuffix(w, "e") {
		left := w[:len(w)-1]
		if m := measure(left); m > 1 || m == 1 && !shortEnd(left) {
			w = left
		}
	}
	if hasSuffix(w, "ll") && measure(w) > 1 {
		w = w[:len(w)-1]
	}
	return w
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
