package auth

import (
	"strings"
	"testing"
	"time"

	"junctor/internal/setting"
	"junctor/internal/tool"
)

// TestTokenRightsAreUnionOfRules checks that the rights of several rules are
// combined without mixing their globs.
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
			if got := ApplyRules(cfg.allRules(), Claims{"scope": strings.Join(tt.scopes, " ")}, &c, nil); got != tt.matched || c.Admin != tt.admin || c.Rate.Calls != tt.calls {
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

// TestChatRightDefaults checks that keys and rules limited to servers or tools
// give no right to use models unless they set it, and that a rule without the
// right does not widen the budget of one with it.
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
	if tool.Anonymous.Chat || !tool.Local.Chat {
		t.Errorf("anonymous %v, local %v", tool.Anonymous.Chat, tool.Local.Chat)
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
		if ApplyRules(jwt.allRules(), Claims{"scope": strings.Join(tt.scopes, " ")}, &c, nil); c.Chat != tt.chat || c.TokensPerDay != tt.tokens {
			t.Errorf("%s: chat %v, %d tokens, want %+v", name, c.Chat, c.TokensPerDay, tt)
		}
	}
	if err := (KeyConfig{Name: "k", Key: "0123456789abcdef", TokensPerDay: -1}).Validate(); err == nil {
		t.Error("a negative budget is accepted")
	}
}

// TestRulesByClaims checks that every claim of a rule must match a glob, and
// that an email only counts if the issuer has verified it.
func TestRulesByClaims(t *testing.T) {
	for name, tt := range map[string]struct {
		rule   JWTRule
		claims Claims
		want   bool
	}{
		"group":                    {JWTRule{Claims: map[string][]string{"groups": {"eng-*"}}}, Claims{"groups": []any{"all", "eng-web"}}, true},
		"group as text":            {JWTRule{Claims: map[string][]string{"groups": {"eng"}}}, Claims{"groups": "eng"}, true},
		"other group":              {JWTRule{Claims: map[string][]string{"groups": {"eng-*"}}}, Claims{"groups": []any{"sales"}}, false},
		"no groups":                {JWTRule{Claims: map[string][]string{"groups": {"*"}}}, Claims{}, false},
		"excluded group":           {JWTRule{Claims: map[string][]string{"groups": {"*", "!interns"}}}, Claims{"groups": []any{"eng", "interns"}}, false},
		"path":                     {JWTRule{Claims: map[string][]string{"realm_access.roles": {"admin"}}}, Claims{"realm_access": map[string]any{"roles": []any{"user", "admin"}}}, true},
		"name with a dot":          {JWTRule{Claims: map[string][]string{"https://x.example/role": {"admin"}}}, Claims{"https://x.example/role": "admin"}, true},
		"path into text":           {JWTRule{Claims: map[string][]string{"a.b.c": {"*"}}}, Claims{"a": "text"}, false},
		"boolean":                  {JWTRule{Claims: map[string][]string{"mfa": {"true"}}}, Claims{"mfa": true}, true},
		"object":                   {JWTRule{Claims: map[string][]string{"groups": {"*"}}}, Claims{"groups": map[string]any{"a": "b"}}, false},
		"verified email":           {JWTRule{Claims: map[string][]string{"email": {"*@example.com"}}}, Claims{"email": "Ann@Example.com", "email_verified": true}, true},
		"email not verified":       {JWTRule{Claims: map[string][]string{"email": {"*@example.com"}}}, Claims{"email": "ann@example.com", "email_verified": false}, false},
		"email without the claim":  {JWTRule{Claims: map[string][]string{"email": {"*@example.com"}}}, Claims{"email": "ann@example.com"}, false},
		"email verified as text":   {JWTRule{Claims: map[string][]string{"email": {"*@example.com"}}}, Claims{"email": "ann@example.com", "email_verified": "true"}, false},
		"email of a longer domain": {JWTRule{Claims: map[string][]string{"email": {"*@example.com"}}}, Claims{"email": "ann@example.com.evil", "email_verified": true}, false},
		"scope as a claim":         {JWTRule{Claims: map[string][]string{"scope": {"tools:*"}}}, Claims{"scope": "openid tools:read"}, true},
		"one of two":               {JWTRule{Scopes: []string{"gh"}, Claims: map[string][]string{"groups": {"eng"}}}, Claims{"scope": "gh"}, false},
		"both":                     {JWTRule{Scopes: []string{"gh"}, Claims: map[string][]string{"groups": {"eng"}}}, Claims{"scp": []any{"gh"}, "groups": []any{"eng"}}, true},
		"nothing asked":            {JWTRule{}, Claims{}, true},
	} {
		c := tool.Caller{ID: "sub:x"}
		if got := ApplyRules([]JWTRule{tt.rule}, tt.claims, &c, nil); got != tt.want {
			t.Errorf("%s: matched %v", name, got)
		}
	}
	for name, r := range map[string]JWTRule{
		"no values":      {Claims: map[string][]string{"groups": {}}},
		"only excluded":  {Claims: map[string][]string{"groups": {"!x"}}},
		"admin, profile": {Admin: true, Profiles: []string{"p"}},
		"only !":         {Tools: []string{"!fs:*"}},
	} {
		if r.Validate() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// part is a profile with one server.
type part struct {
	tool.UnknownProfile
	server string
}

func (p part) Allows(n tool.Name) bool  { return n.Server == p.server }
func (p part) Shows(server string) bool { return server == p.server }
func (p part) Settings() tool.ProfileSettings {
	return tool.ProfileSettings{Ask: p.server == "fs", Rate: tool.Rate{Calls: len(p.server), Per: time.Minute}}
}

type parts struct{}

func (parts) Bind(c tool.Caller, name string) tool.Caller {
	c.Profiles = append(c.Profiles, parts{}.Get(name))
	return c
}
func (parts) Get(name string) tool.Profile { return part{tool.UnknownProfile(name), name} }

// TestRulesGiveProfiles checks that the profiles of the matching rules are
// combined, each restricted by its own rule.
func TestRulesGiveProfiles(t *testing.T) {
	rules := []JWTRule{
		{Scopes: []string{"one"}, Profiles: []string{"fs"}},
		{Scopes: []string{"two"}, Profiles: []string{"fs", "github"}, Tools: []string{"*", "!*:delete"}},
		{Scopes: []string{"none"}, Profiles: []string{}},
		{Scopes: []string{"free"}, Servers: []string{"db"}},
	}
	for name, tt := range map[string]struct {
		scopes, may, ask string
		calls            int
	}{
		"one":           {"one", "fs:read fs:delete", "fs:read fs:delete", 2},
		"two":           {"two", "fs:read github:read", "fs:read", 6},
		"both":          {"one two", "fs:read fs:delete github:read", "fs:read fs:delete", 6},
		"none":          {"none", "", "", 0},
		"with a server": {"one free", "fs:read fs:delete db:read db:delete", "fs:read fs:delete", 0},
	} {
		c := tool.Caller{ID: "sub:x"}
		if !ApplyRules(rules, Claims{"scope": tt.scopes}, &c, parts{}) {
			t.Fatalf("%s: no match", name)
		}
		var may, ask []string
		for _, s := range []string{"fs", "github", "db"} {
			for _, n := range []tool.Name{{Server: s, Tool: "read"}, {Server: s, Tool: "delete"}} {
				if c.MayUse(n) {
					may = append(may, n.String())
					if c.NeedsApproval(n) {
						ask = append(ask, n.String())
					}
				}
			}
		}
		if strings.Join(may, " ") != tt.may || strings.Join(ask, " ") != tt.ask || c.Rate.Calls != tt.calls || c.Chat || c.Admin {
			t.Errorf("%s: may %v, ask %v, %d calls, %+v", name, may, ask, c.Rate.Calls, c)
		}
		if !c.Limited() {
			t.Errorf("%s is not limited", name)
		}
	}
}
