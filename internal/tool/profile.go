package tool

import (
	"encoding/json"
	"slices"
	"strings"
)

// Profile is a named part of the gateway. A caller with a profile may do only
// what the profile allows, of what it may do anyway.
type Profile interface {
	Name() string
	// Allows reports whether the profile has the tool, or the method of a
	// server other than a tool call.
	Allows(Name) bool
	// Excludes reports whether a glob that begins with "!" takes the tool out of
	// the profile, as [Caller.Excludes].
	Excludes(Name) bool
	// Shows reports whether the profile has the server.
	Shows(server string) bool
	// Settings returns the conditions under which calls are made.
	Settings() ProfileSettings
}

// ProfileSettings are the conditions of a profile besides what it contains.
type ProfileSettings struct {
	Mode         string // of the MCP API; "" means the configured one
	Instructions string // for agents, before those of the gateway
	Ask          bool   // a person must approve each call
	Rate         Rate   // limits each caller's calls with the profile
}

// Profiles are those of a caller, all of which must allow what it does. In
// JSON they are their names; those that were read from JSON allow nothing.
type Profiles []Profile

// MarshalJSON implements json.Marshaler.
func (p Profiles) MarshalJSON() ([]byte, error) { return json.Marshal(p.Names()) }

// UnmarshalJSON implements json.Unmarshaler.
func (p *Profiles) UnmarshalJSON(b []byte) error {
	var names []string
	if err := json.Unmarshal(b, &names); err != nil {
		return err
	}
	*p = nil
	for _, name := range names {
		*p = append(*p, UnknownProfile(name))
	}
	return nil
}

// Names returns the names of the profiles.
func (p Profiles) Names() []string {
	names := make([]string, len(p))
	for i, profile := range p {
		names[i] = profile.Name()
	}
	return names
}

func (p Profiles) allow(n Name) bool {
	return !slices.ContainsFunc(p, func(p Profile) bool { return !p.Allows(n) })
}

func (p Profiles) show(server string) bool {
	return !slices.ContainsFunc(p, func(p Profile) bool { return !p.Shows(server) })
}

// UnknownProfile is a profile that is not defined. It allows nothing.
type UnknownProfile string

// Name implements Profile.
func (p UnknownProfile) Name() string { return string(p) }

// Allows implements Profile.
func (UnknownProfile) Allows(Name) bool { return false }

// Excludes implements Profile.
func (UnknownProfile) Excludes(Name) bool { return true }

// Shows implements Profile.
func (UnknownProfile) Shows(string) bool { return false }

// Settings implements Profile.
func (UnknownProfile) Settings() ProfileSettings { return ProfileSettings{} }

// View identifies the caller and its profiles. What is cached or continued for
// a caller by its rights belongs to a view, not to the caller's ID alone.
func (c *Caller) View() string {
	if len(c.Profiles) == 0 {
		return c.ID
	}
	return c.ID + "\x00" + strings.Join(c.Profiles.Names(), "\x00")
}

// RightsView is [Caller.View] with the caller's rights, for what is cached of
// what it may see: one person's tokens may give different rights.
func (c *Caller) RightsView() string {
	if c.Servers == nil && c.Tools == nil && len(c.Grants) == 0 {
		return c.View()
	}
	rights, err := json.Marshal([]any{c.Servers, c.Tools, c.Grants})
	if err != nil {
		return c.View() // cannot happen: these are lists of strings
	}
	return c.View() + "\x00" + string(rights)
}

// IsOperator reports whether the caller operates the gateway: an administrator,
// or the local user. Records and traffic of other callers are for
// operators only. A caller with a profile is none.
func (c *Caller) IsOperator() bool {
	return c.Admin || c.ID == Local.ID && !c.Limited()
}

// NeedsApproval reports whether a person must approve the caller's call of a tool,
// whatever the rules of the tool are.
func (c *Caller) NeedsApproval(n Name) bool {
	if slices.ContainsFunc(c.Profiles, asks) {
		return true
	}
	if len(c.Grants) == 0 {
		return false
	}
	return !slices.ContainsFunc(c.Grants, func(g Grant) bool { return g.covers(n) && !slices.ContainsFunc(g.Profiles, asks) })
}

func asks(p Profile) bool { return p.Settings().Ask }

// Mode returns the mode of the MCP API that the caller's profiles set, "" for
// none.
func (c *Caller) Mode() string {
	for _, p := range slices.Backward(c.Profiles) {
		if mode := p.Settings().Mode; mode != "" {
			return mode
		}
	}
	return ""
}

// Instructions returns what the caller's profiles tell agents.
func (c *Caller) Instructions() string {
	var texts []string
	for _, p := range c.Profiles {
		if text := strings.TrimSpace(p.Settings().Instructions); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n\n")
}
