package auth_test

import (
	"slices"
	"testing"
	"time"

	"junctor/internal/auth"
	"junctor/internal/setting"
)

// TestConfigValidate checks that every problem is reported under its own key,
// and that the defaults are valid.
func TestConfigValidate(t *testing.T) {
	for name, tt := range map[string]struct {
		err  error
		want []string // keys of the problems
	}{
		"defaults": {auth.DefaultConfig().Validate(), nil},
		"good": {auth.Config{
			Keys:     []auth.KeyConfig{{Name: "a", Key: "0123456789abcdef", Rate: &setting.Rate{Calls: 1}, Expires: "2030-01-01"}},
			JWT:      &auth.JWTConfig{Issuer: "https://as.example.com", Audience: "x", JWKSURL: "https://as.example.com/keys"},
			Loopback: auth.LoopbackKey,
		}.Validate(), nil},
		"loopback": {auth.Config{Loopback: "maybe"}.Validate(), []string{"loopback"}},
		"keys": {auth.Config{Keys: []auth.KeyConfig{
			{Name: "a", Key: "short"},
			{Name: "a", Key: "0123456789 abcdef", Expires: "soon", Rate: &setting.Rate{}},
			{Key: "0123456789abcdef"},
		}}.Validate(), []string{"keys[0].key", "keys[1].expires", "keys[1].key", "keys[1].name", "keys[1].rate.calls", "keys[2].name"}},
		"jwt": {auth.Config{JWT: &auth.JWTConfig{JWKSURL: "ftp://x"}}.Validate(), []string{"jwt.audience", "jwt.issuer", "jwt.jwksUrl"}},
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

func TestKeyExpiry(t *testing.T) {
	for text, want := range map[string]time.Time{
		"":                     {},
		"2030-01-02":           time.Date(2030, 1, 2, 0, 0, 0, 0, time.UTC),
		"2030-01-02T03:04:05Z": time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC),
	} {
		if got, err := (auth.KeyConfig{Expires: text}).Expiry(); err != nil || !got.Equal(want) {
			t.Errorf("Expiry of %q = %v, %v", text, got, err)
		}
	}
}
