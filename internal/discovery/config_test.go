package discovery_test

import (
	"slices"
	"testing"
	"time"

	"junctor/internal/discovery"
	"junctor/internal/setting"
)

// TestConfigValidate checks that every problem is reported under its own key,
// and that the defaults are valid.
func TestConfigValidate(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want []string // keys of the problems
	}{
		"defaults": {discovery.DefaultConfig().Validate(), nil},
		"zero":     {discovery.Config{}.Validate(), []string{"listLimit", "maxAnswerBytes", "maxSearchLimit", "searchLimit"}},
		"words": {func() error {
			c := discovery.DefaultConfig()
			c.Mode, c.Cache.TTL, c.SearchLimit = "other", -1, 1000
			return c.Validate()
		}(), []string{"cache.ttl", "mode", "searchLimit"}},
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

func TestCacheDuration(t *testing.T) {
	if got := (discovery.CacheConfig{Enabled: true, TTL: 5}).Duration(); got != 5*time.Second {
		t.Error(got)
	}
	if got := (discovery.CacheConfig{TTL: 5}).Duration(); got != 0 {
		t.Error(got)
	}
}
