package catalog

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"junctor/internal/tool"
)

// Snapshot is the immutable state of the catalogue at one time. Callers must
// not modify it.
type Snapshot struct {
	Version uint64 // increases with every change

	servers    []*Server                 // by name
	configured map[string]ServerSettings // all servers of the configuration; nil if only those in servers are known
	byName     map[tool.Name]*Entry
	renamed    map[tool.Name]*Entry // renamed tools by original name; the others are only in byName
	byTool     map[string][]*Entry  // by unqualified name, ordered by server
}

func newSnapshot(version uint64, servers []*Server, configured map[string]ServerSettings) *Snapshot {
	n := 0
	for _, s := range servers {
		n += len(s.Tools)
	}
	snap := &Snapshot{
		Version:    version,
		servers:    servers,
		configured: configured,
		byName:     make(map[tool.Name]*Entry, n),
		byTool:     make(map[string][]*Entry, n),
	}
	for _, s := range servers {
		for _, e := range s.Tools {
			snap.byName[e.Name] = e
			if e.Name != e.Original.Name {
				if snap.renamed == nil {
					snap.renamed = map[tool.Name]*Entry{}
				}
				snap.renamed[e.Original.Name] = e
			}
			snap.byTool[e.Name.Tool] = append(snap.byTool[e.Name.Tool], e)
		}
	}
	return snap
}

// Servers returns the servers ordered by name.
func (s *Snapshot) Servers() []*Server { return s.servers }

// Server returns the named server, or nil.
func (s *Snapshot) Server(name string) *Server {
	i, ok := slices.BinarySearchFunc(s.servers, name, func(s *Server, name string) int { return strings.Compare(s.Name, name) })
	if !ok {
		return nil
	}
	return s.servers[i]
}

// Lookup returns the tool with the qualified name, or nil.
func (s *Snapshot) Lookup(n tool.Name) *Entry { return s.byName[n] }

// Original returns the tool with the original, qualified name n, or nil.
func (s *Snapshot) Original(n tool.Name) *Entry {
	if e := s.renamed[n]; e != nil {
		return e
	}
	if e := s.byName[n]; e != nil && e.Original.Name == n {
		return e
	}
	return nil
}

// Len returns the number of tools.
func (s *Snapshot) Len() int { return len(s.byName) }

// Visible calls yield for each enabled tool that the caller may use and that is
// for models, ordered by server and then as in the server's list.
func (s *Snapshot) Visible(caller *tool.Caller) func(yield func(*Entry) bool) {
	return func(yield func(*Entry) bool) {
		for _, server := range s.servers {
			for _, e := range server.Tools {
				if e.Enabled && !e.UI.AppsOnly && e.UsableBy(caller) && !yield(e) {
					return
				}
			}
		}
	}
}

// Resolve returns the tool that a caller names: by server and tool, by a
// qualified name, or by an unqualified name that only one server has. Tools
// that the caller may not see are neither found, nor listed as ambiguous, nor
// suggested. A disabled tool is found. For a server that is disabled the error
// says so.
func (s *Snapshot) Resolve(caller *tool.Caller, server, name string) (*Entry, error) {
	if server != "" {
		return s.resolveIn(caller, server, strings.TrimPrefix(name, server+":"))
	}
	if prefix, rest, ok := strings.Cut(name, ":"); ok {
		if e := s.byName[tool.Name{Server: prefix, Tool: rest}]; e != nil && e.UsableBy(caller) {
			return e, nil
		}
		if (s.Server(prefix) != nil || s.configured[prefix].Disabled) && caller.MaySee(prefix) && len(s.byTool[name]) == 0 {
			return s.resolveIn(caller, prefix, rest)
		}
	}
	found := slices.DeleteFunc(slices.Clone(s.byTool[name]), func(e *Entry) bool { return !e.UsableBy(caller) })
	if enabled := slices.DeleteFunc(slices.Clone(found), func(e *Entry) bool { return !e.Enabled }); len(enabled) > 0 {
		found = enabled // a disabled tool of the same name does not make the name ambiguous
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		near := s.Nearest(caller, name, 5)
		return nil, &tool.Error{
			Kind:    tool.ToolNotFound,
			Msg:     fmt.Sprintf("no tool named %q%s", name, DidYouMean(near)),
			Details: suggestions(near),
		}
	}
	names := make([]string, len(found))
	for i, e := range found {
		names[i] = e.Name.String()
	}
	return nil, &tool.Error{
		Kind:    tool.InvalidArguments,
		Msg:     fmt.Sprintf("%q is ambiguous; name the server too, one of: %s", name, strings.Join(names, ", ")),
		Details: map[string]any{"candidates": names},
	}
}

func (s *Snapshot) resolveIn(caller *tool.Caller, server, name string) (*Entry, error) {
	if s.Server(server) == nil || !caller.MaySee(server) {
		if s.configured[server].Disabled && caller.MaySee(server) {
			return nil, tool.ServerDisabledError(server)
		}
		return nil, s.ServerNotFoundError(caller, server)
	}
	if e := s.byName[tool.Name{Server: server, Tool: name}]; e != nil && e.UsableBy(caller) {
		return e, nil
	}
	near, hint := s.Nearest(caller, server+":"+name, 5), ""
	if len(near) == 0 {
		var own []string
		for _, e := range s.Server(server).Tools {
			if e.Enabled && e.UsableBy(caller) {
				own = append(own, e.Name.Tool)
			}
		}
		hint = allOf(own)
	}
	return nil, &tool.Error{
		Kind:    tool.ToolNotFound,
		Msg:     fmt.Sprintf("server %q has no tool %q%s%s", server, name, DidYouMean(near), hint),
		Details: suggestions(near),
	}
}

// ServerNotFoundError returns the error for a server that does not exist or
// that the caller may not see, with the most similar names that it may see.
func (s *Snapshot) ServerNotFoundError(caller *tool.Caller, server string) error {
	names := slices.Collect(maps.Keys(s.configured))
	if s.configured == nil {
		for _, other := range s.servers {
			names = append(names, other.Name)
		}
	}
	return ServerNotFoundError(caller, server, names)
}

// ServerNotFoundError is like [Snapshot.ServerNotFoundError], with names that may
// include servers that are not in the catalogue.
func ServerNotFoundError(caller *tool.Caller, server string, all []string) error {
	names := slices.DeleteFunc(slices.Sorted(slices.Values(all)), func(name string) bool { return !caller.MaySee(name) })
	near, hint := Nearest(server, names, 5), ""
	if len(near) == 0 {
		hint = allOf(names)
	}
	return &tool.Error{
		Kind:    tool.ServerNotFound,
		Msg:     fmt.Sprintf("no server named %q%s%s", server, DidYouMean(near), hint),
		Details: suggestions(near),
	}
}

// Nearest returns up to n qualified names of tools that the caller may use and
// that are most similar to name, best first.
func (s *Snapshot) Nearest(caller *tool.Caller, name string, n int) []string {
	var names []string
	for e := range s.Visible(caller) {
		names = append(names, e.Name.String())
	}
	return Nearest(name, names, n)
}

// DidYouMean returns the end of a message that suggests names, if there are any.
func DidYouMean(near []string) string {
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(near, ", ") + "?"
}

// allOf lists all names if there are few.
func allOf(names []string) string {
	const few = 8
	if len(names) == 0 || len(names) > few {
		return ""
	}
	verb := "are"
	if len(names) == 1 {
		verb = "is"
	}
	return "; there " + verb + " " + strings.Join(names, ", ")
}

func suggestions(near []string) any {
	if len(near) == 0 {
		return nil
	}
	return map[string]any{"nearest": near}
}
