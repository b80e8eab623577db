package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"junctor/internal/schema"
	"junctor/internal/tool"
)

// Entry is one tool with the rules that apply to it.
type Entry struct {
	tool.Definition                 // as callers see it
	Original        tool.Definition // as the upstream gave it
	Enabled         bool
	Reason          string // why it is disabled
	Tags            []string
	Approval        Approval
	Select          string // a jq expression that is applied to every result; empty for none
	Review          Review

	callers    []string // the IDs of the callers that it is listed for, sorted; nil for all
	override   override
	notApplied string // which part of the override is not applied, and why
	compile    func() (*schema.Schema, error)
	problem    *atomic.Pointer[string] // problem of its schema; points to nil until one is found
}

// Schema returns the compiled input schema. It is compiled on first use,
// because most tools of a large catalogue are never called.
func (e *Entry) Schema() (*schema.Schema, error) { return e.compile() }

// MarkSchema records why arguments cannot be validated against the schema.
func (e *Entry) MarkSchema(problem string) { e.problem.Store(&problem) }

// Warnings returns the flags of the tool's review, and the problems of its
// schema and of rules that override it.
func (e *Entry) Warnings() []string {
	flags := slices.Clip(e.Review.Flags)
	if e.notApplied != "" {
		flags = append(flags, e.notApplied)
	}
	if problem := e.problem.Load(); problem != nil {
		flags = append(flags, *problem)
	}
	return flags
}

// entry returns the entry of a definition. names are the original names of the
// server's tools and the names that rules have assigned so far.
func (c *Catalog) entry(s *Server, d tool.Definition, names map[string]bool) *Entry {
	e := &Entry{Definition: d, Original: d, Enabled: true, Tags: s.Tags, problem: new(atomic.Pointer[string])}
	e.compile = sync.OnceValues(func() (*schema.Schema, error) {
		compiled, err := schema.Compile(e.InputSchema)
		if err != nil {
			e.MarkSchema("its inputSchema cannot be used, so arguments are not checked: " + err.Error())
		}
		return compiled, err
	})
	if s.Callers != nil {
		e.callers = slices.Sorted(slices.Values(s.Callers[d.Name.Tool]))
		if e.callers == nil {
			e.callers = []string{}
		}
	}
	if s.Allows != nil && !s.Allows(d.Name.Tool) {
		e.Enabled, e.Reason = false, "the server's tool_configuration leaves it out"
	}
	e.apply(c.settings.Rules)
	e.redefine(names)
	if c.review != nil {
		e.Review = c.review(d)
	}
	if e.Review.Blocked && e.Enabled {
		e.Enabled, e.Reason = false, "its definition changed and waits for approval (junctor servers approve "+d.Name.Server+")"
	}
	return e
}

// apply sets each field from the last matching rule that has it. A rule cannot
// enable a tool that the server's configuration disables.
func (e *Entry) apply(rules []ToolRule) {
	name, own := e.Original.Name.String(), e.Tags
	off := !e.Enabled
	var ruled []string
	for _, r := range rules {
		if len(r.Pattern) > 0 && !tool.Selects(r.Pattern, name) || len(r.Pattern) == 0 && r.When == nil {
			continue
		}
		if !r.When.fits(e.Original.Annotations, slices.Concat(own, ruled)) {
			continue
		}
		if r.trusts() { // ignore what Validate refuses
			r.Tags = nil
			if r.Enabled != nil && *r.Enabled {
				r.Enabled = nil
			}
			if r.Approval == AutoApproval {
				r.Approval = ""
			}
		}
		e.override.add(r)
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
		if r.Select != "" {
			e.Select = r.Select
		}
	}
	for _, tag := range ruled {
		if !slices.Contains(e.Tags, tag) {
			e.Tags = append(slices.Clip(e.Tags), tag)
		}
	}
}

// redefine sets the definition that callers see. It does not apply a name that
// another tool of the server has.
func (e *Entry) redefine(names map[string]bool) {
	if e.override.empty() {
		return
	}
	if name := e.override.name; name != "" && name != e.Original.Name.Tool && names[name] {
		e.override.name = ""
		e.notApplied = fmt.Sprintf("a rule names it %q, but its server has another tool of that name", name)
	}
	names[cmp.Or(e.override.name, e.Original.Name.Tool)] = true
	d, err := e.override.apply(e.Original)
	if err != nil {
		e.Enabled, e.Reason = false, "the overrides in toolRules cannot be applied: "+err.Error()
		return
	}
	e.Definition = d
}
