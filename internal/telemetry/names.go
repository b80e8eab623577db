package telemetry

import "strings"

// maxNameLength is the maximum length of a name that is checked.
const maxNameLength = 64

// SecretName reports whether the value of a key of this name is a secret:
// password, api_key, X-Auth-Token, clientSecret and the like.
func SecretName(name string) bool {
	last := len(name) - 1
	for last >= 0 && class[name[last]]&alnum == 0 {
		last--
	}
	if last < 0 || !lastLetter[name[last]] {
		return false
	}
	var buf [maxNameLength]byte
	n := len(buf)
	// Read from the end, because the last word of a name is the most specific.
	for i := last; i >= 0 && n > 0; i-- {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if isAlnum(c) {
			n--
			buf[n] = c
		}
	}
	return secretWord(buf[n:])
}

// lastLetter contains the last letters of secret names.
var lastLetter = func() (t [256]bool) {
	for _, c := range []byte("detnylshDETNYLSH") {
		t[c] = true
	}
	return t
}()

// secretWord reports whether w, a name in lower case without punctuation, is
// that of a secret. It must not allocate, because it is called for every colon.
func secretWord(w []byte) bool {
	if len(w) < 3 {
		return false
	}
	switch w[len(w)-1] {
	case 'd':
		return ends(w, "password") || ends(w, "passwd") || ends(w, "pwd")
	case 'e':
		return ends(w, "passphrase") || ends(w, "cookie") || ends(w, "privatekeyvalue")
	case 't':
		return ends(w, "secret") || string(w) == "jwt"
	case 'n':
		return ends(w, "authorization") || ends(w, "token") && !harmlessToken(w)
	case 'y':
		return ends(w, "apikey") || ends(w, "secretkey") || ends(w, "privatekey") || ends(w, "accesskey") || ends(w, "authkey") ||
			ends(w, "signingkey") || ends(w, "encryptionkey") || ends(w, "masterkey") || ends(w, "sharedkey")
	case 'l':
		return ends(w, "credential")
	case 's':
		return ends(w, "credentials") || ends(w, "clientsecrets") || string(w) == "pass" || ends(w, "dbpass")
	case 'h':
		return string(w) == "auth" || ends(w, "basicauth") || ends(w, "npmauth")
	}
	return false
}

// harmlessToken reports whether w names a token that is no credential: a
// cursor, a count, or the progress token of MCP.
func harmlessToken(w []byte) bool {
	for _, s := range []string{"pagetoken", "nexttoken", "progresstoken", "continuationtoken", "cursortoken", "synctoken", "maxtoken", "pertoken", "bytoken"} {
		if ends(w, s) {
			return true
		}
	}
	return false
}

func ends(w []byte, suffix string) bool {
	return len(w) >= len(suffix) && string(w[len(w)-len(suffix):]) == suffix
}

// namedAt returns the value after the separator s[i] if the name before it is
// that of a secret. It recognizes name=value, "name": "value" at any depth of
// JSON inside JSON strings, and name: value as in headers.
func namedAt(s string, i int) (start, end int, mask string) {
	mask = Redacted
	if i+1 < len(s) && s[i+1] == s[i] || s[i] == '=' && i > 0 && strings.IndexByte("=!<>:", s[i-1]) >= 0 {
		return 0, 0, mask // an operator such as == or ::
	}
	// Before the separator: optional spaces and the closing quote of the name.
	j := i
	for j > 0 && (s[j-1] == ' ' || s[j-1] == '\t') {
		j--
	}
	quoted, quote := false, ""
	if j > 0 && (s[j-1] == '"' || s[j-1] == '\'') {
		end := j
		for j--; j > 0 && s[j-1] == '\\'; j-- {
		}
		quoted, quote = true, s[j:end]
	}
	name := j
	for name > 0 && j-name < maxNameLength && (isToken(s[name-1]) || s[name-1] == ' ' && quoted && j-name < 32) {
		name--
	}
	if name == j || !SecretName(s[name:j]) {
		return 0, 0, mask
	}

	v := i + 1
	for v < len(s) && (s[v] == ' ' || s[v] == '\t' || quoted && (s[v] == '\n' || s[v] == '\r')) {
		v++
	}
	if quoted && v < len(s) && s[v] == '[' { // a list of secrets is masked as a whole
		return listAt(s, v)
	}
	q := v
	for q < len(s) && s[q] == '\\' {
		q++
	}
	if q < len(s) && (s[q] == '"' || s[q] == '\'') {
		end := closingQuote(s, q+1, s[q], q-v)
		if body := s[q+1 : end]; body == "" || body == Redacted {
			return 0, 0, mask
		}
		return q + 1, end, mask
	}
	if quoted {
		return numberAt(s, v, quote)
	}
	start, end = bareAt(s, v, s[i], s[name:j])
	return start, end, mask
}

// flagAt returns the value of a command-line flag with a secret name, as in
// --api-key VALUE or "--api-key", "VALUE".
func flagAt(s string, i int) (start, end int) {
	j := i + 2
	for j < len(s) && j-i < maxNameLength && (isWord(s[j]) || s[j] == '-') {
		j++
	}
	if !SecretName(s[i+2 : j]) {
		return 0, 0
	}
	// Skip what separates two arguments: spaces, or the end of one string of
	// a list and the beginning of the next.
	v, quotes, level := j, 0, 0
	for v < len(s) && v-j < 32 && strings.IndexByte(" \t\n\r,\\\"", s[v]) >= 0 {
		switch s[v] {
		case '"':
			quotes++
		case '\\':
			if quotes == 1 {
				level++
			}
		}
		v++
	}
	switch {
	case v == j || v == len(s) || s[v] == '-':
		return 0, 0
	case quotes == 2:
		end := closingQuote(s, v, '"', level)
		if s[v:end] == Redacted {
			return 0, 0
		}
		return v, end
	case quotes != 0:
		return 0, 0
	}
	e := v
	for e < len(s) && !endsBare(s[e], false) {
		e++
	}
	if !random(s[v:e]) || masked(s[v:]) {
		return 0, 0
	}
	return v, e
}

// masked reports whether a value is already masked.
func masked(value string) bool {
	rest, ok := strings.CutPrefix(value, Redacted)
	return ok && (rest == "" || endsBare(rest[0], false))
}

// listAt masks a whole list of strings: "cookie": ["a", "b"].
func listAt(s string, v int) (start, end int, mask string) {
	first, count := -1, 0
	for i := v + 1; i < len(s); i++ {
		switch c := s[i]; c {
		case ' ', '\t', '\n', '\r', ',':
		case '\\':
		case '"':
			level := 0
			for j := i; j > v && s[j-1] == '\\'; j-- {
				level++
			}
			if first < 0 {
				first = i + 1
			}
			count++
			i = closingQuote(s, i+1, '"', level)
			end = i
			if i < len(s) && s[i] == '\\' {
				i += level
			}
		default:
			// The end of the list, or an element that is not a string.
			if count == 0 || s[first:end] == Redacted {
				return 0, 0, Redacted
			}
			return first, end, Redacted
		}
	}
	if count == 0 {
		return 0, 0, Redacted
	}
	return first, end, Redacted
}

// numberAt masks a number after a quoted name. The mask is a string, so that
// the JSON stays valid.
func numberAt(s string, v int, quote string) (start, end int, mask string) {
	e := v
	for e < len(s) && (isAlnum(s[e]) || s[e] == '.' || s[e] == '-' || s[e] == '+') {
		e++
	}
	if e == v || !('0' <= s[v] && s[v] <= '9' || s[v] == '-') {
		return 0, 0, Redacted // an object, true, null …
	}
	return v, e, quote + Redacted + quote
}

// bareAt returns an unquoted value. After an equals sign any value is accepted;
// after a colon it may be prose, so it must look like a credential.
func bareAt(s string, v int, separator byte, name string) (start, end int) {
	const enough = 256
	line := separator == ':' && (strings.EqualFold(name, "cookie") || strings.EqualFold(name, "set-cookie"))
	e := v
	for e < len(s) && (line || e < v+enough || separator == '=') && !endsBare(s[e], line) {
		e++
	}
	body := s[v:e]
	switch {
	case body == "" || masked(s[v:]):
		return 0, 0
	case separator == '=' || line || random(body):
		for e < len(s) && !endsBare(s[e], line) {
			e++
		}
		return v, e
	}
	return 0, 0
}

func endsBare(c byte, line bool) bool {
	switch c {
	case '\n', '\r', '"', '\\', '\'', '`':
		return true
	case ' ', '\t', '&', ';', ',', ')', ']', '}', '<', '>', '{', '(', '|':
		return !line
	}
	return false
}

// closingQuote returns the end of the string that was opened by a quote after
// the given number of backslashes: the index of the closing quote's first
// backslash, or of the quote itself.
func closingQuote(s string, from int, quote byte, backslashes int) int {
	level := 0
	for b := backslashes; b%2 == 1; b = (b - 1) / 2 {
		level++
	}
	for i := from; i < len(s); i++ {
		if s[i] != quote {
			continue
		}
		run := 0
		for i-run-1 >= from && s[i-run-1] == '\\' {
			run++
		}
		if end, ok := closes(run, level); ok {
			return i - end
		}
	}
	return len(s)
}

// closes reports whether a quote after run backslashes ends a string that is
// nested level deep in other strings, or one of these. own is the number of
// backslashes that belong to the quote rather than to the string.
func closes(run, level int) (own int, ok bool) {
	for l := 0; l < level; l++ {
		if run%2 == 0 {
			return own, true // it ends an enclosing string
		}
		run, own = (run-1)/2, 2*own+1
	}
	return own, run%2 == 0
}
