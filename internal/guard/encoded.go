package guard

import (
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

var (
	base64Run  = regexp.MustCompile(`[A-Za-z0-9+/_-]{24,}={0,2}`)
	hexRun     = regexp.MustCompile(`(?:[0-9a-fA-F]{2}){20,}|(?:\\x[0-9a-fA-F]{2}){8,}`)
	percentRun = regexp.MustCompile(`(?:[A-Za-z0-9._-]*%[0-9a-fA-F]{2}){6,}[A-Za-z0-9._-]*`)
)

// encoded finds sentences in base64, hexadecimal and percent encoding. Keys,
// hashes and images do not decode to words and are not reported.
func encoded(s string) []Flag {
	var flags []Flag
	add := func(how, plain string) {
		if len(flags) < 4 && isSentence(plain) {
			flags = append(flags, Flag{Kind: "encoded", What: "a sentence in " + how, Excerpt: excerpt(plain)})
		}
	}
	if hasRun(s, 24) {
		for _, run := range base64Run.FindAllString(s, 20) {
			for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
				if plain, err := enc.DecodeString(strings.TrimRight(run, "=")); err == nil {
					add("base64", string(plain))
					break
				}
			}
		}
		for _, run := range hexRun.FindAllString(s, 20) {
			if plain, err := hex.DecodeString(strings.ReplaceAll(run, `\x`, "")); err == nil {
				add("hexadecimal", string(plain))
			}
		}
	}
	if strings.Contains(s, "%20") {
		for _, run := range percentRun.FindAllString(s, 20) {
			// URLs in examples are percent-encoded; prompt injection is not.
			if plain, err := url.PathUnescape(run); err == nil && len(matchPatterns(plain)) > 0 {
				add("percent encoding", plain)
			}
		}
	}
	return flags
}

// hasRun reports whether s contains a run of n letters, digits or similar
// characters, which ordinary words do not. It saves running the regular
// expressions on most texts.
func hasRun(s string, n int) bool {
	run := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '+', c == '/', c == '_', c == '-', c == '\\':
			if run++; run >= n {
				return true
			}
		default:
			run = 0
		}
	}
	return false
}

// isSentence reports whether text consists of several words.
func isSentence(text string) bool {
	if !utf8.ValidString(text) || len(text) < 16 {
		return false
	}
	letters, total := 0, 0
	for _, r := range text {
		if r < ' ' && r != '\n' && r != '\t' {
			return false
		}
		total++
		if unicode.IsLetter(r) || r == ' ' {
			letters++
		}
	}
	return letters*100 >= total*80 && len(strings.Fields(text)) >= 4
}
