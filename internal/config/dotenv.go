package config

import (
	"fmt"
	"strings"

	"junctor/internal/telemetry"
)

// parseDotenv parses NAME=value lines. It supports comments, an optional
// "export", single quotes (without escapes), double quotes (with \n \r \t \" \\
// \$), and quoted values of several lines. Variables in values are not
// expanded.
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
		// A quoted value may span several lines.
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

// unquoted returns an unquoted value without the comment that may follow it
// after a space or a tab.
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

// quoted parses a quoted value at the start of s and returns its length in s.
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

// environment is the variables of the real environment as passed by the caller,
// of the .env beside the configuration file, of the .env in the working folder,
// and of keys in the configuration itself, in order of precedence.
type environment struct {
	real    func(string) (string, bool)
	dotenv  map[string]string
	folder  map[string]string
	inFile  map[string]string
	secrets []telemetry.Secret // values of secret variables that were used

	own        map[string]string // used variables whose value is not in dotenv; see use
	literalKey bool              // a value of inFile is in the file itself, not in a variable
	unset      bool              // a variable was used that is not set
	defaulted  bool              // the default of a variable was used

	// ofFolder are the variables of the working folder that were looked up
	// while the configuration was loaded; nil afterwards.
	ofFolder map[string]bool
}

// use records that the configuration uses a variable with a value of the real
// environment or the working folder. It ignores a value that the .env beside the
// file has too, because that is the same for every process that reads the file.
func (e *environment) use(name, value, from string) {
	if shared, ok := e.dotenv[name]; from != fromEnvironment && from != fromFolder || ok && shared == value {
		return
	}
	if e.own == nil {
		e.own = map[string]string{}
	}
	e.own[name] = value
}

// Sources of variables, for display.
const (
	fromEnvironment = "environment"
	fromDotenv      = ".env"
	fromFolder      = ".env of the working folder"
	fromFile        = "file"
)

// lookup returns the value of a variable and its source.
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

// describe returns the name of a variable with its source, for display.
func describe(name, from string) string { return fmt.Sprintf("%s (%s)", name, from) }
