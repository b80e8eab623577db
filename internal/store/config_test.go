package store_test

import (
	"slices"
	"testing"
	"time"

	"junctor/internal/setting"
	"junctor/internal/store"
)

// TestConfigValidate checks that each violated rule is reported under its own
// key, and that the defaults are valid.
func TestConfigValidate(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want []string // keys of the problems
	}{
		"defaults":        {store.DefaultConfig().Validate(), nil},
		"postgres":        {store.Config{URL: "postgres://u:p@h:5432/d"}.Validate(), nil},
		"postgres socket": {store.Config{URL: "postgresql:///d?host=/run/postgresql"}.Validate(), nil},
		"other database":  {store.Config{URL: "mysql://h/d"}.Validate(), []string{"url"}},
		"no host":         {store.Config{URL: "postgres://"}.Validate(), []string{"url"}},
		"no url":          {store.Config{URL: "::"}.Validate(), []string{"url"}},
		"both":            {store.Config{Path: "x", URL: "postgres://h/d"}.Validate(), []string{"path"}},
		"retention":       {store.Config{Retention: store.Retention{AgeDays: -1, SizeMB: -1}}.Validate(), []string{"retention.ageDays", "retention.sizeMB"}},
		"for ever":        {store.Config{Retention: store.Retention{AgeDays: 1 << 30}}.Validate(), []string{"retention.ageDays"}},
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

func TestRetention(t *testing.T) {
	r := store.Retention{AgeDays: 2, SizeMB: 3}
	if r.Age() != 48*time.Hour || r.Bytes() != 3<<20 {
		t.Errorf("%v, %d", r.Age(), r.Bytes())
	}
}
