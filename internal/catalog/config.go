package catalog

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"junctor/internal/results"
	"junctor/internal/setting"
	"junctor/internal/tool"
)

// ToolRule changes settings of the tools that it matches. Rules are applied in
// order. For each field, the last matching rule that sets it applies.
type ToolRule struct {
	// Globs over server:tool, using the names that the servers gave their tools. A tool must match one of them. * matches any characters, ? matches one. A glob with a leading ! excludes the tools that it matches.
	Pattern []string `json:"pattern"`
	// Properties that a tool must have for the rule to match; with them, pattern is optional. Annotations come from the servers, so a rule that uses them may only disable tools or require approval, unless its patterns name the server. Default: any.
	When *Condition `json:"when,omitempty"`
	// Whether the tools are enabled. If not set, earlier rules apply.
	Enabled *bool `json:"enabled,omitempty"`
	// Tags of the tools, in addition to those of their server. If not set, earlier rules apply; an empty list removes the tags of earlier rules.
	Tags []string `json:"tags,omitempty"`
	// Whether calls run immediately (auto) or a person must approve each one (ask). If not set, earlier rules apply.
	Approval Approval `json:"approval,omitempty"`
	// New name of the tool, which callers see and use. The pattern must name exactly one tool. Rules, keys and profiles use the original name.
	Name string `json:"name,omitempty"`
	// New title of the tools.
	Title string `json:"title,omitempty"`
	// New description of the tools.
	Description string `json:"description,omitempty"`
	// Changes to arguments, by argument name, such as {"branch": {"fixed": "main"}, "limit": {"default": 20}}.
	Arguments map[string]Argument `json:"arguments,omitempty"`
	// jq expression to apply to every result of the tools. If not set, earlier rules apply.
	Select string `json:"select,omitempty"`
}

// Argument changes one argument of a tool.
type Argument struct {
	// JSON value that is always sent. Callers cannot see or set the argument.
	Fixed json.RawMessage `json:"fixed,omitempty"`
	// JSON value that is sent if the caller does not set the argument.
	Default json.RawMessage `json:"default,omitempty"`
	// Whether to hide the argument. Callers cannot see or set it.
	Hidden bool `json:"hidden,omitempty"`
}

// closed reports whether callers may not set the argument.
func (a Argument) closed() bool { return a.Hidden || a.Fixed != nil }

// Settings are what a configuration says about tools.
type Settings struct {
	Rules []ToolRule

	// Servers are all configured servers; the tools of others are not listed.
	// Nil lists the tools of all servers, with the settings that [Catalog.Put]
	// gets. The map must not be modified afterwards.
	Servers map[string]ServerSettings
}

// ServerSettings are the settings of one server.
type ServerSettings struct {
	Disabled    bool // its tools are not listed
	Description string
	Tags        []string
	Allows      func(tool string) bool // nil allows all
}

// apply sets the fields of a server that are settings. It reports whether the
// server is to be listed.
func (s Settings) apply(server *Server) bool {
	if s.Servers == nil {
		return true
	}
	set, ok := s.Servers[server.Name]
	server.Tags, server.Allows = set.Tags, set.Allows
	server.Description = cmp.Or(set.Description, tool.Shorten(server.Instructions, 200))
	return ok && !set.Disabled
}

// Approval says whether a person is asked before a call.
type Approval string

// The approvals. No approval at all means AutoApproval.
const (
	AutoApproval Approval = "auto" // calls are made at once
	AskApproval  Approval = "ask"  // a person is asked first
)

// Values lists the approvals.
func (Approval) Values() []string { return []string{string(AutoApproval), string(AskApproval)} }

// SecurityConfig is what happens when the definition of a tool changes.
type SecurityConfig struct {
	// What to do when a tool's definition has changed since it was first seen: mark it as changed (warn), or reject calls until the change is approved (block).
	OnToolChange OnToolChange `json:"onToolChange"`
}

// OnToolChange says what happens to a tool whose definition changed.
type OnToolChange string

// What happens to changed tools.
const (
	WarnOnChange  OnToolChange = "warn"
	BlockOnChange OnToolChange = "block"
)

// Values lists what may happen to changed tools.
func (OnToolChange) Values() []string { return []string{string(WarnOnChange), string(BlockOnChange)} }

// DefaultSecurityConfig returns the configuration that warns.
func DefaultSecurityConfig() SecurityConfig { return SecurityConfig{OnToolChange: WarnOnChange} }

// Validate reports everything that is wrong with the rule.
func (r ToolRule) Validate() error {
	errs := []error{setting.OneOf("approval", r.Approval), setting.Prefix("when", r.When.validate())}
	if r.trusts() && (r.Enabled != nil && *r.Enabled || r.Approval == AutoApproval || r.Tags != nil) {
		errs = append(errs, setting.Wrong("when", "annotations are claims that servers make about themselves: a rule based on them may only disable tools or require approval; name the server in each pattern (server:*) to trust its claims"))
	}
	if r.Name != "" && (len(r.Pattern) != 1 || !oneTool(r.Pattern[0])) {
		errs = append(errs, setting.Wrong("name", `needs a pattern that is one tool, such as ["github:create_issue"]`))
	}
	if r.Name != "" && !toolName.MatchString(r.Name) {
		errs = append(errs, setting.Wrong("name", "invalid tool name %q; use 1 to 128 characters of A-Z a-z 0-9 _ - .", r.Name))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Arguments)) {
		a := r.Arguments[name]
		switch {
		case a.Fixed != nil && a.Default != nil:
			errs = append(errs, setting.Wrong("arguments."+name, "has a fixed value and a default; keep one of them"))
		case a.Fixed == nil && a.Default == nil && !a.Hidden:
			errs = append(errs, setting.Wrong("arguments."+name, "changes nothing; write fixed, default or hidden"))
		}
	}
	if len(r.Pattern) == 0 && r.When == nil {
		errs = append(errs, setting.Wrong("pattern", `is missing; write globs over server:tool, such as ["github:*"]`))
	}
	if err := tool.CheckGlobs(r.Pattern); err != nil {
		errs = append(errs, setting.Wrong("pattern", "%v", err))
	}
	if r.Select != "" {
		if err := results.Check(r.Select); err != nil {
			errs = append(errs, setting.Wrong("select", "is not a usable jq expression: %v", err))
		}
	}
	for i, p := range r.Pattern {
		if p == "" {
			errs = append(errs, setting.PrefixIndex("pattern", i, setting.Wrong("", `is empty; write a glob such as "github:*"`)))
		}
	}
	return errors.Join(errs...)
}

// toolName matches the tool names that MCP allows.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

// oneTool reports whether a pattern is the name of one tool.
func oneTool(pattern string) bool {
	_, err := tool.ParseName(pattern)
	return err == nil && !strings.ContainsAny(pattern, "*?!")
}

// Validate reports everything that is wrong with the configuration.
func (c SecurityConfig) Validate() error { return setting.OneOf("onToolChange", c.OnToolChange) }
