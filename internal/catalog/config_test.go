package catalog_test

import (
	"slices"
	"testing"

	"junctor/internal/catalog"
	"junctor/internal/setting"
)

// TestConfigValidate checks that each violated rule is reported under its own
// key, and that the defaults are valid.
func TestConfigValidate(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want []string // keys of the problems
	}{
		"defaults":      {catalog.DefaultSecurityConfig().Validate(), nil},
		"unknown":       {catalog.SecurityConfig{OnToolChange: "shrug"}.Validate(), []string{"onToolChange"}},
		"rule":          {catalog.ToolRule{Pattern: []string{"a:*"}, Approval: catalog.AskApproval}.Validate(), nil},
		"no pattern":    {catalog.ToolRule{Approval: "maybe"}.Validate(), []string{"approval", "pattern"}},
		"empty pattern": {catalog.ToolRule{Pattern: []string{"a", ""}}.Validate(), []string{"pattern[1]"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, p := range setting.Problems(tt.err) {
				if p.Msg == "" {
					t.Errorf("%s has no words", p.Key)
				}
				got = append(got, p.Key)
			}
			slices.Sort(got)
			if !slices.Equal(got, tt.want) {
				t.Errorf("problems at %q, want %q: %v", got, tt.want, tt.err)
			}
		})
	}
}
