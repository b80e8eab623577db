package catalog

import (
	"errors"
	"slices"
	"strings"

	"junctor/internal/setting"
	"junctor/internal/tool"
)

// Condition limits a rule to tools with certain properties. A tool must meet all
// fields that are set.
type Condition struct {
	// Whether the tool only reads, according to the server: yes, no or unknown. If you list several values, one must match. Default: any.
	ReadOnly []Hint `json:"readOnly,omitempty"`
	// Whether the tool may destroy something: yes, no or unknown. Default: any.
	Destructive []Hint `json:"destructive,omitempty"`
	// Whether repeating a call has no additional effect: yes, no or unknown. Default: any.
	Idempotent []Hint `json:"idempotent,omitempty"`
	// Whether the tool interacts with anything outside its server, such as the web: yes, no or unknown. Default: any.
	OpenWorld []Hint `json:"openWorld,omitempty"`
	// Globs of tags, from the tool's server or earlier rules. At least one must match a tag, and none with a leading ! may. Default: any.
	Tags []string `json:"tags,omitempty"`
}

// Hint is what a server's annotations say about a property of a tool.
type Hint string

// The hints.
const (
	Yes     Hint = "yes"
	No      Hint = "no"
	Unknown Hint = "unknown" // the server does not say
)

// Values lists the hints.
func (Hint) Values() []string { return []string{string(Yes), string(No), string(Unknown)} }

// fits reports whether a tool with these annotations and tags meets the
// condition.
func (c *Condition) fits(a tool.Annotations, tags []string) bool {
	if c == nil {
		return true
	}
	for _, h := range c.hints() {
		if h.wanted != nil && !contains(h.wanted, h.of(a)) {
			return false
		}
	}
	return c.Tags == nil || tool.SelectsAny(c.Tags, tags)
}

type hintCheck struct {
	key    string
	wanted []Hint
	of     func(tool.Annotations) *bool
}

func (c *Condition) hints() []hintCheck {
	return []hintCheck{
		{"readOnly", c.ReadOnly, func(a tool.Annotations) *bool { return a.ReadOnlyHint }},
		{"destructive", c.Destructive, func(a tool.Annotations) *bool { return a.DestructiveHint }},
		{"idempotent", c.Idempotent, func(a tool.Annotations) *bool { return a.IdempotentHint }},
		{"openWorld", c.OpenWorld, func(a tool.Annotations) *bool { return a.OpenWorldHint }},
	}
}

func contains(wanted []Hint, is *bool) bool {
	hint := Unknown
	if is != nil && *is {
		hint = Yes
	} else if is != nil {
		hint = No
	}
	return slices.Contains(wanted, hint)
}

// trusts reports whether the rule depends on annotations of servers and does not
// name the servers. Such a rule may only restrict tools.
func (r ToolRule) trusts() bool {
	if r.When == nil || r.When.ReadOnly == nil && r.When.Destructive == nil && r.When.Idempotent == nil && r.When.OpenWorld == nil {
		return false
	}
	for _, p := range r.Pattern {
		server, _, ok := strings.Cut(p, ":")
		if !strings.HasPrefix(p, "!") && (!ok || strings.ContainsAny(server, "*?")) {
			return true
		}
	}
	return len(r.Pattern) == 0
}

func (c *Condition) validate() error {
	if c == nil {
		return nil
	}
	var errs []error
	set := c.Tags != nil
	for _, h := range c.hints() {
		set = set || h.wanted != nil
		for i, word := range h.wanted {
			errs = append(errs, setting.PrefixIndex(h.key, i, setting.OneOf("", word)))
		}
		if h.wanted != nil && len(h.wanted) == 0 {
			errs = append(errs, setting.Wrong(h.key, "is empty and matches no tool; write yes, no or unknown"))
		}
	}
	if err := tool.CheckGlobs(c.Tags); err != nil {
		errs = append(errs, setting.Wrong("tags", "%v", err))
	}
	if !set {
		errs = append(errs, setting.Wrong("", "has no condition; write a property such as readOnly, or leave it out"))
	}
	return errors.Join(errs...)
}
