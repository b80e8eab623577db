package tool

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Summary describes the tool in one line of at most max characters: the first
// sentence of its description, else its title, else its name as words. White
// space is collapsed and invisible characters are removed, so that a list of
// summaries cannot contain hidden text. A max below 2 means no limit.
func (d Definition) Summary(max int) string {
	s := firstSentence(oneLine(d.Description, 4096))
	if s == "" {
		s = oneLine(d.Title, 1024)
	}
	if s == "" {
		s = oneLine(strings.Map(func(r rune) rune {
			if r == '_' || r == '-' || r == '/' || r == '.' {
				return ' '
			}
			return r
		}, d.Name.Tool), 1024)
	}
	return Shorten(s, max)
}

// Shorten truncates s to at most max characters, at the end of a word if one is
// near, and marks the cut with an ellipsis. A max below 2 means no limit.
func Shorten(s string, max int) string {
	if max < 2 || utf8.RuneCountInString(s) <= max {
		return s
	}
	end := 0
	for range max - 1 {
		_, n := utf8.DecodeRuneInString(s[end:])
		end += n
	}
	cut := s[:end]
	if i := strings.LastIndexByte(cut, ' '); i > 0 && s[end] != ' ' && len(cut)-i < max/3 {
		cut = cut[:i]
	}
	return strings.TrimRight(cut, " ,;:.") + "…"
}

// OneLine returns the first paragraph of s as one line without invisible
// characters, like [Definition.Summary].
func OneLine(s string) string { return oneLine(s, 4096) }

// oneLine collapses white space and drops invisible characters: control and
// format characters (zero width, bidirectional, tags) and invalid UTF-8. It
// stops after limit bytes of output.
func oneLine(s string, limit int) string {
	var b strings.Builder
	space := false
	blank := 0 // consecutive line feeds: the output ends with the paragraph
	for _, r := range s {
		if b.Len() >= limit {
			break
		}
		switch {
		case unicode.IsSpace(r):
			if r == '\n' {
				blank++
			}
			space = true
			continue
		case r == utf8.RuneError || unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			continue
		}
		if b.Len() > 0 && blank > 1 {
			break
		}
		if space && b.Len() > 0 {
			b.WriteByte(' ')
		}
		space, blank = false, 0
		b.WriteRune(r)
	}
	return strings.TrimLeft(b.String(), "#*->• ")
}

// firstSentence returns s up to the end of its first sentence, without the
// full stop. A stop counts when a space and a capital follow, so that "e.g."
// and "v1.2" do not end it.
func firstSentence(s string) string {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c != '.' && c != '!' && c != '?' {
			continue
		}
		rest := s[i+1:]
		if rest == "" {
			break
		}
		if rest[0] != ' ' {
			continue
		}
		next, _ := utf8.DecodeRuneInString(rest[1:])
		if unicode.IsUpper(next) && !abbreviated(s[:i]) {
			return strings.TrimRight(s[:i+1], ".")
		}
	}
	return strings.TrimRight(s, ".")
}

// abbreviated reports whether s ends in an abbreviation that is written with a
// full stop.
func abbreviated(s string) bool {
	word := s[strings.LastIndexAny(s, " (")+1:]
	switch strings.ToLower(word) {
	case "e.g", "i.e", "etc", "vs", "cf", "no", "approx", "mr", "dr", "st", "inc", "u.s":
		return true
	}
	return false
}
