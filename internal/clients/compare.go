package clients

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"junctor/internal/child"
	"junctor/internal/config"
)

// State is how a found server relates to Junctor's configuration: not in it,
// the same, different under the same name, or Junctor itself.
type State string

// The states.
const (
	New     State = "new"     // Junctor does not have it
	Same    State = "same"    // Junctor has the same server
	Differs State = "differs" // Junctor has another server with that name
	Self    State = "self"    // it is Junctor itself
)

// Candidate is a server that can be imported.
type Candidate struct {
	Server
	State State    `json:"state"`
	As    string   `json:"as"`             // the name that it has, or would get, in Junctor's file
	Keys  []string `json:"keys,omitempty"` // the keys that differ
	Also  []File   `json:"also,omitempty"` // other files with the same server
}

// Compare returns the state of each found server and the name it would get in
// a file that has own. The same server in two clients is one candidate;
// different servers with the same name get different names. Servers are
// compared with the values of their variables, as returned by lookup: servers
// that differ only in a token are different.
func Compare(found []Found, own []config.Entry, lookup func(string) (string, bool)) []Candidate {
	have := map[string]map[string]any{}
	for _, e := range own {
		have[e.Name] = effectiveSettings(e.Server, lookup)
	}
	var all []Candidate
	for _, f := range found {
	next:
		for _, s := range f.Servers {
			is := effectiveSettings(s.JSON, lookup)
			for i := range all {
				if all[i].Name == s.Name && reflect.DeepEqual(effectiveSettings(all[i].JSON, lookup), is) {
					all[i].Also = append(all[i].Also, s.File)
					continue next
				}
			}
			c := Candidate{Server: s, State: New, As: s.Name}
			taken := slices.ContainsFunc(all, func(o Candidate) bool { return o.As == s.Name && o.State != Self })
			switch mine, exists := have[s.Name]; {
			case s.Self():
				c.State = Self
			case exists && reflect.DeepEqual(mine, is):
				c.State = Same
			default:
				if as, ok := findEqual(have, is); ok {
					c.State, c.As = Same, as
				} else if taken {
					c.As = freeName(s.Name+"-"+s.File.Client, all, have)
				} else if exists {
					c.State, c.Keys = Differs, differing(mine, is)
				}
			}
			all = append(all, c)
		}
	}
	return all
}

// RenameConflicts gives candidates whose name is taken by another server in
// Junctor's file a free name, so that both are kept.
func RenameConflicts(candidates []Candidate, own []config.Entry) []Candidate {
	have := map[string]map[string]any{}
	for _, e := range own {
		have[e.Name] = nil
	}
	all := slices.Clone(candidates)
	for i, c := range all {
		if c.State == Differs {
			all[i].State, all[i].Keys = New, nil
			all[i].As = freeName(c.Name+"-"+c.File.Client, all, have)
		}
	}
	return all
}

func findEqual(have map[string]map[string]any, is map[string]any) (string, bool) {
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if reflect.DeepEqual(have[name], is) {
			return name, true
		}
	}
	return "", false
}

func freeName(name string, all []Candidate, have map[string]map[string]any) string {
	name = config.LegalName(name)
	for n, try := 2, name; ; n++ {
		_, exists := have[try]
		if !exists && !slices.ContainsFunc(all, func(c Candidate) bool { return c.As == try }) {
			return try
		}
		try = fmt.Sprintf("%s-%d", name[:min(len(name), 60)], n)
	}
}

// effectiveSettings returns the settings of a server that are not defaults,
// with its variables replaced by their values. Variables without a value
// remain.
func effectiveSettings(raw json.RawMessage, lookup func(string) (string, bool)) map[string]any {
	var obj map[string]any
	expanded := mapStrings(raw, func(_, s string) string {
		return variableUse.ReplaceAllStringFunc(s, func(match string) string {
			if strings.HasPrefix(match, "$${") || lookup == nil {
				return match
			}
			name, fallback, hasDefault := strings.Cut(match[2:len(match)-1], ":-")
			if value, ok := lookup(name); ok && (value != "" || !hasDefault) {
				return value
			} else if hasDefault {
				return fallback
			}
			return match
		})
	})
	if json.Unmarshal(expanded, &obj) != nil {
		return nil
	}
	for key, value := range obj {
		switch v := value.(type) {
		case map[string]any:
			if len(v) == 0 {
				delete(obj, key)
			}
		case []any:
			if len(v) == 0 {
				delete(obj, key)
			}
		case bool:
			if key == "enabled" && v {
				delete(obj, key)
			}
		case string:
			if key == "transport" && (v == "stdio" && obj["command"] != nil || v == "auto") {
				delete(obj, key)
			}
		}
	}
	return obj
}

func differing(a, b map[string]any) []string {
	var keys []string
	for key := range a {
		if !reflect.DeepEqual(a[key], b[key]) {
			keys = append(keys, key)
		}
	}
	for key := range b {
		if _, ok := a[key]; !ok {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// Self reports whether the server is Junctor itself, which must not be
// imported because it would create a loop. Every server with that name counts,
// because connect may have written any URL.
func (s Server) Self() bool {
	var e struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
		URL     string   `json:"url"`
	}
	if json.Unmarshal(s.JSON, &e) != nil {
		return false
	}
	base := child.ProgramName(e.Command)
	if i := slices.IndexFunc(e.Args, func(a string) bool { return !strings.HasPrefix(a, "/") }); base == "cmd" && i >= 0 {
		base = child.ProgramName(e.Args[i]) // Windows starts scripts as cmd /c npx …
	}
	if s.Original == "junctor" || base == "junctor" {
		return true
	}
	if base == "npx" || base == "bunx" || base == "pnpm" {
		return slices.ContainsFunc(e.Args, func(a string) bool { return a == "junctor" || strings.HasPrefix(a, "junctor@") })
	}
	for _, host := range []string{"http://127.0.0.1:8787/", "http://localhost:8787/", "http://[::1]:8787/"} {
		if strings.HasPrefix(e.URL, host) {
			return true
		}
	}
	return false
}
