package auth

import "junctor/internal/tool"

// Profiles narrows callers. profile.Set is one.
type Profiles interface {
	// Bind narrows a caller to a profile.
	Bind(c tool.Caller, profile string) tool.Caller
	// Get returns a profile, which allows nothing if it is not defined.
	Get(profile string) tool.Profile
}

// bind narrows the caller to a profile; "" is none. Without profiles the caller
// may do nothing.
func bind(p Profiles, c tool.Caller, profile string) tool.Caller {
	switch {
	case profile == "":
	case p == nil:
		c.Admin, c.Profiles = false, append(c.Profiles, tool.UnknownProfile(profile))
	default:
		c = p.Bind(c, profile)
	}
	return c
}
