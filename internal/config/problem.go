package config

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Problem is one thing that is wrong, and where.
type Problem struct {
	File   string `json:"file,omitempty"` // empty when no file is to blame
	Line   int    `json:"line,omitempty"` // from 1; 0 when the file as a whole is meant
	Column int    `json:"column,omitempty"`
	Key    string `json:"key,omitempty"` // as the file writes it: mcpServers.github.url
	Msg    string `json:"message"`
}

// String returns the problem in the format of compiler errors, so that editors
// can jump to it.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
		}
		b.WriteString(": ")
	}
	if p.Key != "" {
		b.WriteString(p.Key)
		b.WriteString(": ")
	}
	b.WriteString(p.Msg)
	return b.String()
}

// Note is a warning: something that the user should know but that is not an
// error.
type Note = Problem

// Error is everything that is wrong with a configuration.
type Error struct {
	Problems []Problem
}

// Error lists the problems, one per line.
func (e *Error) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return strings.Join(lines, "\n")
}

// OfFlags reports whether only flags of the command line are wrong.
func (e *Error) OfFlags() bool {
	return !slices.ContainsFunc(e.Problems, func(p Problem) bool { return !strings.HasPrefix(p.Key, "--") })
}

// maxProblems bounds the number of problems that are reported.
const maxProblems = 100

// sorted sorts problems by position, and removes duplicates and those beyond
// maxProblems.
func sorted(ps []Problem) []Problem {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			cmp.Compare(a.Key, b.Key), cmp.Compare(a.Msg, b.Msg))
	})
	ps = slices.Compact(ps)
	if n := len(ps); n > maxProblems {
		ps = append(ps[:maxProblems:maxProblems], Problem{Msg: fmt.Sprintf("and %d more", n-maxProblems)})
	}
	return ps
}

// UntrustedError means that a file was found rather than named and is not
// trusted.
type UntrustedError struct {
	Request TrustRequest
	Asked   bool // a person was asked and declined
}

// Error explains why the file is not used and how to use it.
func (e *UntrustedError) Error() string {
	file := filepath.Base(e.Request.Path)
	if e.Asked {
		return fmt.Sprintf("%s is not used, because it is not trusted", e.Request.Path)
	}
	return fmt.Sprintf("%s was found in the current folder but is not trusted yet: it can start programs. "+
		"Check it, then run junctor once in a terminal here and confirm, or name it with --config %s", e.Request.Path, file)
}
