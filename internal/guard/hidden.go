package guard

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
)

// isHidden reports whether the character is invisible or changes the order in
// which the text around it is displayed.
func isHidden(r rune) bool { return hiddenKind(r) != "" }

func hiddenKind(r rune) string {
	switch {
	case r >= 0xE0000 && r <= 0xE007F:
		return "tag characters"
	case r >= 0x202A && r <= 0x202E, r >= 0x2066 && r <= 0x2069:
		return "bidirectional overrides"
	case r == 0x200B, r == 0x200C, r == 0x200D, r == 0x2060, r == 0xFEFF, r == 0x180E,
		r >= 0x2061 && r <= 0x2064, r >= 0x206A && r <= 0x206F:
		return "zero-width characters"
	case r == 0x00AD:
		return "soft hyphens"
	case r == 0x200E, r == 0x200F, r == 0x061C:
		return "direction marks"
	case r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0100 && r <= 0xE01EF, r >= 0x180B && r <= 0x180D, r == 0x180F:
		return "variation selectors"
	case r == 0x115F, r == 0x1160, r == 0x3164, r == 0xFFA0, r == 0x2800, r >= 0xFFF9 && r <= 0xFFFB:
		return "blank letters"
	case r == 0x1B:
		return "terminal escapes"
	case r < ' ' && r != '\n' && r != '\r' && r != '\t', r >= 0x7F && r < 0xA0:
		return "control characters"
	}
	return ""
}

// hidden finds invisible characters. It does not report characters in their
// intended use (a joiner inside an emoji or in scripts that need it, a
// direction mark next to right-to-left letters), or a single one such as in
// pasted text.
func hidden(s string) []Flag {
	if len(s) < len(blankRun) && isPlain(s) {
		return nil
	}
	runes := []rune(s)
	counts := map[string]int{}
	first := map[string]int{}
	for i, r := range runes {
		kind := hiddenKind(r)
		if kind == "" || intended(runes, i) {
			continue
		}
		if counts[kind] == 0 {
			first[kind] = i
		}
		counts[kind]++
	}
	var flags []Flag
	for _, kind := range slices.Sorted(maps.Keys(counts)) {
		n := counts[kind]
		if n < minHidden(kind) {
			continue
		}
		at := first[kind]
		text := excerpt(string(runes[max(0, at-20):min(len(runes), at+40)]))
		if plain := tagText(runes); kind == "tag characters" && plain != "" {
			text = excerpt(plain)
		}
		flags = append(flags, Flag{Kind: "hidden", What: fmt.Sprintf("%s (%d)", kind, n), Excerpt: text})
	}
	if i := strings.Index(s, blankRun); i >= 0 && strings.TrimSpace(s[i:]) != "" && strings.TrimSpace(s[:i]) != "" {
		flags = append(flags, Flag{Kind: "hidden", What: "text after many blank lines", Excerpt: excerpt(strings.TrimSpace(s[i:]))})
	}
	return flags
}

// minHidden returns the number of characters of a kind from which they are
// flagged.
func minHidden(kind string) int {
	switch kind {
	case "soft hyphens", "direction marks", "variation selectors":
		return 3
	case "zero-width characters", "control characters", "blank letters":
		return 2
	}
	return 1
}

var blankRun = strings.Repeat("\n", 15)

func isPlain(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// intended reports whether the invisible character at i is in its intended use.
func intended(runes []rune, i int) bool {
	var before, after rune
	if i > 0 {
		before = runes[i-1]
	}
	if i+1 < len(runes) {
		after = runes[i+1]
	}
	switch r := runes[i]; {
	case r == 0xFEFF:
		return i == 0 // a byte order mark
	case r == 0x200D: // joins the parts of an emoji, or letters of some scripts
		return (symbol(before) || before == 0xFE0F) && symbol(after) || joining(before)
	case r == 0x200C:
		return joining(before)
	case r == 0x200E, r == 0x200F, r == 0x061C:
		return rightToLeft(before) || rightToLeft(after)
	case r == 0xFE0E, r == 0xFE0F:
		return symbol(before) || before == '#' || before == '*' || before >= '0' && before <= '9'
	case r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0100 && r <= 0xE01EF:
		return unicode.Is(unicode.Han, before)
	case r >= 0x180B && r <= 0x180F: // selectors and a separator, used only in Mongolian
		return unicode.IsLetter(before) && unicode.Is(unicode.Mongolian, before)
	case r >= 0xE0020 && r <= 0xE007F: // the flags of England, Scotland and Wales
		for j := i - 1; j >= 0 && j > i-8; j-- {
			if runes[j] == 0x1F3F4 {
				return true
			}
		}
	}
	return false
}

func symbol(r rune) bool { return unicode.Is(unicode.So, r) || r >= 0x1F000 && r <= 0x1FAFF }

func joining(r rune) bool {
	return unicode.In(r, unicode.Arabic, unicode.Devanagari, unicode.Bengali, unicode.Gujarati, unicode.Gurmukhi,
		unicode.Kannada, unicode.Malayalam, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Sinhala, unicode.Khmer,
		unicode.Myanmar, unicode.Tibetan, unicode.Thai, unicode.Lao, unicode.Mongolian, unicode.Syriac)
}

func rightToLeft(r rune) bool { return unicode.In(r, unicode.Arabic, unicode.Hebrew, unicode.Syriac) }

// tagText returns the text that is encoded in tag characters.
func tagText(runes []rune) string {
	var b strings.Builder
	for _, r := range runes {
		if r >= 0xE0020 && r <= 0xE007E {
			b.WriteRune(r - 0xE0000)
		}
	}
	return b.String()
}
