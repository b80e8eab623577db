package guard

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// plain is text as rules and patterns read it: what looks like Latin letters is Latin
// letters, letters set apart by blanks are words again, nothing is hidden.
func plain(s string) string {
	if !isASCII(s) {
		tags := tagText([]rune(s))
		s = norm.NFKC.String(s)
		s = unmask(strings.Map(func(r rune) rune {
			if isHidden(r) && r > 0x7f {
				return -1
			}
			return r
		}, s))
		if tags != "" {
			s += " " + tags
		}
	}
	var b strings.Builder
	b.Grow(len(s))
	blank, singles, apart := true, 0, false
	start := 0 // of the word under way
	for _, r := range s {
		if unicode.IsSpace(r) {
			if !blank {
				if b.Len()-start == 1 {
					singles++
				} else {
					singles = 0
				}
				apart = apart || singles >= 5
				b.WriteByte(' ')
				start = b.Len()
			}
			blank = true
			continue
		}
		if r == '’' || r == '‘' {
			r = '\''
		}
		if r == '*' || r < ' ' {
			continue // emphasis
		}
		if r < 0x80 {
			if 'A' <= r && r <= 'Z' {
				r += 'a' - 'A'
			}
			b.WriteByte(byte(r))
		} else {
			b.WriteRune(unicode.ToLower(r))
		}
		blank = false
	}
	text := b.String()
	if apart {
		text += " . " + together(s)
	}
	return text
}

func isASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// unmask writes words that mix Latin letters with their lookalikes in Latin
// letters alone. Words that are all of another script stay.
func unmask(s string) string {
	return word.ReplaceAllStringFunc(s, func(w string) string {
		if strings.IndexFunc(w, func(r rune) bool { return r < 0x80 }) < 0 {
			return w
		}
		return strings.Map(func(r rune) rune {
			if l, ok := lookalikes[r]; ok {
				return l
			}
			return r
		}, w)
	})
}

var word = regexp.MustCompile(`[\p{Latin}\p{Cyrillic}\p{Greek}\p{Armenian}]+`)

// together joins letters that were set apart by one blank; two blanks are then
// what parts the words.
func together(s string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(s, "  ") {
		joined := false
		for i, f := range strings.Fields(part) {
			single := utf8.RuneCountInString(f) == 1
			if i > 0 && !(single && joined) {
				b.WriteByte(' ')
			}
			b.WriteString(f)
			joined = single
		}
		b.WriteByte(' ')
	}
	return strings.ToLower(b.String())
}

// lookalikes are the letters that pass for Latin ones.
var lookalikes = map[rune]rune{
	'а': 'a', 'е': 'e', 'о': 'o', 'р': 'p', 'с': 'c', 'у': 'y', 'х': 'x', 'і': 'i', 'ј': 'j', 'ѕ': 's', 'ԁ': 'd', 'ո': 'n', 'һ': 'h', 'ӏ': 'l',
	'А': 'A', 'В': 'B', 'Е': 'E', 'К': 'K', 'М': 'M', 'Н': 'H', 'О': 'O', 'Р': 'P', 'С': 'C', 'Т': 'T', 'Х': 'X', 'І': 'I', 'Ѕ': 'S',
	'α': 'a', 'ο': 'o', 'ν': 'v', 'ρ': 'p', 'ι': 'i', 'κ': 'k', 'τ': 't', 'υ': 'u', 'ε': 'e',
}
