package tool

import (
	"encoding/json"
	"slices"
	"strings"
)

// Profile is a named subset of the gateway's servers and tools. It restricts
// the rights of its callers and never extends them.
type Profile interface {
	Name() string
	// Allows reports whether the profile includes the tool, or the method of
	// a server for requests other than tool calls.
	Allows(Name) bool
	// Excludes reports whether a glob that begins with "!" excludes the tool
	// from the profile, as in [Caller.Excludes].
	Excludes(Name) bool
	// Shows reports whether the profile includes the server.
	Shows(server string) bool
	// Settings returns the settings that apply to callers with the profile.
	Settings() ProfileSettings
}

// ProfileSettings are the settings of a profile other than its servers and
// tools.
type ProfileSettings struct {
	Mode         string // of the MCP API; "" means the configured one
	Instructions string // for agents, before those of the gateway
	Ask          bool   // a person must approve each call
	Rate         Rate   // limits each caller's calls with the profile
}

// Profiles are the profiles of a caller, all of which must allow a call. They
// are marshalled as names. Unmarshalled profiles are of type UnknownProfile and
// allow nothing.
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

// View identifies the caller together with its profiles. It is the key for what
// is cached or continued for a caller and depends on its profiles.
func (c *Caller) View() string {
	if len(c.Profiles) == 0 {
		return c.ID
	}
	return c.ID + "\x00" + strings.Join(c.Profiles.Names(), "\x00")
}

// RightsView is [Caller.View] together with the caller's rights. It is the key
// for what is cached and depends on these, because tokens of the same user may
// have different rights.
func (c *Caller) RightsView() string {
	if c.Servers == nil && c.Tools == nil && len(c.Grants) == 0 {
		return c.View()
	}
	rights, err := json.Marshal([]any{c.Servers, c.Tools, c.Grants})
	if err != nil {
		return c.View() // cannot happen: lists of strings can be marshalled
	}
	return c.View() + "\x00" + string(rights)
}

// IsOperator reports whether the caller is an administrator or the unlimited
// local user. Only operators see records and traffic of other callers. A caller
// with a profile is not an operator, because profiles remove Admin.
func (c *Caller) IsOperator() bool {
	return c.Admin || c.ID == Local.ID && !c.Limited()
}

// NeedsApproval reports whether the caller's profiles require a person's
// approval of a call of the tool, whatever the tool's rules are. Among grants,
// one that covers the tool and does not require approval is enough.
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

// Mode returns the mode of the MCP API that the last of the caller's profiles
// with a mode sets, or "".
func (c *Caller) Mode() string {
	for _, p := range slices.Backward(c.Profiles) {
		if mode := p.Settings().Mode; mode != "" {
			return mode
		}
	}
	return ""
}

// Instructions returns the instructions for agents of the caller's profiles.
func (c *Caller) Instructions() string {
	var texts []string
	for _, p := range c.Profiles {
		if text := strings.TrimSpace(p.Settings().Instructions); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, "\n\n")
}
