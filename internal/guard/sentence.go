package guard

import (
	"strings"
	"unicode"
)

// token is one word of a sentence, with what it is about.
type token struct {
	word  string
	sense sense
}

// maxWords bounds a sentence; a longer one is read in pieces.
const maxWords = 80

// sentences cuts text, as plain returns it, into sentences of tokens. It reads
// names of files, addresses and quoted code as words.
func sentences(text string, own func(string) bool) [][]token {
	var out [][]token
	var words []token
	end := func() {
		if len(words) > 1 {
			mark(words)
			out = append(out, words)
		}
		words = nil
	}
	for field := range strings.FieldsSeq(text) {
		quoted := strings.HasPrefix(field, "`") || strings.HasPrefix(field, "'")
		last := field[len(field)-1]
		word := strings.TrimFunc(field, func(r rune) bool {
			return r != '/' && r != '~' && r != '$' && r != '%' && r != '+' && r != '.' && (unicode.IsPunct(r) || unicode.IsSymbol(r))
		})
		word = strings.TrimRight(word, ".…+")
		if word != "" {
			t := token{word: word}
			t.sense = shapeOf(word)
			if own(word) || quoted && t.sense == 0 && strings.HasSuffix(strings.TrimRight(field, ".,;:!?"), field[:1]) {
				t.sense = slot
			}
			words = append(words, t)
		}
		if strings.IndexByte(".!?", last) >= 0 || len(words) >= maxWords {
			end()
		}
	}
	end()
	return out
}

// mark gives the words of a sentence the senses of the words and phrases that
// they are part of.
func mark(words []token) {
	known := phrases()
	for i := range words {
		phrase := words[i].word
		for n := i; ; {
			e, ok := known[phrase]
			if !ok {
				break
			}
			for k := i; k <= n; k++ {
				words[k].sense |= e.sense
			}
			if n++; !e.more || n == len(words) {
				break
			}
			phrase += " " + words[n].word
		}
	}
}

// within reports whether the sentence has words of all these senses, each at
// most span words from the others, and where.
func within(words []token, span int, want []sense) (from, to int, ok bool) {
	var all sense
	for _, w := range want {
		all |= w
	}
	for i := range words {
		if words[i].sense&all == 0 {
			continue
		}
		end := i
		var buf [4]sense
		missing := append(buf[:0], want...)
		for j := i; j < len(words) && j-i <= span; j++ {
			kept := missing[:0]
			taken := false
			for _, w := range missing {
				if !taken && words[j].sense&w != 0 {
					taken = true // one word is not two things
					continue
				}
				kept = append(kept, w)
			}
			missing = kept
			if taken {
				end = j
			}
			if len(missing) == 0 {
				return i, end + 1, true
			}
		}
	}
	return 0, 0, false
}
