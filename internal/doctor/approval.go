package doctor

import (
	"slices"

	"junctor/internal/builtin"
	"junctor/internal/catalog"
	"junctor/internal/terminal"
	"junctor/internal/tool"
)

// askFirst is a rule that requires approval for all tools that are not marked
// read-only.
const askFirst = `{"when": {"readOnly": ["no", "unknown"]}, "approval": "ask"}`

// approval proposes askFirst if no rule sets approval and there are tools that
// are not marked read-only.
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
