package auth

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"junctor/internal/setting"
	"junctor/internal/store"
	"junctor/internal/tool"
)

// JWTRule gives rights to the tokens, and to the people who sign in, that have
// all its scopes and claims.
type JWTRule struct {
	// Scopes that a token must have for the rule to match. Default: none.
	Scopes []string `json:"scopes,omitempty"`
	// Claims that a token must have for the rule to match, such as {"groups": ["eng-*"], "email": ["*@example.com"]}. For each claim, at least one glob must match a value, and none with a leading ! may. An email counts only with email_verified: true. Use dots for nested claims: realm_access.roles. A rule without scopes and claims matches every token.
	Claims map[string][]string `json:"claims,omitempty"`
	// Profiles that the token may use, all together or one of its choice. Default: no restriction to profiles.
	Profiles []string `json:"profiles,omitempty"`
	// Globs of the servers that the token may use. A glob with a leading ! excludes servers. Default: all.
	Servers []string `json:"servers,omitempty"`
	// Globs over server:tool of the tools that the token may use. A glob with a leading ! excludes tools. Default: all.
	Tools []string `json:"tools,omitempty"`
	// Rate limit of the token's subject. If several rules match, the most generous limit applies. Default: that of the rule's profiles, or else no limit.
	Rate *setting.Rate `json:"rate,omitempty"`
	// Whether the token may use models, for chat and for tasks in natural language. Default: true, unless the rule is restricted to servers, tools or profiles.
	Chat *bool `json:"chat,omitempty"`
	// Maximum number of model tokens that the token's subject may use per day (UTC). If several matching rules allow models, the most generous limit applies. Default: no limit.
	TokensPerDay int64 `json:"tokensPerDay,omitempty"`
	// Whether the token may change the configuration.
	Admin bool `json:"admin,omitempty"`
}

// Validate reports everything that is wrong with the rule.
func (r JWTRule) Validate() error {
	errs := []error{
		setting.Prefix("rate", r.Rate.Validate()), notNegative("tokensPerDay", r.TokensPerDay),
		checkGlobs("servers", r.Servers), checkGlobs("tools", r.Tools),
	}
	for _, name := range slices.Sorted(maps.Keys(r.Claims)) {
		globs := r.Claims[name]
		if len(globs) == 0 {
			errs = append(errs, setting.Wrong("claims."+name, `is empty and matches no token; write globs of its values, ["*"] for any`))
		}
		errs = append(errs, checkGlobs("claims."+name, globs))
	}
	if r.Admin && r.Profiles != nil {
		errs = append(errs, setting.Wrong("admin", "a rule with profiles cannot make an administrator, because that one could change the profiles"))
	}
	return errors.Join(errs...)
}

// Claims are the claims of a token or of a person who signed in.
type Claims map[string]any

// scopes returns the scopes of a token. RFC 9068 puts them into one string
// under scope. Microsoft uses one string under scp, Okta a list.
func (c Claims) scopes() []string {
	var out []string
	for _, name := range []string{"scope", "scp"} {
		for _, v := range c.values(name) {
			out = append(out, strings.Fields(v)...)
		}
	}
	return out
}

// wellFormed reports whether the scopes are strings or lists of strings.
func (c Claims) wellFormed() bool {
	for _, name := range []string{"scope", "scp"} {
		switch v := c[name].(type) {
		case nil, string:
		case []any:
			if slices.ContainsFunc(v, func(v any) bool { _, ok := v.(string); return !ok }) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// values returns the values of a claim as strings. A name with dots is a path
// into objects, unless there is a claim with that exact name.
func (c Claims) values(name string) []string {
	v, ok := c[name]
	for rest, in := name, map[string]any(c); !ok && in != nil; {
		var first string
		var more bool
		if first, rest, more = strings.Cut(rest, "."); !more {
			v = in[first]
			break
		}
		in, _ = in[first].(map[string]any)
	}
	var out []string
	list, isList := v.([]any)
	if !isList {
		list = []any{v}
	}
	for _, v := range list {
		switch v := v.(type) {
		case string:
			out = append(out, v)
		case bool:
			out = append(out, strconv.FormatBool(v))
		case float64:
			out = append(out, strconv.FormatFloat(v, 'f', -1, 64))
		}
	}
	return out
}

// match reports whether the claim has a value that the globs select, and none
// that they exclude.
func (c Claims) match(name string, globs []string) bool {
	values := c.values(name)
	switch name {
	case "scope", "scp":
		values = c.scopes()
	case "email":
		// An unverified email address may be anyone's.
		if verified, _ := c["email_verified"].(bool); !verified {
			return false
		}
		values, globs = lower(values), lower(globs)
	}
	return tool.SelectsAny(globs, values)
}

func lower(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = strings.ToLower(s)
	}
	return out
}

func (r JWTRule) matches(claims Claims, scopes []string) bool {
	for _, s := range r.Scopes {
		if !slices.Contains(scopes, s) {
			return false
		}
	}
	for name, globs := range r.Claims {
		if !claims.match(name, globs) {
			return false
		}
	}
	return true
}

// ApplyRules gives the caller the combined rights of all rules that match the
// claims. If none matches, it reports false and gives no rights.
func ApplyRules(rules []JWTRule, claims Claims, c *tool.Caller, profiles Profiles) bool {
	scopes := claims.scopes()
	matched, everything, unmetered, unbudgeted := false, false, false, false
	for _, r := range rules {
		if !r.matches(claims, scopes) {
			continue
		}
		matched = true
		c.Admin = c.Admin || r.Admin
		granted := r.grants(profiles)
		c.Grants = append(c.Grants, granted...)
		everything = everything || r.Servers == nil && r.Tools == nil && r.Profiles == nil
		limits := store.Key{Servers: r.Servers, Tools: r.Tools, Chat: r.Chat}
		if r.Profiles != nil && limits.Servers == nil {
			limits.Servers = []string{}
		}
		if limits.MayChat() {
			c.Chat, unbudgeted = true, unbudgeted || r.TokensPerDay == 0
			c.TokensPerDay = max(c.TokensPerDay, r.TokensPerDay)
		}
		for _, rate := range r.rates(granted) {
			if rate.Calls == 0 {
				unmetered = true
			} else if c.Rate.Calls == 0 || perSecond(rate) > perSecond(c.Rate) {
				c.Rate = rate
			}
		}
	}
	if everything {
		c.Grants = nil
	}
	if len(c.Grants) == 1 {
		g := c.Grants[0]
		c.Servers, c.Tools, c.Profiles, c.Grants = g.Servers, g.Tools, g.Profiles, nil
	}
	if unbudgeted {
		c.TokensPerDay = 0
	}
	if unmetered {
		c.Rate = tool.Rate{}
	}
	return matched
}

// grants returns the grants of the rule. There is always at least one, because
// a caller without grants is unrestricted.
func (r JWTRule) grants(profiles Profiles) []tool.Grant {
	if r.Profiles == nil {
		return []tool.Grant{{Servers: r.Servers, Tools: r.Tools}}
	}
	if len(r.Profiles) == 0 {
		return []tool.Grant{{Servers: []string{}}}
	}
	var out []tool.Grant
	for _, name := range r.Profiles {
		var p tool.Profile = tool.UnknownProfile(name)
		if profiles != nil {
			p = profiles.Get(name)
		}
		out = append(out, tool.Grant{Servers: r.Servers, Tools: r.Tools, Profiles: tool.Profiles{p}})
	}
	return out
}

// rates returns the rate limits of the rule: its own or those of its profiles.
// A zero rate is no limit.
func (r JWTRule) rates(granted []tool.Grant) []tool.Rate {
	if r.Rate != nil {
		return []tool.Rate{{Calls: r.Rate.Calls, Per: r.Rate.Per()}}
	}
	var out []tool.Rate
	for _, g := range granted {
		if len(g.Profiles) == 0 {
			out = append(out, tool.Rate{})
		}
		for _, p := range g.Profiles {
			out = append(out, p.Settings().Rate)
		}
	}
	return out
}

func perSecond(r tool.Rate) float64 { return float64(r.Calls) / r.Per.Seconds() }

// allRules returns the rules of the issuer, including the one for AdminScope.
func (j JWTConfig) allRules() []JWTRule {
	if j.AdminScope == "" {
		return j.Rules
	}
	return append(slices.Clip(j.Rules), JWTRule{Scopes: []string{j.AdminScope}, Admin: true})
}

// errNoRule returns the error for a valid token that no rule matches.
func errNoRule(setting string) error {
	return &tool.Error{Kind: tool.Denied, Msg: fmt.Sprintf("the token is valid, but no rule grants it access; add one to %s that matches its scopes or claims", setting)}
}
