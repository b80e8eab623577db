// Package profile narrows callers to named parts of the gateway.
//
// A [Set] has the profiles of the configuration. [Set.Narrow] adds one to a
// caller, which limits the caller's rights to what the profile allows. APIs
// need not handle profiles, because the rights of the caller include them.
// Profiles of requests ([Set.Wrap]) and of credentials follow changes of the
// configuration immediately; one that is no longer defined allows nothing.
package profile

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"junctor/internal/tool"
)

// Options are the dependencies of a Set.
type Options struct {
	// Tags returns the tags of a tool, or those of its server if there is no
	// tool of that name. Nil means that there are no tags.
	Tags func(tool.Name) []string
	// ServerTags returns the tags of a server and of all its tools.
	ServerTags func(server string) []string
	// Servers returns the names of all servers.
	Servers func() []string
}

// Set has the profiles of the configuration. It is safe for concurrent use.
type Set struct {
	opts    Options
	current atomic.Pointer[map[string]Config]
}

// New returns a Set.
func New(profiles map[string]Config, o Options) *Set {
	s := &Set{opts: o}
	s.SetConfig(profiles)
	return s
}

// SetConfig replaces the profiles.
func (s *Set) SetConfig(profiles map[string]Config) {
	profiles = maps.Clone(profiles)
	s.current.Store(&profiles)
}

// CurrentConfig returns the profiles in effect.
func (s *Set) CurrentConfig() map[string]Config { return *s.current.Load() }

// Names returns the names of the profiles, sorted.
func (s *Set) Names() []string { return slices.Sorted(maps.Keys(s.CurrentConfig())) }

// With returns a Set with only this profile and the same servers and tags.
func (s *Set) With(name string, c Config) *Set { return New(map[string]Config{name: c}, s.opts) }

// Get returns the profile of that name. The profile follows changes of the
// configuration, and allows nothing while it is not defined.
func (s *Set) Get(name string) tool.Profile { return named{s, name} }

// Bind narrows a caller to the profile to which its credential is bound. A
// caller with a profile loses Admin, because an administrator could change the
// profile.
func (s *Set) Bind(c tool.Caller, name string) tool.Caller {
	c.Admin = false
	if !slices.Contains(c.Profiles.Names(), name) {
		c.Profiles = append(slices.Clip(c.Profiles), s.Get(name))
	}
	return c
}

// Narrow is [Set.Bind] for a profile that the caller chooses. It returns an
// error for one that does not exist or that the caller may not use.
func (s *Set) Narrow(c tool.Caller, name string) (tool.Caller, error) {
	usable := s.Usable(&c)
	if slices.Contains(usable, name) {
		return s.Bind(c, name), nil
	}
	msg := fmt.Sprintf("no profile named %q", tool.Shorten(name, 80))
	if len(usable) == 0 {
		msg += ", and none that this caller may use; leave the profile out, or define it under profiles in the configuration"
	} else {
		msg += " for this caller; use one of: " + strings.Join(usable, ", ")
	}
	return c, &tool.Error{Kind: tool.InvalidArguments, Msg: msg, Details: map[string]any{"profiles": usable}}
}

// Usable returns the names of the profiles that the caller may choose, sorted.
// A caller whose rights come from profiles may choose only those.
func (s *Set) Usable(c *tool.Caller) []string {
	names := []string{}
	for name := range *s.current.Load() {
		if s.mayChoose(c, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func (s *Set) mayChoose(c *tool.Caller, name string) bool {
	if !c.Limited() {
		return true
	}
	if len(c.Profiles) > 0 && !slices.Contains(c.Profiles.Names(), name) {
		return false
	}
	if len(c.Grants) > 0 && !slices.ContainsFunc(c.Grants, func(g tool.Grant) bool {
		return len(g.Profiles) == 0 || slices.Contains(g.Profiles.Names(), name)
	}) {
		return false
	}
	p := s.Get(name)
	return slices.Contains(c.Profiles.Names(), name) || s.opts.Servers != nil && slices.ContainsFunc(s.opts.Servers(), func(server string) bool {
		return p.Shows(server) && c.MaySee(server)
	})
}

// named is the profile of a set with a name. It reads the current configuration
// at each use.
type named struct {
	set  *Set
	name string
}

func (n named) config() (Config, bool) {
	c, ok := (*n.set.current.Load())[n.name]
	return c, ok
}

// Name implements tool.Profile.
func (n named) Name() string { return n.name }

// Allows implements tool.Profile.
func (n named) Allows(t tool.Name) bool {
	c, ok := n.config()
	return ok && (c.Servers == nil || tool.Selects(c.Servers, t.Server)) &&
		(c.Tools == nil || tool.SelectsTool(c.Tools, t)) &&
		(c.Tags == nil || n.set.opts.Tags != nil && tool.SelectsAny(c.Tags, n.set.opts.Tags(t)))
}

// Excludes implements tool.Profile.
func (n named) Excludes(t tool.Name) bool {
	c, ok := n.config()
	return !ok || tool.Excluded(c.Servers, c.Tools, t)
}

// Shows implements tool.Profile.
func (n named) Shows(server string) bool {
	c, ok := n.config()
	return ok && (c.Servers == nil || tool.Selects(c.Servers, server)) &&
		(c.Tools == nil || tool.SelectsServer(c.Tools, server)) &&
		(c.Tags == nil || n.set.opts.ServerTags != nil && slices.ContainsFunc(n.set.opts.ServerTags(server), func(tag string) bool { return tool.Selects(c.Tags, tag) }))
}

// Settings implements tool.Profile.
func (n named) Settings() tool.ProfileSettings {
	c, _ := n.config()
	t := tool.ProfileSettings{Mode: c.Mode, Instructions: c.Instructions, Ask: c.Approval == Ask}
	if c.Rate != nil {
		t.Rate = tool.Rate{Calls: c.Rate.Calls, Per: c.Rate.Per()}
	}
	return t
}
