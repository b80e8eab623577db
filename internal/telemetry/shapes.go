package telemetry

import "strings"

// What may begin at a byte. Other bytes are skipped.
const (
	beginsWord = 1 + iota // a token with a known prefix
	beginsDash            // a private key, or a flag
	separates             // separates a name from its value
	escapes               // escapes the next letter, which is then not part of a word
)

// secretKinds maps each byte to what may begin there.
var secretKinds = func() (t [256]uint8) {
	for _, p := range prefixes {
		t[p.text[0]] = beginsWord
	}
	t['B'], t['b'] = beginsWord, beginsWord // Bearer, Basic
	t['-'] = beginsDash
	t[':'], t['='] = separates, separates
	t['\\'], t['%'] = escapes, escapes
	return t
}()

// maxEscape is the length of the longest escape, \u003d.
const maxEscape = 6

// beginsToken contains the first two bytes of known token prefixes and of
// authentication schemes. Few words begin with any of them.
var beginsToken = func() (t pairs) {
	for _, p := range prefixes {
		t.add(p.text[0], p.text[1])
	}
	for _, scheme := range []string{"be", "bE", "Be", "BE", "ba", "bA", "Ba", "BA"} { // Bearer, Basic
		t.add(scheme[0], scheme[1])
	}
	return t
}()

// mayBegin contains the pairs of bytes at which scan must look for a secret.
// Nearly all other pairs are skipped with one lookup.
var mayBegin = func() pairs {
	t := beginsToken
	for a, kind := range secretKinds {
		for b := 0; kind != 0 && kind != beginsWord && b < 256; b++ {
			t.add(byte(a), byte(b))
		}
	}
	return t
}()

// pairs is a set of pairs of bytes.
type pairs [1 << 16 / 64]uint64

func (t *pairs) add(a, b byte) {
	pair := uint(a)<<8 | uint(b)
	t[pair/64] |= 1 << (pair % 64)
}

func (t *pairs) has(a, b byte) bool {
	pair := uint(a)<<8 | uint(b)
	return t[pair/64]&(1<<(pair%64)) != 0
}

// prefixes are the prefixes of the tokens of well-known services, with the
// minimum number of characters that follow.
var prefixes = []prefix{
	{"jct_", 16},                                                                              // Junctor
	{"ghp_", 16}, {"gho_", 16}, {"ghu_", 16}, {"ghs_", 16}, {"ghr_", 16}, {"github_pat_", 16}, // GitHub
	{"glpat-", 12}, {"gldt-", 12}, {"glrt-", 12}, // GitLab
	{"sk-", 16}, {"sk_live_", 12}, {"sk_test_", 12}, {"rk_live_", 12}, {"rk_test_", 12}, {"whsec_", 16}, // OpenAI, Anthropic, OpenRouter, Stripe
	{"xoxb-", 8}, {"xoxp-", 8}, {"xoxa-", 8}, {"xoxr-", 8}, {"xoxs-", 8}, {"xoxe-", 8}, {"xoxe.", 8}, {"xapp-", 8}, // Slack
	{"AKIA", 16}, {"ASIA", 16}, // Amazon
	{"AIza", 30}, {"ya29.", 16}, {"1//0", 20}, {"GOCSPX-", 16}, // Google
	{"xai-", 20}, {"gsk_", 20}, {"pplx-", 20}, {"hf_", 20}, {"r8_", 20}, {"tvly-", 16}, {"AGE-SECRET-KEY-", 20},
	{"npm_", 20}, {"pypi-", 20}, {"dop_v1_", 20}, {"shpat_", 16}, {"shpss_", 16}, {"sntrys_", 16}, {"lin_api_", 16},
	{"secret_", 24}, {"ntn_", 20}, {"figd_", 16}, {"SG.", 30}, {"eyJ", 0}, // Notion, Figma, SendGrid; JSON web tokens
}

type prefix struct {
	text string
	min  int
}

// prefixesAt are the prefixes by their first byte.
var prefixesAt = func() (t [256][]prefix) {
	for _, p := range prefixes {
		t[p.text[0]] = append(t[p.text[0]], p)
	}
	return t
}()

// shapeAt looks for a secret at s[i], for which secretKinds must not be 0 and
// which must not be inside a word if a word begins there. It returns the range
// to mask, which may begin after i, and the mask. If end is 0, there is none.
func shapeAt(s string, i int) (start, end int, mask string) {
	mask = Redacted
	switch secretKinds[s[i]] {
	case beginsDash:
		if strings.HasPrefix(s[i:], "-----") {
			start, end = pemAt(s, i)
		} else if strings.HasPrefix(s[i:], "--") && (i == 0 || !isToken(s[i-1]) || escapeBefore(s, i)) {
			start, end = flagAt(s, i)
		}
	case separates:
		if s[i] == ':' && strings.HasPrefix(s[i:], "://") {
			start, end = userinfoAt(s, i+3)
			return start, end, mask
		}
		return namedAt(s, i)
	default:
		switch c := s[i]; {
		case c == 'B' || c == 'b':
			start, end = schemeAt(s, i)
		case strings.HasPrefix(s[i:], "eyJ"):
			start, end = jwtAt(s, i)
		default:
			start, end = tokenAt(s, i)
		}
	}
	return start, end, mask
}

// tokenAt finds a token with a known prefix.
func tokenAt(s string, i int) (start, end int) {
	for _, p := range prefixesAt[s[i]] {
		if !strings.HasPrefix(s[i:], p.text) {
			continue
		}
		j := i + len(p.text)
		for j < len(s) && isToken(s[j]) {
			j++
		}
		body := s[i+len(p.text) : j]
		if len(body) < p.min {
			continue
		}
		if p.text == "AKIA" || p.text == "ASIA" {
			if !isUpperAlnum(body[:p.min]) || len(body) > p.min && isAlnum(body[p.min]) {
				continue // ordinary words have this prefix too
			}
			return i, i + len(p.text) + p.min
		}
		if p.text == "sk-" && !strings.ContainsAny(body, "0123456789") {
			continue // sk-learn-like-names
		}
		return i, j
	}
	return 0, 0
}

// jwtAt finds header.payload.signature.
func jwtAt(s string, i int) (start, end int) {
	j, dots, run := i, 0, 0
	for ; j < len(s); j++ {
		switch c := s[j]; {
		case isAlnum(c) || c == '-' || c == '_':
			run++
			continue
		case c == '.' && dots < 4 && (run >= 4 || dots > 0): // an encrypted one has five parts, which may be empty
			dots, run = dots+1, 0
			continue
		}
		break
	}
	if dots < 2 || j-i < 20 {
		return 0, 0
	}
	return i, j
}

// schemeAt finds the credentials after Bearer and Basic.
func schemeAt(s string, i int) (start, end int) {
	j := i
	switch {
	case foldPrefix(s[i:], "bearer"), foldPrefix(s[i:], "basic"):
		j += len("basic")
		if s[i+1] == 'e' || s[i+1] == 'E' {
			j++
		}
	default:
		return 0, 0
	}
	from := j
	for j < len(s) && (s[j] == ' ' || s[j] == '+' || s[j] == '\t') {
		j++
	}
	if strings.HasPrefix(s[j:], "%20") {
		j += 3
	}
	if j == from {
		return 0, 0
	}
	k := j
	for k < len(s) && (isToken(s[k]) || s[k] == '/' || s[k] == '+' || s[k] == '=' || s[k] == '~') {
		k++
	}
	if !random(s[j:k]) {
		return 0, 0
	}
	return j, k
}

// pemWindow bounds the search for the end of a key, in bytes.
const pemWindow = 16 << 10

// pemAt finds a private key in PEM form.
func pemAt(s string, i int) (start, end int) {
	const begin = "-----BEGIN "
	if !strings.HasPrefix(s[i:], begin) {
		return 0, 0
	}
	line := s[i+len(begin) : min(len(s), i+len(begin)+64)]
	label, _, ok := strings.Cut(line, "-----")
	if !ok || !strings.Contains(label, "PRIVATE KEY") {
		return 0, 0
	}
	window := s[i:min(len(s), i+pemWindow)]
	closing := "-----END " + label + "-----"
	if n := strings.Index(window, closing); n >= 0 {
		return i, i + n + len(closing)
	}
	// A truncated key: mask everything up to the end of the string.
	for j := i + len(begin) + len(label) + 5; j < len(s); j++ {
		if s[j] == '"' {
			for s[j-1] == '\\' {
				j--
			}
			return i, j
		}
	}
	return i, len(s)
}

// userinfoAt finds the password of a URL whose authority begins at s[i].
func userinfoAt(s string, i int) (start, end int) {
	const longest = 1024
	colon := -1
	for j := i; j < len(s) && j < i+longest; j++ {
		switch s[j] {
		case ':':
			if colon < 0 {
				colon = j
			}
		case '@':
			if colon < 0 || j == colon+1 || s[colon+1:j] == Redacted {
				return 0, 0
			}
			return colon + 1, j
		case '/', '?', '#', ' ', '"', '\'', '\\', '<', '>', '\n', '\t', '`', '{', '}', '|', '^', ',':
			return 0, 0
		}
	}
	return 0, 0
}

// random reports whether text looks like a credential rather than a word.
func random(text string) bool {
	var digit, symbol, upper, lower bool
	for i := range len(text) {
		switch c := text[i]; {
		case '0' <= c && c <= '9':
			digit = true
		case 'a' <= c && c <= 'z':
			lower = true
		case 'A' <= c && c <= 'Z' && i > 0: // an ordinary word may begin with a capital
			upper = true
		case 'A' <= c && c <= 'Z':
		default:
			symbol = true
		}
	}
	switch n := len(text); {
	case n < 6:
		return false
	case n >= 20:
		return true
	case digit:
		return true
	case n >= 8:
		return symbol || upper && lower
	}
	return false
}

// Classes of bytes.
const (
	alnum = 1 << iota
	word
	token
)

var class = func() (t [256]uint8) {
	for c := range 256 {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' {
			t[c] = alnum | word | token
		}
	}
	t['_'] = word | token
	t['-'], t['.'] = token, token
	return t
}()

func isAlnum(c byte) bool { return class[c]&alnum != 0 }
func isWord(c byte) bool  { return class[c]&word != 0 }
func isToken(c byte) bool { return class[c]&token != 0 }

func isUpperAlnum(s string) bool {
	for i := range len(s) {
		if c := s[i]; !('A' <= c && c <= 'Z' || '0' <= c && c <= '9') {
			return false
		}
	}
	return true
}

// escapeBefore reports whether the letter before s[i] belongs to an escape
// sequence, such as the n of \n, and is therefore not part of a word.
func escapeBefore(s string, i int) bool {
	if i >= 2 && s[i-2] == '\\' {
		switch s[i-1] {
		case 'n', 't', 'r', 'b', 'f':
			return true
		}
	}
	// The last digit of an escape such as \u003d or %3D.
	if i >= 6 && s[i-6] == '\\' && s[i-5] == 'u' {
		return isHex(s[i-1]) && isHex(s[i-2]) && isHex(s[i-3]) && isHex(s[i-4])
	}
	return i >= 3 && s[i-3] == '%' && isHex(s[i-1]) && isHex(s[i-2])
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// foldPrefix reports whether s begins with prefix, which is lower case.
func foldPrefix(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}
