package auth

import (
	"testing"
	"time"

	"junctor/internal/setting"
	"junctor/internal/tool"
)

// TestTokenRightsAreUnionOfRules: the rights of several rules are added without
// mixing their globs.
func TestTokenRightsAreUnionOfRules(t *testing.T) {
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

func TestTokenWithoutRuleHasNoRights(t *testing.T) {
	a := newAuthority(t)
	g := gate(&memory{}, func(o *Options) {
		o.Listen = "10.0.0.1:80"
		o.Config.JWT = &JWTConfig{Issuer: a.URL, Audience: "https://junctor.example/mcp"}
	})
	if w, c := ask(g, set("Authorization", "Bearer "+a.token(t, nil))); w.Code != 403 || c != nil {
		t.Errorf("a valid token without a rule: %d %v", w.Code, c)
	}
}

// TestChatRightDefaults: keys and rules that are limited to servers or tools give no
// right to use models unless they say so; a rule that gives none does not
// widen the budget of one that does.
func TestChatRightDefaults(t *testing.T) {
	yes, no := true, false
	cfg := Config{Keys: []KeyConfig{
		{Name: "open", Key: "0123456789abcdef0"},
		{Name: "rated", Key: "0123456789abcdef1", Rate: &setting.Rate{Calls: 5}, TokensPerDay: 7},
		{Name: "limited", Key: "0123456789abcdef2", Tools: []string{"fs:*"}},
		{Name: "empty", Key: "0123456789abcdef3", Servers: []string{}},
		{Name: "allowed", Key: "0123456789abcdef4", Servers: []string{"fs"}, Chat: &yes},
		{Name: "denied", Key: "0123456789abcdef5", Chat: &no},
	}}
	want := map[string]bool{"open": true, "rated": true, "allowed": true, "admin": true}
	for _, c := range FixedCallers(cfg, "0123456789abcdef6") {
		if c.Chat != want[c.Name] || c.Name == "rated" && c.TokensPerDay != 7 {
			t.Errorf("key %s: chat %v, %d tokens", c.Name, c.Chat, c.TokensPerDay)
		}
	}
	if anonymous.Chat || !tool.Local.Chat {
		t.Errorf("anonymous %v, local %v", anonymous.Chat, tool.Local.Chat)
	}
	jwt := JWTConfig{Rules: []JWTRule{
		{Scopes: []string{"gh"}, Servers: []string{"github"}},
		{Scopes: []string{"chat"}, Servers: []string{}, Chat: &yes, TokensPerDay: 100},
		{Scopes: []string{"more"}, Servers: []string{}, Chat: &yes, TokensPerDay: 200},
		{Scopes: []string{"all"}},
		{Scopes: []string{"tools"}, Chat: &no},
	}}
	for name, tt := range map[string]struct {
		scopes []string
		chat   bool
		tokens int64
	}{
		"limited":         {[]string{"gh"}, false, 0},
		"chat":            {[]string{"chat", "gh", "tools"}, true, 100},
		"the larger":      {[]string{"chat", "more"}, true, 200},
		"without a limit": {[]string{"chat", "all"}, true, 0},
		"tools alone":     {[]string{"tools"}, false, 0},
	} {
		var c tool.Caller
		if jwt.grant(&c, tt.scopes); c.Chat != tt.chat || c.TokensPerDay != tt.tokens {
			t.Errorf("%s: chat %v, %d tokens, want %+v", name, c.Chat, c.TokensPerDay, tt)
		}
	}
	if err := (KeyConfig{Name: "k", Key: "0123456789abcdef", TokensPerDay: -1}).Validate(); err == nil {
		t.Error("a negative budget is accepted")
	}
}
