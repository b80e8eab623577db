package tool

import (
	"fmt"
	"slices"
	"strings"
)

// Glob reports whether name matches pattern, in which * matches any sequence of
// characters and ? matches one byte. Nothing else is special, because names may
// contain slashes, dots and brackets.
func Glob(pattern, name string) bool {
	p, n := 0, 0
	star, mark := -1, 0 // position of the last *, and where its match in name ends
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

// Selects reports whether name matches one of the patterns and none of those
// that begin with "!". The order of the patterns does not matter. If all begin
// with "!" they select nothing.
func Selects(patterns []string, name string) bool {
	return selects(patterns, func(p string) bool { return Glob(p, name) })
}

// SelectsAny reports whether the patterns select one of the names and exclude
// none of them.
func SelectsAny(patterns, names []string) bool {
	return selects(patterns, func(p string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return Glob(p, name) })
	})
}

func selects(patterns []string, match func(pattern string) bool) bool {
	selected := false
	for _, p := range patterns {
		if excluded, ok := strings.CutPrefix(p, "!"); ok {
			if match(excluded) {
				return false
			}
		} else if !selected {
			selected = match(p)
		}
	}
	return selected
}

// CheckGlobs returns an error if the patterns select nothing because all of
// them exclude. An empty list is valid.
func CheckGlobs(patterns []string) error {
	if len(patterns) > 0 && !slices.ContainsFunc(patterns, func(p string) bool { return !strings.HasPrefix(p, "!") }) {
		return fmt.Errorf(`%q excludes only, and so selects nothing; add "*" for all others`, patterns)
	}
	return nil
}

// MayUse reports whether the caller may see and call the tool.
func (c *Caller) MayUse(n Name) bool {
	own := Grant{Servers: c.Servers, Tools: c.Tools, Profiles: c.Profiles}
	return own.covers(n) && (len(c.Grants) == 0 || slices.ContainsFunc(c.Grants, func(g Grant) bool { return g.covers(n) }))
}

// MaySee reports whether the caller may see the server. A server is hidden from
// a caller that could not use any of its tools.
func (c *Caller) MaySee(server string) bool {
	own := Grant{Servers: c.Servers, Tools: c.Tools, Profiles: c.Profiles}
	return own.shows(server) && (len(c.Grants) == 0 || slices.ContainsFunc(c.Grants, func(g Grant) bool { return g.shows(server) }))
}

// Excludes reports whether a glob that begins with "!" excludes the tool for
// the caller. Tools of the gateway itself, such as junctor:run_code, need no
// glob that selects them, but can be excluded.
func (c *Caller) Excludes(n Name) bool {
	own := Grant{Servers: c.Servers, Tools: c.Tools, Profiles: c.Profiles}
	return own.excludes(n) || len(c.Grants) > 0 && !slices.ContainsFunc(c.Grants, func(g Grant) bool { return !g.excludes(n) })
}

func (g Grant) excludes(n Name) bool {
	return Excluded(g.Servers, g.Tools, n) || slices.ContainsFunc(g.Profiles, func(p Profile) bool { return p.Excludes(n) })
}

// Excluded reports whether a glob over servers or over server:tool excludes the
// tool.
func Excluded(servers, tools []string, n Name) bool {
	excludes := func(patterns []string, match func(pattern string) bool) bool {
		return slices.ContainsFunc(patterns, func(p string) bool {
			excluded, ok := strings.CutPrefix(p, "!")
			return ok && match(excluded)
		})
	}
	return excludes(servers, func(p string) bool { return Glob(p, n.Server) }) || excludes(tools, func(p string) bool { return matchTool(p, n) })
}

// Limited reports whether the caller's rights are limited by globs, grants or
// profiles.
func (c *Caller) Limited() bool {
	return c.Servers != nil || c.Tools != nil || len(c.Grants) > 0 || len(c.Profiles) > 0
}

func (g Grant) covers(n Name) bool {
	return (g.Servers == nil || Selects(g.Servers, n.Server)) && (g.Tools == nil || SelectsTool(g.Tools, n)) && g.Profiles.allow(n)
}

// SelectsTool is [Selects] for patterns over server:tool. The part before the
// first colon matches only the server's name: *-test:read does not select a
// tool named "x-test:read" of another server.
func SelectsTool(patterns []string, n Name) bool {
	return selects(patterns, func(p string) bool { return matchTool(p, n) })
}

func matchTool(pattern string, n Name) bool {
	if server, name, ok := strings.Cut(pattern, ":"); ok {
		return Glob(server, n.Server) && Glob(name, n.Tool)
	}
	return Glob(pattern, n.String())
}

func (g Grant) shows(server string) bool {
	return (g.Servers == nil || Selects(g.Servers, server)) && (g.Tools == nil || SelectsServer(g.Tools, server)) && g.Profiles.show(server)
}

// SelectsServer reports whether patterns over server:tool could select a tool
// of the server.
func SelectsServer(patterns []string, server string) bool {
	selected := false
	for _, p := range patterns {
		if excluded, ok := strings.CutPrefix(p, "!"); ok {
			// No tool has these names: only wildcards match both.
			if matchTool(excluded, Name{server, "\x00"}) && matchTool(excluded, Name{server, "\x00\x00"}) {
				return false
			}
			continue
		}
		own, name, ok := strings.Cut(p, ":")
		if ok && name != "" && Glob(own, server) || !ok && couldMatch(p, server+":") {
			selected = true
		}
	}
	return selected
}

// couldMatch reports whether the pattern matches some name that begins with
// prefix and is longer.
func couldMatch(pattern, prefix string) bool {
	for i := 0; i < len(pattern); i++ {
		switch {
		case pattern[i] == '*':
			// The star can match the rest of the prefix, and more.
			return true
		case i == len(prefix):
			return true
		case pattern[i] != '?' && pattern[i] != prefix[i]:
			return false
		}
	}
	return false
}
