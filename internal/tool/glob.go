package tool

import (
	"slices"
	"strings"
)

// Glob reports whether name matches pattern, in which * stands for any run of
// characters and ? for one. Nothing else is special: the names that it is
// matched against may hold slashes, dots and brackets.
func Glob(pattern, name string) bool {
	p, n := 0, 0
	star, mark := -1, 0 // where to go on after the last *, and what it has eaten
	for n < len(name) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, n
			p++
		case p < len(pattern) && (pattern[p] == '?' || pattern[p] == name[n]):
			p++
			n++
		case star >= 0:
			mark++
			p, n = star+1, mark
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// MatchAny reports whether one of the patterns matches name.
func MatchAny(patterns []string, name string) bool {
	for _, p := range patterns {
		if Glob(p, name) {
			return true
		}
	}
	return false
}

// MayUse reports whether the caller may see and call the tool.
func (c *Caller) MayUse(n Name) bool {
	own := Grant{c.Servers, c.Tools}
	return own.covers(n) && (len(c.Grants) == 0 || slices.ContainsFunc(c.Grants, func(g Grant) bool { return g.covers(n) }))
}

// MaySee reports whether the caller may see the server at all: one of whose
// tools none could be used does not exist for it.
func (c *Caller) MaySee(server string) bool {
	own := Grant{c.Servers, c.Tools}
	return own.shows(server) && (len(c.Grants) == 0 || slices.ContainsFunc(c.Grants, func(g Grant) bool { return g.shows(server) }))
}

// Limited reports whether there are servers or tools that the caller may not
// use.
func (c *Caller) Limited() bool { return c.Servers != nil || c.Tools != nil || len(c.Grants) > 0 }

func (g Grant) covers(n Name) bool {
	return (g.Servers == nil || MatchAny(g.Servers, n.Server)) && (g.Tools == nil || slices.ContainsFunc(g.Tools, func(p string) bool { return matchTool(p, n) }))
}

// matchTool reports whether the pattern covers the tool. What stands before a
// colon is the server's: *-test:read is no tool "x-test:read" of another.
func matchTool(pattern string, n Name) bool {
	if server, name, ok := strings.Cut(pattern, ":"); ok {
		return Glob(server, n.Server) && Glob(name, n.Tool)
	}
	return Glob(pattern, n.String())
}

func (g Grant) shows(server string) bool {
	return (g.Servers == nil || MatchAny(g.Servers, server)) && (g.Tools == nil || coversServer(g.Tools, server))
}

// coversServer reports whether one of the patterns could match a tool of the
// server.
func coversServer(patterns []string, server string) bool {
	for _, p := range patterns {
		own, name, ok := strings.Cut(p, ":")
		if ok && name != "" && Glob(own, server) || !ok && couldMatch(p, server+":") {
			return true
		}
	}
	return false
}

// couldMatch reports whether the pattern matches a name that begins with
// prefix and goes on.
func couldMatch(pattern, prefix string) bool {
	for i := 0; i < len(pattern); i++ {
		switch {
		case pattern[i] == '*':
			// What is left of the prefix may be eaten whole, and anything may
			// follow.
			return true
		case i == len(prefix):
			return true
		case pattern[i] != '?' && pattern[i] != prefix[i]:
			return false
		}
	}
	return false
}
