package clients

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"junctor/internal/config"
	"junctor/internal/telemetry"
)

// Mask returns the text of a client's file for display, with the secrets of
// its servers replaced.
func (f File) Mask(text []byte) []byte {
	raw, err := serversIn(f, text)
	if err != nil || raw == nil {
		return text
	}
	entries, _ := entriesIn(f, raw) // of an invalid file, those that could be read
	var secrets []Secret
	for _, e := range entries {
		secrets = append(secrets, findSecrets(e.Name, e.Server)...)
	}
	var all any
	if json.Unmarshal(raw, &all) == nil {
		secrets = append(secrets, otherSecrets("", all, secrets)...)
	}
	return mask(text, secrets)
}

// otherSecrets returns the strings in v that look like secrets other than the
// known ones: those of keys that Junctor does not use.
func otherSecrets(name string, v any, known []Secret) (all []Secret) {
	switch v := v.(type) {
	case string:
		rest, found := v, false
		for _, s := range known { // the end of an argument or a header, or a parameter of a URL
			secret := s.value.Reveal()
			before, ends := strings.CutSuffix(v, secret)
			found = found || ends && (before == "" || strings.ContainsAny(before[len(before)-1:], " =:"))
			rest = strings.ReplaceAll(rest, secret, "")
		}
		if strings.Contains(v, "://") { // it may have other secrets, such as a password
			found = !config.LooksSecret(name, rest)
		}
		if !found && config.LooksSecret(name, v) {
			all = append(all, Secret{value: telemetry.Secret(v)})
		}
	case []any:
		for _, e := range v {
			all = append(all, otherSecrets(name, e, known)...)
		}
	case map[string]any:
		for name, e := range v {
			all = append(all, otherSecrets(name, e, known)...)
		}
	}
	return all
}

// minMasked is the minimum length of a secret that is masked: shorter ones
// would match parts of ordinary text.
const minMasked = 4

// mask replaces secrets in a text in JSON, TOML or YAML, however they are
// quoted there.
func mask(text []byte, secrets []Secret) []byte {
	var values []string
	for _, s := range secrets {
		// Space around a value may belong to the syntax, such as the end of a block in YAML.
		if value := strings.TrimSpace(s.value.Reveal()); len(value) >= minMasked {
			values = append(values, value)
		}
	}
	if len(values) == 0 {
		return text
	}
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) }) // one may begin with another
	var out []byte
	for rest := string(text); rest != ""; {
		n := 0
		for i := 0; i < len(values) && n == 0; i++ {
			n = quotedLen(rest, values[i])
		}
		if n > 0 {
			out = append(out, telemetry.Redacted...)
		} else {
			n = 1
			out = append(out, rest[0])
		}
		rest = rest[n:]
	}
	return out
}

// quotedLen returns the length of the value at the start of text, which may be
// inside quotes of any kind, or 0.
func quotedLen(text, value string) int {
	if text[0] != value[0] && text[0] != '\\' {
		return 0
	}
	return max(encodedLen(text, value, utf8.DecodeRuneInString), encodedLen(text, value, singleQuoted), encodedLen(text, value, doubleQuoted))
}

// encodedLen returns the length of the value at the start of text, of which
// next decodes the first character, or 0. Any space matches any other, because
// TOML and YAML wrap and indent lines.
func encodedLen(text, value string, next func(string) (rune, int)) int {
	rest := text
	for value != "" {
		want, size := utf8.DecodeRuneInString(value)
		got, n := next(rest)
		if n == 0 || got != want && !(unicode.IsSpace(got) && unicode.IsSpace(want)) {
			return 0
		}
		rest, value = rest[n:], value[size:]
		if unicode.IsSpace(want) {
			value = strings.TrimLeftFunc(value, unicode.IsSpace)
			for got, n = next(rest); n > 0 && unicode.IsSpace(got); got, n = next(rest) {
				rest = rest[n:]
			}
		}
	}
	return len(text) - len(rest)
}

// singleQuoted decodes the first character of a text in single quotes in YAML.
func singleQuoted(s string) (rune, int) {
	if strings.HasPrefix(s, "''") {
		return '\'', 2
	}
	return utf8.DecodeRuneInString(s)
}

// doubleQuoted decodes the first character of a text in double quotes in JSON,
// TOML or YAML. The length is 0 at the closing quote.
func doubleQuoted(s string) (rune, int) {
	if s == "" || s[0] != '\\' {
		r, n := utf8.DecodeRuneInString(s)
		if r == '"' {
			return 0, 0
		}
		return r, n
	}
	if end := strings.TrimLeft(s[1:], " \t\r"); strings.HasPrefix(end, "\n") { // the string continues in the next line
		next := strings.TrimLeftFunc(end, unicode.IsSpace)
		r, n := doubleQuoted(next)
		if n == 0 {
			return 0, 0
		}
		return r, len(s) - len(next) + n
	}
	switch {
	case strings.HasPrefix(s, `\/`), strings.HasPrefix(s, `\ `):
		return rune(s[1]), 2
	case strings.HasPrefix(s, `\e`):
		return '\x1b', 2
	case strings.HasPrefix(s, `\u`) && len(s) >= 12: // perhaps a surrogate pair
		var pair string
		if json.Unmarshal([]byte(`"`+s[:12]+`"`), &pair) == nil && utf8.RuneCountInString(pair) == 1 {
			r, _ := utf8.DecodeRuneInString(pair)
			return r, 12
		}
	}
	r, _, tail, err := strconv.UnquoteChar(s, '"')
	if err != nil {
		return 0, 0
	}
	return r, len(s) - len(tail)
}
