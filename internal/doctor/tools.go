package doctor

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"junctor/internal/control"
	"junctor/internal/guard"
	"junctor/internal/mcp"
	"junctor/internal/provider"
	"junctor/internal/rawjson"
	"junctor/internal/schema"
	"junctor/internal/terminal"
	"junctor/internal/tool"
)

// toolName matches the tool names that MCP allows.
var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

// longDescription is the length above which OpenAI's API refuses or truncates a
// description.
const longDescription = 1024

// names checks the names of tools.
func (r *Report) names(defs []tool.Definition) {
	for _, d := range defs {
		if !toolName.MatchString(d.Name.Tool) {
			r.Add(Finding{
				Severity: Warning, Area: "tools", Subject: d.Name.String(),
				What: fmt.Sprintf("the name %q is not allowed by MCP", d.Name.Tool),
				Do:   "use 1 to 128 characters of A-Z a-z 0-9 _ - . in tool names",
			})
		}
	}
}

// clashes reports bare names that tools of several servers share.
func (r *Report) clashes(defs []tool.Definition) {
	byName := map[string][]string{}
	for _, d := range defs {
		byName[d.Name.Tool] = append(byName[d.Name.Tool], d.Name.String())
	}
	var bare []string
	for name, list := range byName {
		if len(list) > 1 {
			bare = append(bare, name)
		}
	}
	slices.Sort(bare)
	var details []string
	for _, name := range bare {
		details = append(details, strings.Join(byName[name], ", "))
	}
	if len(details) > 0 {
		r.Add(Finding{
			Severity: Info, Area: "tools", What: terminal.Count(len(details), "name") + " used by several servers", Details: details,
			Do: "call them as server:tool; a bare name is refused with that list",
		})
	}
}

// schemas checks the schemas of tools.
func (r *Report) schemas(defs []tool.Definition) {
	broken := 0
	for _, d := range defs {
		if _, err := schema.Compile(d.InputSchema); err != nil {
			broken++
			r.Add(Finding{
				Severity: Warning, Area: "tools", Subject: d.Name.String(), What: "its inputSchema is not valid JSON Schema: " + err.Error(),
				Do: "arguments are not validated until its author fixes it",
			})
		} else if t := rawjson.FieldString(d.InputSchema, "type"); t != "object" {
			broken++
			r.Add(Finding{
				Severity: Warning, Area: "tools", Subject: d.Name.String(), What: fmt.Sprintf(`its inputSchema has the type %q`, t),
				Do: `MCP requires "type": "object"`,
			})
		}
		if len(d.OutputSchema) > 0 {
			if _, err := schema.Compile(d.OutputSchema); err != nil {
				broken++
				r.Add(Finding{Severity: Warning, Area: "tools", Subject: d.Name.String(), What: "its outputSchema is not valid JSON Schema: " + err.Error()})
			}
		}
	}
	if broken == 0 && len(defs) > 0 {
		r.Add(Finding{Severity: OK, Area: "tools", What: fmt.Sprintf("the schemas of %s are valid", terminal.Count(len(defs), "tool"))})
	}
}

// flagged reports the gateway's warnings about tools, such as a rule that is not
// applied. It omits those that safety reports.
func (r *Report) flagged(tools []control.Tool, defs []tool.Definition) {
	for _, t := range tools {
		reported := map[string]bool{}
		for _, d := range defs {
			if d.Name.String() == t.Name {
				for _, flag := range guard.Inspect(d) {
					reported[flag.String()] = true
				}
			}
		}
		f := Finding{Severity: Warning, Area: "tools", Subject: t.Name, Do: "see junctor tools show " + t.Name}
		for _, flag := range t.Flags {
			if !reported[flag] {
				f.Details = append(f.Details, flag)
			}
		}
		if len(f.Details) > 0 {
			f.What = "has " + terminal.Count(len(f.Details), "warning")
			r.Add(f)
		}
	}
}

// providers reports what each model provider would reject and how Junctor
// handles it. Providers with equal results share a finding.
func (r *Report) providers(defs []tool.Definition) {
	if len(defs) == 0 {
		return
	}
	tools := provider.NewTools(defs, nil)
	which := make([]tool.Name, len(defs))
	for i, d := range defs {
		which[i] = d.Name
	}
	var all []Finding
	for _, name := range provider.Providers() {
		f := refused(tools, name, which)
		i := slices.IndexFunc(all, func(o Finding) bool {
			return o.Severity == f.Severity && o.What == f.What && slices.Equal(o.Details, f.Details)
		})
		if i < 0 {
			all = append(all, f)
		} else {
			all[i].Subject += ", " + name
		}
	}
	for _, f := range all {
		r.Add(f)
	}
}

// refused returns a finding about what one provider does not accept.
func refused(tools *provider.Tools, name string, which []tool.Name) Finding {
	f := Finding{Severity: OK, Area: "providers", Subject: name, What: "all definitions are accepted unchanged"}
	listing, err := tools.Declare(name, which, provider.Options{Limit: len(which)})
	if err != nil {
		f.Severity, f.What = Warning, err.Error()
		return f
	}
	var lowered, lost []string
	for _, w := range listing.Warnings {
		text := w.Tool + ": " + w.Message
		if len(w.Paths) > 0 {
			text += " at " + strings.Join(w.Paths, ", ")
		}
		switch w.Code {
		case provider.Lowered:
			lowered = append(lowered, text)
		case provider.LeftOut:
			lost = append(lost, text)
		}
	}
	limit := provider.Limit(name)
	switch {
	case limit > 0 && len(which) > limit:
		f.Severity, f.What, f.Details = Warning, fmt.Sprintf("%d tools exceed the limit of %d per request", len(which), limit), lost
		f.Do = "narrow the list with ?server=, ?tags= or ?query=, or use the meta-tools"
	case len(lost) > 0:
		f.Severity, f.What, f.Details = Warning, terminal.Count(len(lost), "tool")+" cannot be declared at all", lost
		f.Do = "its author should fix the schema; agents can still call it through the meta-tools"
	case len(lowered) > 0:
		f.Severity, f.What, f.Details = Info, "part of "+terminal.Count(len(lowered), "schema")+" would be refused; Junctor translates it", lowered
	}
	return f
}

// safety inspects the definitions for text that tries to instruct the model.
func (r *Report) safety(defs []tool.Definition) {
	flagged := 0
	for _, d := range defs {
		flags := guard.Inspect(d)
		if len(flags) == 0 {
			continue
		}
		flagged++
		f := Finding{
			Severity: Warning, Area: "safety", Subject: d.Name.String(), What: "possible prompt injection in its definition",
			Do: "read its definition; disable it in toolRules if you do not trust it",
		}
		for _, flag := range flags {
			f.Details = append(f.Details, flag.String())
		}
		r.Add(f)
	}
	if flagged == 0 && len(defs) > 0 {
		r.Add(Finding{Severity: OK, Area: "safety", What: "no hidden characters or possible prompt injection in definitions"})
	}
}

// adviseOnTools reports what an author could improve in the tools.
func (r *Report) adviseOnTools(defs []tool.Definition) {
	var silent, long, params, unmarked []string
	for _, d := range defs {
		if strings.TrimSpace(d.Description) == "" {
			silent = append(silent, d.Name.Tool)
		}
		if len(d.Description) > longDescription {
			long = append(long, fmt.Sprintf("%s: %d bytes", d.Name.Tool, len(d.Description)))
		}
		for name, p := range rawjson.Members(rawjson.Field(d.InputSchema, "properties")) {
			if rawjson.FieldString(p, "description") == "" {
				params = append(params, d.Name.Tool+"."+name)
			}
		}
		if a := d.Annotations; a.ReadOnlyHint == nil && a.DestructiveHint == nil && a.IdempotentHint == nil {
			unmarked = append(unmarked, d.Name.Tool)
		}
	}
	for _, m := range []struct {
		severity Severity
		list     []string
		what, do string
	}{
		{Warning, silent, "tools without a description", "models choose tools by their description"},
		{Info, long, "tools with a description over 1 KB", "some providers cut or refuse it, and all charge for it"},
		{Info, params, "parameters without a description", "say what they mean and what form they have"},
		{Info, unmarked, "tools without annotations", "readOnlyHint and idempotentHint let clients call without asking, and try again"},
	} {
		if len(m.list) > 0 {
			r.Add(Finding{Severity: m.severity, Area: "tools", What: fmt.Sprintf("%s: %d", m.what, len(m.list)), Do: m.do, Details: m.list})
		}
	}
}

// parse parses the entries of tools/list and reports those that are invalid.
func (r *Report) parse(server string, entries []json.RawMessage) []tool.Definition {
	var defs []tool.Definition
	seen := map[string]bool{}
	for i, raw := range entries {
		if depth := mcp.DefaultMaxDepth - 3; rawjson.TooDeep(raw, depth) {
			r.Add(Finding{Severity: Problem, Area: "tools", Subject: tool.Shorten(rawjson.FieldString(raw, "name"), 100),
				What: fmt.Sprintf("is nested deeper than %d levels; the gateway leaves it out", depth)})
			continue
		}
		d, err := tool.ParseDefinition(server, raw)
		if err != nil {
			r.Add(Finding{Severity: Problem, Area: "tools", Subject: fmt.Sprintf("entry %d", i+1), What: err.Error()})
			continue
		}
		if seen[d.Name.Tool] {
			r.Add(Finding{Severity: Problem, Area: "tools", Subject: d.Name.Tool, What: "is listed twice; no client can tell the two apart"})
			continue
		}
		seen[d.Name.Tool] = true
		defs = append(defs, d)
	}
	return defs
}
