package tool

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
	return c.MaySee(n.Server) && (c.Tools == nil || MatchAny(c.Tools, n.String()))
}

// MaySee reports whether the caller may see the server at all.
func (c *Caller) MaySee(server string) bool {
	return c.Servers == nil || MatchAny(c.Servers, server)
}
