package auth

import "junctor/internal/tool"

// Profiles restricts callers to profiles. profile.Set implements it.
type Profiles interface {
	// Bind restricts a caller to a profile.
	Bind(c tool.Caller, profile string) tool.Caller
	// Get returns a profile. An undefined profile allows nothing.
	Get(profile string) tool.Profile
}

// bind restricts the caller to a profile, unless profile is empty. If p is
// nil, the caller gets no rights.
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
