package openapi

import (
	"fmt"
	"regexp"
	"strings"
)

// Filter selects operations by glob: "issues/*" matches operation ids, and
// "GET /repos/**" methods and paths. One asterisk matches within a path
// segment, two match across segments. Without Include all operations are
// selected.
type Filter struct {
	Include, Exclude []string
}

// compile returns a function that reports whether an operation is selected.
func (f Filter) compile() (func(id, method, path string) bool, error) {
	include, err := globs(f.Include)
	if err != nil {
		return nil, err
	}
	exclude, err := globs(f.Exclude)
	if err != nil {
		return nil, err
	}
	return func(id, method, path string) bool {
		return (len(include) == 0 || matches(include, id, method, path)) && !matches(exclude, id, method, path)
	}, nil
}

type glob struct {
	method  string // upper case, or "*"; empty for an operation id
	pattern *regexp.Regexp
}

func matches(list []glob, id, method, path string) bool {
	for _, g := range list {
		switch {
		case g.method == "":
			if id != "" && g.pattern.MatchString(id) {
				return true
			}
		case (g.method == "*" || g.method == method) && g.pattern.MatchString(path):
			return true
		}
	}
	return false
}

func globs(patterns []string) ([]glob, error) {
	var out []glob
	for _, p := range patterns {
		g := glob{}
		text := strings.TrimSpace(p)
		if method, path, found := strings.Cut(text, " "); found {
			g.method, text = strings.ToUpper(method), strings.TrimSpace(path)
		} else if strings.HasPrefix(text, "/") {
			g.method = "*"
		}
		if text == "" {
			return nil, fmt.Errorf("%q selects nothing; write an operation id or a method and a path, with * and ** as wildcards", p)
		}
		quoted := regexp.QuoteMeta(text)
		quoted = strings.ReplaceAll(quoted, `\*\*`, `.*`)
		quoted = strings.ReplaceAll(quoted, `\*`, `[^/]*`)
		re, err := regexp.Compile("^" + quoted + "$")
		if err != nil {
			return nil, fmt.Errorf("%q: %w", p, err)
		}
		g.pattern = re
		out = append(out, g)
	}
	return out, nil
}
