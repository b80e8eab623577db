package config

import (
	"fmt"
	"path/filepath"
	"strings"

	"junctor/internal/telemetry"
)

// expansion expands ${…}.
type expansion struct {
	env       *environment
	home      string
	workspace string // ${workspaceFolder} of VS Code and Cursor
}

// maxExpanded is the maximum length of a string after expansion.
const maxExpanded = 1 << 20

// unset is a message about a variable without a value. The syntax of a default
// has NAME, because the redactor would mask the default of a variable such as
// GITHUB_TOKEN.
const unset = "environment variable %s is not set; export it, put it into .env next to this file, or give it a default: ${NAME:-default}"

// expanded is a string after expansion.
type expanded struct {
	text  string
	vars  []string // variables that were used
	unset []string // variables that are not set
	wrong []string // messages about other problems
}

// expand replaces ${VAR} and ${VAR:-default}; $${ stands for ${.
func (x *expansion) expand(s string) (out expanded) {
	if !strings.Contains(s, "${") {
		return expanded{text: s}
	}
	var b strings.Builder
	for {
		i := strings.Index(s, "${")
		if i < 0 {
			break
		}
		if i > 0 && s[i-1] == '$' {
			b.WriteString(s[:i-1])
			b.WriteString("${")
			s = s[i+2:]
			continue
		}
		b.WriteString(s[:i])
		end := strings.IndexByte(s[i:], '}')
		if end < 0 {
			out.wrong = append(out.wrong, "${ is not closed; write $${ for a literal ${")
			s = s[i:]
			break
		}
		body := s[i+2 : i+end]
		s = s[i+end+1:]
		b.WriteString(x.variable(body, &out))
		if b.Len() > maxExpanded {
			out.wrong = append(out.wrong, fmt.Sprintf("is longer than %d bytes when its variables are expanded", maxExpanded))
			return out
		}
	}
	b.WriteString(s)
	out.text = b.String()
	return out
}

// variable returns the value of a single ${body}, and records in out the
// variable that was used or the problem.
func (x *expansion) variable(body string, out *expanded) string {
	wrong := func(format string, args ...any) string {
		out.wrong = append(out.wrong, fmt.Sprintf(format, args...))
		return ""
	}
	name, fallback, hasDefault := strings.Cut(body, ":-")
	kind, arg, prefixed := strings.Cut(name, ":")
	switch {
	case prefixed && kind == "env":
		// Cursor, VS Code and Windsurf write ${env:NAME}.
		name = arg
	case prefixed && kind == "input":
		return wrong("${input:%s} is a prompt of VS Code, which Junctor does not have; use a variable: ${%s}", arg, VariableName(arg))
	case prefixed:
		return wrong("${%s} is not supported; use an environment variable: ${NAME}", body)
	case !hasDefault:
		if v, ok := x.predefined(name); ok {
			return v
		}
	}
	if !isVariable(name) {
		return wrong("${%s} does not name a variable; write ${NAME} or ${NAME:-default}, or $${ for a literal ${", body)
	}
	v, from, ok := x.env.lookup(name)
	switch {
	case hasDefault && v == "":
		x.env.defaulted = true
		return fallback
	case !ok:
		x.env.unset = true
		out.unset = append(out.unset, name)
		return ""
	}
	x.env.use(name, v, from)
	out.vars = append(out.vars, describe(name, from))
	if isSecret(name, v) {
		x.env.secrets = append(x.env.secrets, telemetry.Secret(v))
	}
	return v
}

// predefined returns the value of a predefined variable of VS Code and Cursor
// that is meaningful for a file on disk.
func (x *expansion) predefined(name string) (string, bool) {
	switch name {
	case "workspaceFolder", "workspaceRoot":
		return x.workspace, x.workspace != ""
	case "workspaceFolderBasename":
		return filepath.Base(x.workspace), x.workspace != ""
	case "userHome":
		return x.home, x.home != ""
	case "pathSeparator", "/":
		return string(filepath.Separator), true
	}
	return "", false
}

// VariableName returns the name of a variable for an id such as github-token.
func VariableName(id string) string {
	var b strings.Builder
	for _, r := range strings.ToUpper(id) {
		switch {
		case r == '_' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' && b.Len() > 0:
			b.WriteRune(r)
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
	}
	if name := strings.TrimRight(b.String(), "_"); name != "" {
		return name
	}
	return "NAME"
}

// expandTree expands every string in the tree of n. It calls report with
// problems and missing with the names of variables that are not set.
func (x *expansion) expandTree(n *node, report, missing func(n *node, msg string)) {
	switch n.kind {
	case str:
		out := x.expand(n.text)
		n.value, n.vars = out.text, out.vars
		for _, msg := range out.wrong {
			report(n, msg)
		}
		for _, name := range out.unset {
			missing(n, name)
		}
	case array:
		for _, e := range n.elems {
			x.expandTree(e, report, missing)
		}
	case object:
		for _, m := range n.members {
			x.expandTree(m.value, report, missing)
		}
	}
}
