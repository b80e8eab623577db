package config

import (
	"fmt"
	"path/filepath"
	"strings"
)

// expansion knows what ${…} can stand for.
type expansion struct {
	env       *environment
	home      string
	workspace string // what VS Code and Cursor call ${workspaceFolder}
}

// maxExpanded bounds a string after expansion.
const maxExpanded = 1 << 20

// expand replaces ${VAR} and ${VAR:-default}; $${ stands for ${. It returns
// the variables that were used, and everything that is wrong.
func (x *expansion) expand(s string) (out string, vars []string, wrong []string) {
	if !strings.Contains(s, "${") {
		return s, nil, nil
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
			wrong = append(wrong, "${ is not closed; write $${ where ${ itself is meant")
			s = s[i:]
			break
		}
		body := s[i+2 : i+end]
		s = s[i+end+1:]
		value, used, msg := x.one(body)
		if msg != "" {
			wrong = append(wrong, msg)
		}
		if used != "" {
			vars = append(vars, used)
		}
		b.WriteString(value)
		if b.Len() > maxExpanded {
			return "", vars, append(wrong, fmt.Sprintf("is longer than %d bytes when its variables are expanded", maxExpanded))
		}
	}
	b.WriteString(s)
	return b.String(), vars, wrong
}

// one returns what a single ${body} stands for.
func (x *expansion) one(body string) (value, used, wrong string) {
	name, fallback, hasDefault := strings.Cut(body, ":-")
	kind, arg, prefixed := strings.Cut(name, ":")
	switch {
	case prefixed && kind == "env":
		// Cursor, VS Code and Windsurf write ${env:NAME}.
		name = arg
	case prefixed && kind == "input":
		return "", "", fmt.Sprintf("${input:%s} is a question that VS Code asks; Junctor asks nothing here. Use a variable: ${%s}", arg, variableName(arg))
	case prefixed:
		return "", "", fmt.Sprintf("${%s} is not known here; use an environment variable: ${NAME}", body)
	case !hasDefault:
		if v, ok := x.predefined(name); ok {
			return v, "", ""
		}
	}
	if !isVariable(name) {
		return "", "", fmt.Sprintf("${%s} does not name a variable; write ${NAME} or ${NAME:-default}, or $${ where ${ itself is meant", body)
	}
	v, from, ok := x.env.lookup(name)
	switch {
	case hasDefault && v == "":
		return fallback, "", ""
	case !ok:
		return "", "", fmt.Sprintf("the variable %s is not set; set it in the environment or in .env beside this file, or write ${%s:-default}", name, name)
	}
	return v, describe(name, from), ""
}

// predefined are the variables of VS Code and Cursor that have a meaning for
// a file on disk.
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

// variableName makes the name of a variable from an id such as github-token.
func variableName(id string) string {
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

// expandTree expands every string under n and hands what is wrong to report.
func (x *expansion) expandTree(n *node, report func(n *node, msg string)) {
	switch n.kind {
	case str:
		out, vars, wrong := x.expand(n.text)
		n.value, n.vars = out, vars
		for _, msg := range wrong {
			report(n, msg)
		}
	case array:
		for _, e := range n.elems {
			x.expandTree(e, report)
		}
	case object:
		for _, m := range n.members {
			x.expandTree(m.value, report)
		}
	}
}
