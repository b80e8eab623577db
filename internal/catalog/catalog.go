// Package catalog knows the current tools: their qualified names, their
// definitions as the upstreams gave them, the rules that apply to them, and
// the guidance of the servers that offer them.
//
// Readers take a [Snapshot], which never changes, so that nothing they do
// waits for an update or sees half of one. Writers replace what one server
// offers. The package calls nothing and stores nothing.
package catalog

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"junctor/internal/schema"
	"junctor/internal/tool"
)

// Server is one upstream as its tools' readers see it.
type Server struct {
	Name         string
	Title        string
	Version      string
	Description  string // from the configuration, else the server's own words
	Instructions string
	Guidance     tool.Guidance
	Tags         []string

	// Allows says which of its tools the server's own configuration offers;
	// nil means all.
	Allows func(tool string) bool

	// Tools are in the order in which the upstream lists them.
	Tools []*Entry
}

// GuidanceFor returns the guidance that the caller may see. What was made from
// the definitions names every tool, and is for those alone who may use all.
// What a prompt says is for those who may get prompts.
func (s *Server) GuidanceFor(caller *tool.Caller) string {
	switch s.Guidance.Source {
	case tool.Generated:
		for _, e := range s.Tools {
			if !caller.MayUse(e.Name) {
				return ""
			}
		}
	case tool.FromInstructions: // what the server says of itself to everyone
	default:
		if !caller.MayUse(tool.Name{Server: s.Name, Tool: "prompts/get"}) {
			return ""
		}
	}
	return s.Guidance.Text
}

// OwnGuidance returns the guidance in the server's own words, without what was
// made from the definitions: beside those it says nothing.
func (s *Server) OwnGuidance(caller *tool.Caller) string {
	if s.Guidance.Source == tool.Generated {
		return ""
	}
	return s.GuidanceFor(caller)
}

// ToolsFor counts the tools that the caller may use, and those of them that
// are enabled.
func (s *Server) ToolsFor(caller *tool.Caller) (all, enabled int) {
	for _, e := range s.Tools {
		if caller.MayUse(e.Name) {
			all++
			if e.Enabled {
				enabled++
			}
		}
	}
	return all, enabled
}

// EnabledTools counts the tools that can be called.
func (s *Server) EnabledTools() int {
	n := 0
	for _, e := range s.Tools {
		if e.Enabled {
			n++
		}
	}
	return n
}

// Entry is one tool with the rules that apply to it.
type Entry struct {
	tool.Definition
	Enabled  bool
	Reason   string // why it is disabled
	Tags     []string
	Approval Approval
	Review   Review

	compile func() (*schema.Schema, error)
	problem *atomic.Pointer[string] // with its schema, once that is known
}

// Schema returns the compiled input schema. It is compiled when first asked
// for: most tools of a large catalogue are never called.
func (e *Entry) Schema() (*schema.Schema, error) { return e.compile() }

// MarkSchema notes why arguments cannot be checked against the schema.
func (e *Entry) MarkSchema(problem string) { e.problem.Store(&problem) }

// Warnings returns what is doubtful about the tool: the flags of its review,
// and what was found out about its schema.
func (e *Entry) Warnings() []string {
	if problem := e.problem.Load(); problem != nil {
		return append(slices.Clip(e.Review.Flags), *problem)
	}
	return e.Review.Flags
}

// Review is what the safety checks found in a definition.
type Review struct {
	Changed bool     // differs from the definition that was first seen or last approved
	Blocked bool     // must not be called until someone approves it
	Flags   []string // hidden characters, instruction-like text
}

// Reviewer looks at a definition before it is offered. Nil finds nothing.
type Reviewer func(tool.Definition) Review

// Catalog holds the tools of all upstreams.
type Catalog struct {
	review Reviewer

	mu       sync.Mutex // guards writers
	rules    []ToolRule
	watchers map[chan struct{}]struct{}
	prepare  func(before, after *Snapshot)

	current atomic.Pointer[Snapshot]
}

// New returns an empty catalogue in which the rules hold.
func New(rules []ToolRule, review Reviewer) *Catalog {
	c := &Catalog{rules: rules, review: review, watchers: map[chan struct{}]struct{}{}}
	c.current.Store(&Snapshot{})
	return c
}

// OnChange sets the function that is called with every new snapshot before it
// becomes visible, so that what is derived from the tools, such as the search
// index, is never behind them. It must be set before the catalogue is used.
func (c *Catalog) OnChange(prepare func(before, after *Snapshot)) { c.prepare = prepare }

// Snapshot returns the tools as they are now.
func (c *Catalog) Snapshot() *Snapshot { return c.current.Load() }

// Put replaces what the server offers. The entries of s.Tools are created again
// from definitions; a second definition of one name is dropped, as the wire
// could not tell the two apart.
func (c *Catalog) Put(s Server, definitions []tool.Definition) {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := make(map[string]bool, len(definitions))
	s.Tools = make([]*Entry, 0, len(definitions))
	for _, d := range definitions {
		if !seen[d.Name.Tool] {
			seen[d.Name.Tool] = true
			s.Tools = append(s.Tools, c.entry(&s, d))
		}
	}
	servers := make([]*Server, 0, len(c.Snapshot().servers)+1)
	for _, other := range c.Snapshot().servers {
		if other.Name != s.Name {
			servers = append(servers, other)
		}
	}
	c.publish(append(servers, &s))
}

// Remove forgets the server.
func (c *Catalog) Remove(server string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.Snapshot().servers
	rest := slices.DeleteFunc(slices.Clone(old), func(s *Server) bool { return s.Name == server })
	if len(rest) != len(old) {
		c.publish(rest)
	}
}

// SetRules applies other rules to every tool.
func (c *Catalog) SetRules(rules []ToolRule) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rules = rules
	c.refresh()
}

// Rules returns the rules in effect.
func (c *Catalog) Rules() []ToolRule {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rules
}

// Refresh reviews every definition again, after an approval for example.
func (c *Catalog) Refresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.refresh()
}

func (c *Catalog) refresh() {
	old := c.Snapshot().servers
	servers := make([]*Server, len(old))
	for i, o := range old {
		s := *o
		s.Tools = make([]*Entry, len(o.Tools))
		for j, e := range o.Tools {
			s.Tools[j] = c.entry(&s, e.Definition)
			s.Tools[j].compile = e.compile // the schema is the same
		}
		servers[i] = &s
	}
	c.publish(servers)
}

func (c *Catalog) publish(servers []*Server) {
	slices.SortFunc(servers, func(a, b *Server) int { return strings.Compare(a.Name, b.Name) })
	before := c.Snapshot()
	after := newSnapshot(before.Version+1, servers)
	if c.prepare != nil {
		c.prepare(before, after)
	}
	c.current.Store(after)
	for w := range c.watchers {
		select {
		case w <- struct{}{}:
		default: // it has not looked since the last change, and will see both
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

func (c *Catalog) entry(s *Server, d tool.Definition) *Entry {
	e := &Entry{Definition: d, Enabled: true, Tags: s.Tags, problem: new(atomic.Pointer[string])}
	e.compile = sync.OnceValues(func() (*schema.Schema, error) {
		compiled, err := schema.Compile(d.InputSchema)
		if err != nil {
			e.MarkSchema("its inputSchema cannot be used, so arguments are not checked: " + err.Error())
		}
		return compiled, err
	})
	if s.Allows != nil && !s.Allows(d.Name.Tool) {
		e.Enabled, e.Reason = false, "the server's tool_configuration leaves it out"
	}
	e.apply(c.rules)
	if c.review != nil {
		e.Review = c.review(d)
	}
	if e.Review.Blocked && e.Enabled {
		e.Enabled, e.Reason = false, "its definition changed and waits for approval (junctor servers approve "+d.Name.Server+")"
	}
	return e
}

// apply lets the last matching rule that sets a field decide it. A rule
// cannot enable what the server's own configuration turned off.
func (e *Entry) apply(rules []ToolRule) {
	name := e.Name.String()
	off := !e.Enabled
	var ruled []string
	for _, r := range rules {
		if !tool.MatchAny(r.Pattern, name) {
			continue
		}
		if r.Enabled != nil && !off {
			e.Enabled, e.Reason = *r.Enabled, ""
			if !e.Enabled {
				e.Reason = "a rule in toolRules disables it"
			}
		}
		if r.Tags != nil {
			ruled = r.Tags
		}
		if r.Approval != "" {
			e.Approval = r.Approval
		}
	}
	for _, tag := range ruled {
		if !slices.Contains(e.Tags, tag) {
			e.Tags = append(slices.Clip(e.Tags), tag)
		}
	}
}
