package config

import (
	"fmt"
	"strings"

	"junctor/internal/telemetry"
)

// parseDotenv reads NAME=value lines: comments, an optional "export", single
// quotes (taken as they are), double quotes (with \n \r \t \" \\ \$), and
// values over several lines inside quotes. Values are not expanded.
func parseDotenv(src *source) (map[string]string, []Problem) {
	vars := map[string]string{}
	var problems []Problem
	data := string(src.data)
	for at := 0; at < len(data); {
		end := strings.IndexByte(data[at:], '\n')
		if end < 0 {
			end = len(data) - at
		}
		line := data[at : at+end]
		start := at
		at += end + 1

		trimmed := strings.TrimSpace(line)
		if trimmed == "" || trimmed[0] == '#' {
			continue
		}
		body := strings.TrimLeft(line, " \t")
		if rest, ok := strings.CutPrefix(body, "export "); ok {
			body = strings.TrimLeft(rest, " \t")
		}
		name, raw, ok := strings.Cut(body, "=")
		name = strings.TrimSpace(name)
		if !ok || !isVariable(name) {
			problems = append(problems, src.at(start, "", "is not a line of the form NAME=value"))
			continue
		}
		raw = strings.TrimLeft(raw, " \t")
		if raw == "" || raw[0] != '"' && raw[0] != '\'' {
			vars[name] = unquoted(raw)
			continue
		}
		// A quoted value may run over the end of the line.
		open := start + len(line) - len(raw)
		value, used, closed := quoted(data[open:])
		if !closed {
			problems = append(problems, src.at(open, name, "the quote is not closed"))
			continue
		}
		vars[name] = value
		if after := open + used; after > at {
			at = len(data)
			if i := strings.IndexByte(data[after:], '\n'); i >= 0 {
				at = after + i + 1
			}
		}
	}
	return vars, problems
}

// unquoted ends a bare value at a comment that follows a space.
func unquoted(raw string) string {
	if raw == "" || raw[0] == '#' {
		return ""
	}
	for i := 1; i < len(raw); i++ {
		if raw[i] == '#' && (raw[i-1] == ' ' || raw[i-1] == '\t') {
			raw = raw[:i]
			break
		}
	}
	return strings.TrimSpace(raw)
}

// quoted reads a quoted value at the start of s and says how long it was.
func quoted(s string) (value string, used int, closed bool) {
	quote := s[0]
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == quote:
			return b.String(), i + 1, true
		case s[i] == '\\' && quote == '"' && i+1 < len(s):
			i++
			if j := strings.IndexByte(`nrt"\$`, s[i]); j >= 0 {
				b.WriteByte("\n\r\t\"\\$"[j])
			} else {
				b.WriteByte('\\')
				b.WriteByte(s[i])
			}
		default:
			b.WriteByte(s[i])
		}
	}
	return "", 0, false
}

// isVariable reports whether s can name an environment variable in ${…}.
func isVariable(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c == '_' || i > 0 && '0' <= c && c <= '9') {
			return false
		}
	}
	return s != ""
}

// environment is what the caller lets us see, the .env file beside the
// configuration, that of the working folder, and keys that the configuration
// itself brings, in that order.
type environment struct {
	real    func(string) (string, bool)
	dotenv  map[string]string
	folder  map[string]string
	inFile  map[string]string
	secrets []telemetry.Secret // values of variables that were used and are secret

	own       map[string]string // variables that were used with a value of the real environment alone
	unset     bool              // a variable was used that has no value
	defaulted bool              // a variable was used by its default

	// ofFolder are the variables of the working folder that were looked up
	// while the configuration was loaded; nil afterwards.
	ofFolder map[string]bool
}

// use records that the configuration took a variable's value from there. A
// value that .env has too is the same for everyone who reads the file.
func (e *environment) use(name, value, from string) {
	if shared, ok := e.dotenv[name]; from != fromEnvironment && from != fromFolder || ok && shared == value {
		return
	}
	if e.own == nil {
		e.own = map[string]string{}
	}
	e.own[name] = value
}

// The places a variable can be from, as the user is told.
const (
	fromEnvironment = "environment"
	fromDotenv      = ".env"
	fromFolder      = ".env of the working folder"
	fromFile        = "file"
)

// lookup returns a variable and where it is from.
func (e *environment) lookup(name string) (value, from string, ok bool) {
	if e.real != nil {
		if v, ok := e.real(name); ok {
			return v, fromEnvironment, true
		}
	}
	if v, ok := e.dotenv[name]; ok {
		return v, fromDotenv, true
	}
	if v, ok := e.folder[name]; ok {
		if e.ofFolder != nil {
			e.ofFolder[name] = true
		}
		return v, fromFolder, true
	}
	if v, ok := e.inFile[name]; ok {
		return v, fromFile, true
	}
	return "", "", false
}

// describe names a variable and where it is from, for people.
func describe(name, from string) string { return fmt.Sprintf("%s (%s)", name, from) }
