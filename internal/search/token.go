package search

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of one text. The rest is ignored, because a longer name or query adds
// no information.
const (
	maxTokenBytes = 64      // longer runs are keys, hashes or encoded data
	maxTextBytes  = 1 << 14 // of one field of one tool
)

// tokenizer splits text into words: at every character that is not a letter or
// digit, at a change of case inside a word, and between letters and digits
// unless the word is as short as s3, k8s or utf8. A word in mixed case yields
// itself and its parts, because GitHub is one word and createIssue two. Runs of
// Chinese, Japanese and Korean yield overlapping pairs.
type tokenizer struct {
	tokens []string // in lower case, not stemmed
	parts  []uint8  // by token: how many of the following tokens are its parts
}

func (t *tokenizer) reset() { t.tokens, t.parts = t.tokens[:0], t.parts[:0] }

// add appends the words of s. Identifiers (names of tools and parameters) yield
// only the parts of a mixed-case word.
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
					i += 2 // skip the possessive
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

func (t *tokenizer) emit(s string) {
	if s == "" || len(s) > maxTokenBytes {
		return
	}
	t.tokens = append(t.tokens, s)
	t.parts = append(t.parts, 0)
}

// ascii handles one run of ASCII letters and digits; rest is the text after it.
func (t *tokenizer) ascii(run, rest string, identifier bool) {
	if len(run) == 1 && len(rest) > 0 {
		switch {
		case rest[0] == '#':
			t.emit(strings.ToLower(run) + "sharp")
			return
		case len(rest) > 1 && rest[:2] == "++":
			t.emit(strings.ToLower(run) + "pp")
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
		t.emit(strings.ToLower(run))
		return
	}
	n++
	cut[n] = len(run)
	if mixed && !identifier {
		t.emit(strings.ToLower(run))
		t.parts[len(t.parts)-1] = uint8(n)
	}
	for i := range n {
		t.emit(strings.ToLower(run[cut[i]:cut[i+1]]))
	}
}

// encoded reports whether a run alternates so often between letters and digits
// that it is a hash or an encoded number without words.
func encoded(run string) bool {
	const maxChanges = 3
	changes := 0
	for i := 1; i < len(run); i++ {
		if isDigit(run[i-1]) != isDigit(run[i]) {
			changes++
		}
	}
	return changes > maxChanges
}

// joined returns the tokens without the parts of words that are known as a
// whole, so that a query for PubChem does not match "pub". It modifies the
// tokens.
func (t *tokenizer) joined(known func(string) bool) []string {
	kept := t.tokens[:0]
	for i := 0; i < len(t.tokens); i++ {
		kept = append(kept, t.tokens[i])
		if n := t.parts[i]; n > 0 && known(t.tokens[i]) {
			i += int(n)
		}
	}
	return kept
}

// plural reports whether rest begins with the plural s of an abbreviation such
// as URLs.
func plural(rest string) bool {
	return rest[0] == 's' && (len(rest) == 1 || isUpper(rest[1]))
}

// unicode handles one word that is not plain ASCII and returns its length.
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
			i += size // a combining mark
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

// cjk reports whether r is a letter of a script without spaces, including the
// prolonged sound mark, which belongs to no script.
func cjk(r rune) bool {
	return r >= 0x1100 && unicode.IsLetter(r) &&
		(r == 'ー' || unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul))
}

// The letters from ß and from Ā without their accents.
const (
	latin1   = "saaaaaaaceeeeiiiidnooooo/ouuuuyty"
	latinExt = "aaaaaaccccccccddddeeeeeeeeeegggggggghhhhiiiiiiiiiiiijjkkkllllllllllnnnnnnnnnoooooooorrrrrrssssssssttttttuuuuuuuuuuuuwwyyyzzzzzzs"
)

// fold removes the accent of a lower-case Latin letter.
func fold(r rune) rune {
	switch {
	case r >= 0xdf && r <= 0xff && r != '÷':
		return rune(latin1[r-0xdf])
	case r >= 0x100 && r <= 0x17f:
		return rune(latinExt[r-0x100])
	}
	return r
}
