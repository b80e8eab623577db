package auth

import (
	"testing"
	"time"

	"junctor/internal/setting"
	"junctor/internal/tool"
)

// TestTokenHasWhatItsRulesGive adds up rules without mixing their globs.
func TestTokenHasWhatItsRulesGive(t *testing.T) {
	cfg := JWTConfig{AdminScope: "root", Rules: []JWTRule{
		{Scopes: []string{"gh"}, Servers: []string{"github"}, Rate: &setting.Rate{Calls: 5}},
		{Scopes: []string{"read"}, Servers: []string{"fs"}, Tools: []string{"fs:read_*"}, Rate: &setting.Rate{Calls: 50}},
		{Scopes: []string{"gh", "all"}},
		{Scopes: []string{"none"}, Servers: []string{}},
	}}
	for name, tt := range map[string]struct {
		scopes  []string
		matched bool
		admin   bool
		calls   int
		may     []string
		not     []string
	}{
		"no match":        {[]string{"other"}, false, false, 0, nil, nil},
		"one":             {[]string{"gh"}, true, false, 5, []string{"github:push"}, []string{"fs:read_file", "fs:write"}},
		"two do not mix":  {[]string{"gh", "read"}, true, false, 50, []string{"github:push", "fs:read_file"}, []string{"fs:write", "db:query"}},
		"everything":      {[]string{"gh", "all"}, true, false, 0, []string{"github:push", "fs:write", "db:query"}, nil},
		"half of a rule":  {[]string{"all"}, false, false, 0, nil, nil},
		"nothing at all":  {[]string{"none"}, true, false, 0, nil, []string{"github:push"}},
		"adminScope":      {[]string{"root"}, true, true, 0, []string{"db:query"}, nil},
		"admin and limit": {[]string{"root", "gh"}, true, true, 0, []string{"db:query"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var c tool.Caller
			if got := cfg.grant(&c, tt.scopes); got != tt.matched || c.Admin != tt.admin || c.Rate.Calls != tt.calls {
				t.Errorf("matched %v, %+v", got, c)
			}
			for _, n := range tt.may {
				if name, _ := tool.ParseName(n); !c.MayUse(name) || !c.MaySee(name.Server) {
					t.Errorf("may not use %s", n)
				}
			}
			for _, n := range tt.not {
				if name, _ := tool.ParseName(n); c.MayUse(name) {
					t.Errorf("may use %s", n)
				}
			}
		})
	}
	if r := (&setting.Rate{Calls: 5}); r.Per() < time.Second {
		t.Errorf("a rate per %s", r.Per())
	}
}

func TestTokenWithoutARuleMayDoNothing(t *testing.T) {
	a := newAuthority(t)
	g := gate(&memory{}, func(o *Options) {
		o.Listen = "10.0.0.1:80"
		o.Config.JWT = &JWTConfig{Issuer: a.URL, Audience: "https://junctor.example/mcp"}
	})
	if w, c := ask(g, set("Authorization", "Bearer "+a.token(t, nil))); w.Code != 403 || c != nil {
		t.Errorf("a valid token without a rule: %d %v", w.Code, c)
	}
}
