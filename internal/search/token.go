package search

import (
	"unicode"
	"unicode/utf8"
)

// Limits of one piece of text. What lies beyond them is not read: a name or a
// query that long says nothing more.
const (
	maxTokenBytes = 64      // longer runs are keys, hashes and encoded data
	maxTextBytes  = 1 << 14 // of one field of one tool
)

// tokenizer cuts text into words: at everything that is no letter and no
// digit, at a change of case inside a word, and between letters and digits
// unless the word is as short as s3, k8s or utf8. A word in mixed case gives
// itself as well as its parts, because GitHub is one word and createIssue two.
// Runs of Chinese, Japanese and Korean give overlapping pairs.
type tokenizer struct {
	tokens []string // in lower case, not stemmed
	parts  []uint8  // by token: how many of those behind it are its parts
	buf    []byte
}

func (t *tokenizer) reset() { t.tokens, t.parts = t.tokens[:0], t.parts[:0] }

// add appends the words of s. Identifiers (names of tools and parameters) give
// the parts of a mixed-case word only.
func (t *tokenizer) add(s string, identifier bool) {
	if len(s) > maxTextBytes {
		s = s[:maxTextBytes]
	}
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			if !isAlnum(c) {
				i++
				continue
			}
			j := i + 1
			for j < len(s) && s[j] < utf8.RuneSelf && isAlnum(s[j]) {
				j++
			}
			if j == len(s) || s[j] < utf8.RuneSelf {
				t.ascii(s[i:j], s[j:], identifier)
				i = j
				if i+1 < len(s) && s[i] == '\'' && (s[i+1]|0x20) == 's' && (i+2 == len(s) || !isAlnum(s[i+2])) {
					i += 2 // the possessive says nothing
				}
				continue
			}
		}
		i += t.unicode(s[i:])
	}
}

func isAlnum(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }

func (t *tokenizer) lower(s string) string {
	t.buf = t.buf[:0]
	for i := range len(s) {
		c := s[i]
		if isUpper(c) {
			c |= 0x20
		}
		t.buf = append(t.buf, c)
	}
	return string(t.buf)
}

func (t *tokenizer) emit(s string) {
	if s == "" || len(s) > maxTokenBytes {
		return
	}
	t.tokens = append(t.tokens, s)
	t.parts = append(t.parts, 0)
}

// ascii takes one run of ASCII letters and digits; rest is what follows it.
func (t *tokenizer) ascii(run, rest string, identifier bool) {
	if len(run) == 1 && len(rest) > 0 {
		switch {
		case rest[0] == '#':
			t.emit(t.lower(run) + "sharp")
			return
		case len(rest) > 1 && rest[:2] == "++":
			t.emit(t.lower(run) + "pp")
			return
		}
	}
	if len(run) > maxTokenBytes {
		return
	}
	var cut [maxTokenBytes + 1]int
	n := 0
	mixed := false
	apart := len(run) > 4 && !encoded(run) // letters and digits
	for i := 1; i < len(run); i++ {
		a, b := run[i-1], run[i]
		switch {
		case isDigit(a) != isDigit(b):
			if apart {
				n++
				cut[n] = i
			}
		case isDigit(a):
		case !isUpper(a) && isUpper(b),
			isUpper(a) && isUpper(b) && i+1 < len(run) && !isUpper(run[i+1]) && !isDigit(run[i+1]) && !plural(run[i+1:]):
			n++
			cut[n] = i
			mixed = true
		}
	}
	if n == 0 {
		t.emit(t.lower(run))
		return
	}
	n++
	cut[n] = len(run)
	if mixed && !identifier {
		t.emit(t.lower(run))
		t.parts[len(t.parts)-1] = uint8(n)
	}
	for i := range n {
		t.emit(t.lower(run[cut[i]:cut[i+1]]))
	}
}

// encoded reports whether a run changes so often between letters and digits
// that it is a hash or an encoded number, and has no words in it.
func encoded(run string) bool {
	const usual = 3
	changes := 0
	for i := 1; i < len(run); i++ {
		if isDigit(run[i-1]) != isDigit(run[i]) {
			changes++
		}
	}
	return changes > usual
}

// unparted returns the tokens without the parts of words that are known as a
// whole: who asks for PubChem does not ask for a pub. It uses the tokens up.
func (t *tokenizer) unparted(known func(string) bool) []string {
	kept := t.tokens[:0]
	for i := 0; i < len(t.tokens); i++ {
		kept = append(kept, t.tokens[i])
		if n := t.parts[i]; n > 0 && known(t.tokens[i]) {
			i += int(n)
		}
	}
	return kept
}

// plural reports whether rest is the s of a plural such as URLs.
func plural(rest string) bool {
	return rest[0] == 's' && (len(rest) == 1 || isUpper(rest[1]))
}

// unicode takes one word that is not plain ASCII and returns its length.
func (t *tokenizer) unicode(s string) int {
	var (
		word  []byte
		prev  rune
		pairs int
		i     int
	)
	flush := func() {
		t.emit(string(word))
		word = word[:0]
	}
	for i < len(s) {
		r, size := utf8.DecodeRuneInString(s[i:])
		if cjk(r) {
			if prev == 0 {
				flush()
			} else {
				t.emit(string([]rune{prev, r}))
			}
			prev = r
			pairs++
			i += size
			continue
		}
		if prev != 0 {
			if pairs == 1 {
				t.emit(string(prev))
			}
			return i
		}
		if unicode.Is(unicode.Mn, r) {
			i += size // an accent of its own
			continue
		}
		if r == utf8.RuneError || !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			break
		}
		word = utf8.AppendRune(word, fold(unicode.ToLower(r)))
		i += size
	}
	if prev != 0 && pairs == 1 {
		t.emit(string(prev))
	}
	flush()
	if i == 0 {
		_, size := utf8.DecodeRuneInString(s)
		return size
	}
	return i
}

// cjk reports whether r is a letter of a script that is written without
// spaces. The mark that lengthens a vowel belongs to no script of its own.
func cjk(r rune) bool {
	return r >= 0x1100 && unicode.IsLetter(r) &&
		(r == 'ー' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul))
}

// The letters from ß and from Ā on without their accents.
const (
	latin1   = "saaaaaaaceeeeiiiidnooooo/ouuuuyty"
	latinExt = "aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiiiijjkkkllllllllllnnnnnnnnnoooooooorrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzzs"
)

// fold takes the accent off a lower-case Latin letter.
func fold(r rune) rune {
	switch {
	case r >= 0xdf && r <= 0xff && r != '÷':
		return rune(latin1[r-0xdf])
	case r >= 0x100 && r <= 0x17f:
		return rune(latinExt[r-0x100])
	}
	return r
}
