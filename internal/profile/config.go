package profile

import (
	"errors"

	"junctor/internal/setting"
	"junctor/internal/tool"
)

// Config is one profile. A tool belongs to it if the profile selects its server,
// its name and, if tags is set, at least one of its tags.
type Config struct {
	// Purpose of the profile, for people.
	Description string `json:"description,omitempty"`
	// Globs of the servers in the profile. A glob with a leading ! excludes servers. Default: all.
	Servers []string `json:"servers,omitempty"`
	// Globs of tags. At least one must match a tag of the tool or its server, and none with a leading ! may. Default: any.
	Tags []string `json:"tags,omitempty"`
	// Globs over server:tool of the tools in the profile. A glob with a leading ! excludes tools. Default: all.
	Tools []string `json:"tools,omitempty"`
	// What MCP clients see: meta, direct or code. Default: discovery.mode.
	Mode string `json:"mode,omitempty"`
	// Instructions for agents, sent when they connect, before those of the gateway.
	Instructions string `json:"instructions,omitempty"`
	// Whether a person must approve each call. Default: only if a rule requires it.
	Approval Approval `json:"approval,omitempty"`
	// Rate limit of each caller when it uses the profile, in addition to the caller's own limit. Default: no limit.
	Rate *setting.Rate `json:"rate,omitempty"`
}

// Approval is whether the calls of a profile need approval.
type Approval string

// Ask requires approval of each call. A profile cannot take back that a rule
// requires it.
const Ask Approval = "ask"

// Values lists the approvals.
func (Approval) Values() []string { return []string{string(Ask)} }

// maxInstructions bounds the instructions of a profile.
const maxInstructions = 16 << 10

// Validate reports everything that is wrong with the profile's settings.
func (c Config) Validate() error {
	errs := []error{
		checkGlobs("servers", c.Servers), checkGlobs("tags", c.Tags), checkGlobs("tools", c.Tools),
		setting.OneOf("approval", c.Approval),
		setting.Prefix("rate", c.Rate.Validate()),
	}
	if len(c.Instructions) > maxInstructions {
		errs = append(errs, setting.Wrong("instructions", "has %d bytes; at most %d are allowed", len(c.Instructions), maxInstructions))
	}
	return errors.Join(errs...)
}

// checkGlobs returns an error for key if the list of globs is not valid.
func checkGlobs(key string, globs []string) error {
	if err := tool.CheckGlobs(globs); err != nil {
		return setting.Wrong(key, "%v", err)
	}
	return nil
}

// CheckName returns an error if the name is not a valid name of a profile.
func CheckName(name string) error {
	if !tool.ValidServer(name) { // the rules for names are those of servers
		return setting.Wrong("", "%q is not a valid name of a profile; use 1 to %d characters of A-Z a-z 0-9 _ -", name, tool.MaxServerName)
	}
	return nil
}
