package doctor

import (
	"slices"

	"junctor/internal/builtin"
	"junctor/internal/catalog"
	"junctor/internal/terminal"
	"junctor/internal/tool"
)

// askFirst is the rule that has a person approve what is not known to only
// read.
const askFirst = `{"when": {"readOnly": ["no", "unknown"]}, "approval": "ask"}`

// approval proposes a rule if no rule has a person asked, and there are tools
// that are not marked as read-only.
func (r *Report) approval(defs []tool.Definition, rules []catalog.ToolRule) {
	if slices.ContainsFunc(rules, func(rule catalog.ToolRule) bool { return rule.Approval != "" }) {
		return
	}
	n := 0
	for _, d := range defs {
		if d.Name.Server != builtin.Name && (d.Annotations.ReadOnlyHint == nil || !*d.Annotations.ReadOnlyHint) {
			n++
		}
	}
	if n > 0 {
		r.Add(Finding{
			Severity: Info, Area: "safety", What: terminal.Count(n, "tool") + " not marked as read-only can be called without approval",
			Do: "to be asked before each call of them, add to toolRules: " + askFirst,
		})
	}
}
