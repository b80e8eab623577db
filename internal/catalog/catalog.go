// Package catalog is the catalogue of the current tools: their qualified names,
// the definitions of the upstreams, the rules that apply to them, and the
// guidance of their servers.
//
// Readers use a [Snapshot], which is immutable, so that they neither wait for an
// update nor see a partial one. Upstreams replace the tools of one server
// ([Catalog.Put]), and a configuration replaces all settings together
// ([Catalog.Configure]): no snapshot has settings of two configurations. The
// package does not call tools and stores nothing.
package catalog

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"junctor/internal/mcp"
	"junctor/internal/tool"
)

// Server is an upstream with its tools.
type Server struct {
	Name         string
	Title        string
	Description  string // from the configuration, otherwise from the server
	Instructions string
	Guidance     tool.Guidance
	Tags         []string

	// Allows reports which tools the server's configuration enables; nil means
	// all.
	Allows func(tool string) bool

	// Callers are the IDs of the callers that each tool is listed for, by its
	// original name; nil means that all tools are listed for every caller.
	Callers map[string][]string

	// Tools are in the order of the upstream's list.
	Tools []*Entry
}

// GuidanceFor returns the guidance that the caller may see. Generated guidance
// names every tool as its server defines it, so only callers that may use all
// tools see it, and only if no rule overrides one. Guidance from a prompt is
// returned to callers that may get prompts.
func (s *Server) GuidanceFor(caller *tool.Caller) string {
	switch s.Guidance.Source {
	case tool.Generated:
		for _, e := range s.Tools {
			if !e.UsableBy(caller) || e.Overridden() {
				return ""
			}
		}
	case tool.FromInstructions: // public
	default:
		if !caller.MayUse(tool.Name{Server: s.Name, Tool: mcp.MethodPromptsGet}) {
			return ""
		}
	}
	return s.Guidance.Text
}

// OwnGuidance returns the guidance without text that was generated from the
// definitions, which adds nothing to them.
func (s *Server) OwnGuidance(caller *tool.Caller) string {
	if s.Guidance.Source == tool.Generated {
		return ""
	}
	return s.GuidanceFor(caller)
}

// ToolsFor returns the number of tools that the caller may use, and how many of
// them are enabled.
func (s *Server) ToolsFor(caller *tool.Caller) (all, enabled int) {
	for _, e := range s.Tools {
		if e.UsableBy(caller) {
			all++
			if e.Enabled {
				enabled++
			}
		}
	}
	return all, enabled
}

// EnabledTools returns the number of enabled tools.
func (s *Server) EnabledTools() int {
	n := 0
	for _, e := range s.Tools {
		if e.Enabled {
			n++
		}
	}
	return n
}

// Review is the result of the safety checks of a definition.
type Review struct {
	Changed bool     // differs from the definition that was first seen or last approved
	Blocked bool     // must not be called until it is approved
	Flags   []string // hidden characters and suspicious patterns
}

// Reviewer checks a definition before it is listed. A nil Reviewer finds
// nothing.
type Reviewer func(tool.Definition) Review

// Catalog is the catalogue of the tools of all upstreams.
type Catalog struct {
	review Reviewer

	mu       sync.Mutex // serializes writers
	settings Settings
	watchers map[chan struct{}]struct{}
	prepare  func(before, after *Snapshot)

	current atomic.Pointer[Snapshot]
}

// New returns an empty catalogue with the rules.
func New(rules []ToolRule, review Reviewer) *Catalog {
	c := &Catalog{settings: Settings{Rules: rules}, review: review, watchers: map[chan struct{}]struct{}{}}
	c.current.Store(&Snapshot{})
	return c
}

// OnChange sets the function that is called with every new snapshot before it
// becomes visible, so that derived state such as the search index is never
// older than the catalogue. It must be called before the catalogue is used.
func (c *Catalog) OnChange(prepare func(before, after *Snapshot)) { c.prepare = prepare }

// Snapshot returns the current snapshot.
func (c *Catalog) Snapshot() *Snapshot { return c.current.Load() }

// Put replaces the tools of a server. s.Tools is created from definitions. If a
// name occurs twice, the second definition is dropped, because callers could
// not distinguish the two. A server that is not in the settings is ignored: it
// was removed while its tools were being read.
func (c *Catalog) Put(s Server, definitions []tool.Definition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.settings.apply(&s) {
		return
	}
	seen := make(map[string]bool, len(definitions))
	distinct := make([]tool.Definition, 0, len(definitions))
	for _, d := range definitions {
		if !seen[d.Name.Tool] {
			seen[d.Name.Tool] = true
			distinct = append(distinct, d)
		}
	}
	s.Tools = make([]*Entry, 0, len(distinct))
	for _, d := range distinct {
		s.Tools = append(s.Tools, c.entry(&s, d, seen))
	}
	servers := make([]*Server, 0, len(c.Snapshot().servers)+1)
	for _, other := range c.Snapshot().servers {
		if other.Name != s.Name {
			servers = append(servers, other)
		}
	}
	c.publish(append(servers, &s))
}

// Remove removes a server and its tools.
func (c *Catalog) Remove(server string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.Snapshot().servers
	rest := slices.DeleteFunc(slices.Clone(old), func(s *Server) bool { return s.Name == server })
	if len(rest) != len(old) {
		c.publish(rest)
	}
}

// Configure replaces the settings and applies them to every tool, in one new
// snapshot. Servers that are not in the settings are removed. If also is not
// nil, it is called while no other change is made, to replace what the Reviewer
// depends on at the same time.
func (c *Catalog) Configure(s Settings, also func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if also != nil {
		also()
	}
	c.settings = s
	c.refresh()
}

// Rules returns the rules in effect.
func (c *Catalog) Rules() []ToolRule {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.settings.Rules
}

// TagsOf returns the tags of a tool, or those of its server for a name that is
// not a tool's.
func (c *Catalog) TagsOf(n tool.Name) []string {
	snap := c.Snapshot()
	if e := snap.Original(n); e != nil {
		return e.Tags
	}
	if s := snap.Server(n.Server); s != nil {
		return s.Tags
	}
	return c.settingsOf(n.Server).Tags
}

// ServerTags returns the tags of a server and of all its tools.
func (c *Catalog) ServerTags(server string) []string {
	s := c.Snapshot().Server(server)
	if s == nil {
		return c.settingsOf(server).Tags
	}
	tags := slices.Clone(s.Tags)
	for _, e := range s.Tools {
		tags = append(tags, e.Tags...)
	}
	return tags
}

// ServerNames returns the names of the servers in the settings, or of those in
// the catalogue where the settings name none.
func (c *Catalog) ServerNames() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.settings.Servers != nil {
		return slices.Sorted(maps.Keys(c.settings.Servers))
	}
	var names []string
	for _, s := range c.Snapshot().servers {
		names = append(names, s.Name)
	}
	return names
}

func (c *Catalog) settingsOf(server string) ServerSettings {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.settings.Servers[server]
}

// Refresh reviews every definition again, for example after an approval.
func (c *Catalog) Refresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refresh()
}

func (c *Catalog) refresh() {
	old := c.Snapshot().servers
	servers := make([]*Server, 0, len(old))
	for _, o := range old {
		s := *o
		if !c.settings.apply(&s) {
			continue
		}
		s.Tools = make([]*Entry, len(o.Tools))
		names := make(map[string]bool, len(o.Tools))
		for _, e := range o.Tools {
			names[e.Original.Name.Tool] = true
		}
		for j, e := range o.Tools {
			s.Tools[j] = c.entry(&s, e.Original, names)
			if bytes.Equal(s.Tools[j].InputSchema, e.InputSchema) {
				s.Tools[j].compile, s.Tools[j].problem = e.compile, e.problem
			}
		}
		servers = append(servers, &s)
	}
	c.publish(servers)
}

func (c *Catalog) publish(servers []*Server) {
	slices.SortFunc(servers, func(a, b *Server) int { return strings.Compare(a.Name, b.Name) })
	before := c.Snapshot()
	after := newSnapshot(before.Version+1, servers, c.settings.Servers)
	if c.prepare != nil {
		c.prepare(before, after)
	}
	c.current.Store(after)
	for w := range c.watchers {
		select {
		case w <- struct{}{}:
		default: // a notification is pending already
		}
	}
}

// Watch returns a channel that receives after the catalogue has changed, once
// for any number of changes since the last receive, until ctx is done.
func (c *Catalog) Watch(ctx context.Context) <-chan struct{} {
	w := make(chan struct{}, 1)
	c.mu.Lock()
	c.watchers[w] = struct{}{}
	c.mu.Unlock()
	context.AfterFunc(ctx, func() {
		c.mu.Lock()
		delete(c.watchers, w)
		c.mu.Unlock()
	})
	return w
}
