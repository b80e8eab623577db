package catalog

import (
	"cmp"
	"errors"

	"junctor/internal/setting"
	"junctor/internal/tool"
)

// ToolRule says something about the tools that a pattern matches. Rules are
// read in order, and for each field the last matching rule that sets it wins.
type ToolRule struct {
	// Globs matched against server:tool; one that matches is enough. * stands for any characters, ? for one. Tools that a glob with ! in front matches are left out.
	Pattern []string `json:"pattern"`
	// Whether the tools are enabled. Without it, earlier rules apply.
	Enabled *bool `json:"enabled,omitempty"`
	// Tags of the tools, beside those of their server. Without it, earlier rules apply; an empty list removes them.
	Tags []string `json:"tags,omitempty"`
	// Whether a person must approve each call of the tools. Without it, earlier rules apply.
	Approval Approval `json:"approval,omitempty"`
}

// Settings are what a configuration says about tools.
type Settings struct {
	Rules []ToolRule

	// Servers are the servers whose tools are listed; nil lists those of all,
	// with the settings that [Catalog.Put] gets.
	Servers map[string]ServerSettings
}

// ServerSettings are the settings of one server.
type ServerSettings struct {
	Description string
	Tags        []string
	Allows      func(tool string) bool // nil allows all
}

// apply sets the fields of a server that are settings. It reports false for a
// server that is not to be listed.
func (s Settings) apply(server *Server) bool {
	if s.Servers == nil {
		return true
	}
	set, ok := s.Servers[server.Name]
	server.Tags, server.Allows = set.Tags, set.Allows
	server.Description = cmp.Or(set.Description, tool.Shorten(server.Instructions, 200))
	return ok
}

// Approval says whether a person is asked before a call.
type Approval string

// The approvals. No approval at all means AutoApproval.
const (
	AutoApproval Approval = "auto" // calls are made at once
	AskApproval  Approval = "ask"  // a person is asked first
)

// Words lists the approvals.
func (Approval) Words() []string { return []string{string(AutoApproval), string(AskApproval)} }

// SecurityConfig is what happens when a tool is not what it was.
type SecurityConfig struct {
	// What to do when a tool's definition changes after it was first seen: show it as changed (warn), or refuse calls until it is approved (block).
	OnToolChange OnToolChange `json:"onToolChange"`
}

// OnToolChange says what happens to a tool whose definition changed.
type OnToolChange string

// What happens to changed tools.
const (
	WarnOnChange  OnToolChange = "warn"
	BlockOnChange OnToolChange = "block"
)

// Words lists what may happen to changed tools.
func (OnToolChange) Words() []string { return []string{string(WarnOnChange), string(BlockOnChange)} }

// DefaultSecurityConfig returns the configuration that warns.
func DefaultSecurityConfig() SecurityConfig { return SecurityConfig{OnToolChange: WarnOnChange} }

// Validate reports everything that is wrong with the rule.
func (r ToolRule) Validate() error {
	errs := []error{setting.OneOf("approval", r.Approval)}
	if len(r.Pattern) == 0 {
		errs = append(errs, setting.Wrong("pattern", `is missing; write globs over server:tool, such as ["github:*"]`))
	}
	if err := tool.CheckGlobs(r.Pattern); err != nil {
		errs = append(errs, setting.Wrong("pattern", "%v", err))
	}
	for i, p := range r.Pattern {
		if p == "" {
			errs = append(errs, setting.UnderIndex("pattern", i, setting.Wrong("", `is empty; write a glob such as "github:*"`)))
		}
	}
	return errors.Join(errs...)
}

// Validate reports everything that is wrong with the configuration.
func (c SecurityConfig) Validate() error { return setting.OneOf("onToolChange", c.OnToolChange) }
