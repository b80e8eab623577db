package executor_test

import (
	"slices"
	"testing"

	"junctor/internal/executor"
	"junctor/internal/setting"
)

// TestConfigValidate checks that every rule of the configuration is reported
// under its own key, and that the defaults break none.
func TestConfigValidate(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want []string // keys of the problems
	}{
		"default circuit":  {executor.DefaultConfig().Circuit.Validate(), nil},
		"default limits":   {executor.DefaultConfig().Limits.Validate(), nil},
		"zero circuit":     {executor.CircuitConfig{}.Validate(), []string{"threshold", "windowMs"}},
		"negative circuit": {executor.CircuitConfig{Threshold: -1, WindowMs: -1, CoolDownMs: -1}.Validate(), []string{"coolDownMs", "threshold", "windowMs"}},
		"negative limits": {
			executor.LimitConfig{MaxResultBytes: -1, CallerRate: &setting.Rate{PerMs: -1}, ToolRate: &setting.Rate{Calls: 1}}.Validate(),
			[]string{"callerRate.calls", "callerRate.perMs", "maxResultBytes"},
		},
		"tiny result": {executor.LimitConfig{MaxResultBytes: 5}.Validate(), []string{"maxResultBytes"}},
		"no limits":   {executor.LimitConfig{}.Validate(), nil},
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
