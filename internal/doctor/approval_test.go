package doctor

import (
	"encoding/json"
	"strings"
	"testing"

	"junctor/internal/catalog"
	"junctor/internal/tool"
)

// TestProposeApprovalRule: the proposed rule is valid, and with it no rule is
// proposed.
func TestProposeApprovalRule(t *testing.T) {
	var rule catalog.ToolRule
	if err := json.Unmarshal([]byte(askFirst), &rule); err != nil || rule.Validate() != nil {
		t.Fatal(err, rule.Validate())
	}
	yes := true
	writes := tool.Definition{Name: tool.Name{Server: "fs", Tool: "write"}}
	reads := tool.Definition{Name: tool.Name{Server: "fs", Tool: "read"}, Annotations: tool.Annotations{ReadOnlyHint: &yes}}
	for name, tt := range map[string]struct {
		tools []tool.Definition
		rules []catalog.ToolRule
		want  int
	}{
		"writes":         {[]tool.Definition{reads, writes}, nil, 1},
		"reads only":     {[]tool.Definition{reads}, nil, 0},
		"has the rule":   {[]tool.Definition{reads, writes}, []catalog.ToolRule{rule}, 0},
		"built-in tools": {[]tool.Definition{{Name: tool.Name{Server: "junctor", Tool: "x"}}}, nil, 0},
	} {
		r := &Report{}
		r.approval(tt.tools, tt.rules)
		if len(r.Findings) != tt.want || tt.want > 0 && !strings.Contains(r.Findings[0].Do, askFirst) {
			t.Errorf("%s: %+v", name, r.Findings)
		}
	}
}
