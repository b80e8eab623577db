package auth

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"junctor/internal/setting"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// Config configures authentication and authorization for the HTTP APIs.
type Config struct {
	// API keys defined in the file, in addition to those created with "junctor keys add".
	Keys []KeyConfig `json:"keys,omitempty"`
	// Issuer whose access tokens (JWTs) are accepted.
	JWT *JWTConfig `json:"jwt,omitempty"`
	// Whether OAuth clients, including hosted ones, can sign in at the gateway. A person consents on a page. Requires publicUrl.
	Server bool `json:"server,omitempty"`
	// OpenID provider with which people sign in on the page.
	OIDC *OIDCConfig `json:"oidc,omitempty"`
	// Whether callers on this machine need a key: open admits every user of the machine, key requires a key.
	Loopback Loopback `json:"loopback"`
	// IP addresses or CIDR ranges of reverse proxies whose X-Forwarded-* headers are trusted. Requests that they forward require credentials, even if loopback is open. Default: none.
	TrustedProxies []string `json:"trustedProxies,omitempty"`
}

// KeyConfig is one API key in the file. The key itself should be a variable,
// ${VAR}.
type KeyConfig struct {
	// Name of the key, which identifies the caller in logs.
	Name string `json:"name"`
	// The key itself, at least 16 characters. Use ${VAR} to keep it out of the file.
	Key telemetry.Secret `json:"key"`
	// Whether the key may change the configuration.
	Admin bool `json:"admin,omitempty"`
	// Globs of the servers that the key may use. A glob with a leading ! excludes servers. Default: all.
	Servers []string `json:"servers,omitempty"`
	// Globs over server:tool of the tools that the key may use. A glob with a leading ! excludes tools. Default: all.
	Tools []string `json:"tools,omitempty"`
	// Profile to which the key is restricted. Default: none.
	Profile string `json:"profile,omitempty"`
	// Rate limit of the key. Default: no limit.
	Rate *setting.Rate `json:"rate,omitempty"`
	// Whether the key may use models, for chat and for tasks in natural language. Default: true, unless the key is restricted to servers, tools or a profile.
	Chat *bool `json:"chat,omitempty"`
	// Maximum number of model tokens that the key may use per day (UTC), for requests and replies together. Default: no limit.
	TokensPerDay int64 `json:"tokensPerDay,omitempty"`
	// When the key expires, such as 2027-01-31 or 2027-01-31T12:00:00Z. Default: never.
	Expires string `json:"expires,omitempty"`
}

// JWTConfig is an issuer whose access tokens are accepted.
type JWTConfig struct {
	// URL of the issuer, exactly as in its tokens.
	Issuer string `json:"issuer"`
	// Required audience of the tokens: the URL that clients use for this gateway.
	Audience string `json:"audience"`
	// URL of the issuer's keys (JWKS). Default: the one in its metadata.
	JWKSURL string `json:"jwksUrl,omitempty"`
	// Scopes that every token must have. Default: none.
	Scopes []string `json:"scopes,omitempty"`
	// Rights of tokens. A token has the combined rights of all matching rules. Without a matching rule, access is denied.
	Rules []JWTRule `json:"rules,omitempty"`
	// Scope of tokens that may change the configuration. Short for a rule with this scope and admin. Default: none.
	AdminScope string `json:"adminScope,omitempty"`
}

// Loopback is the access rule for callers on this machine.
type Loopback string

// Who may call from this machine.
const (
	LoopbackOpen Loopback = "open"
	LoopbackKey  Loopback = "key"
)

// Values lists what loopback may be.
func (Loopback) Values() []string { return []string{string(LoopbackOpen), string(LoopbackKey)} }

// DefaultConfig returns open loopback and no keys.
func DefaultConfig() Config { return Config{Loopback: LoopbackOpen} }

// minKey is the minimum length of a key that a person chooses: short enough
// for the keys of common generators, long enough that a key cannot be guessed
// over the network.
const minKey = 16

// Validate reports everything that is wrong with the configuration.
func (c Config) Validate() error {
	errs := []error{setting.OneOf("loopback", c.Loopback)}
	seen := map[string]bool{}
	for i, k := range c.Keys {
		errs = append(errs, setting.PrefixIndex("keys", i, k.Validate()))
		if seen[k.Name] && k.Name != "" {
			errs = append(errs, setting.PrefixIndex("keys", i, setting.Wrong("name", "there is another key named %q", k.Name)))
		}
		seen[k.Name] = true
	}
	if c.JWT != nil {
		errs = append(errs, setting.Prefix("jwt", c.JWT.Validate()))
	}
	if c.OIDC != nil {
		errs = append(errs, setting.Prefix("oidc", c.OIDC.Validate()))
	}
	for i, p := range c.TrustedProxies {
		if _, err := parseProxies([]string{p}); err != nil {
			errs = append(errs, setting.PrefixIndex("trustedProxies", i, setting.Wrong("", "%v; write an address such as 127.0.0.1 or 10.0.0.0/8", err)))
		}
	}
	return errors.Join(errs...)
}

// Validate reports everything that is wrong with the key.
func (k KeyConfig) Validate() error {
	var errs []error
	if !tool.ValidServer(k.Name) { // keys are named as servers are
		errs = append(errs, setting.Wrong("name", "invalid key name %q; use 1 to %d characters of A-Z a-z 0-9 _ -", k.Name, tool.MaxServerName))
	}
	if err := CheckKey(k.Key); err != nil {
		errs = append(errs, setting.Wrong("key", "%v", err))
	}
	if _, err := k.Expiry(); err != nil {
		errs = append(errs, setting.Wrong("expires", "must be a date such as 2027-01-31 or 2027-01-31T12:00:00Z"))
	}
	if k.Profile != "" && k.Admin {
		errs = append(errs, setting.Wrong("admin", "a key with a profile cannot be an administrator's, because it could change the profile"))
	}
	errs = append(errs, checkGlobs("servers", k.Servers), checkGlobs("tools", k.Tools),
		setting.Prefix("rate", k.Rate.Validate()), notNegative("tokensPerDay", k.TokensPerDay))
	return errors.Join(errs...)
}

// CheckKey reports why key cannot be used as an API key.
func CheckKey(key telemetry.Secret) error {
	switch {
	case len(key.Reveal()) < minKey:
		return fmt.Errorf("must have at least %d characters", minKey)
	case strings.ContainsAny(key.Reveal(), " \t\r\n\x00"):
		return errors.New("must not contain spaces or line breaks")
	}
	return nil
}

// Expiry returns when the key ends; the zero time means never.
func (k KeyConfig) Expiry() (time.Time, error) {
	if k.Expires == "" {
		return time.Time{}, nil
	}
	if t, err := time.Parse(time.DateOnly, k.Expires); err == nil {
		return t, nil
	}
	return time.Parse(time.RFC3339, k.Expires)
}

// Validate reports everything that is wrong with the issuer.
func (j JWTConfig) Validate() error {
	var errs []error
	for _, u := range []struct {
		key, url string
		needed   bool
	}{{"issuer", j.Issuer, true}, {"jwksUrl", j.JWKSURL, false}} {
		parsed, err := url.Parse(u.url)
		if u.url == "" && !u.needed {
			continue
		}
		if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Hostname() == "" {
			errs = append(errs, setting.Wrong(u.key, "must be an http or https address"))
		}
	}
	if j.Audience == "" {
		errs = append(errs, setting.Wrong("audience", "is missing; without it a token for another service would open this one"))
	}
	for i, r := range j.Rules {
		errs = append(errs, setting.PrefixIndex("rules", i, r.Validate()))
	}
	return errors.Join(errs...)
}

// checkGlobs reports what is wrong with a list of globs, at its key.
func checkGlobs(key string, globs []string) error {
	if err := tool.CheckGlobs(globs); err != nil {
		return setting.Wrong(key, "%v", err)
	}
	return nil
}

func notNegative(key string, n int64) error {
	if n < 0 {
		return setting.Wrong(key, "must not be negative, but is %d; leave it out for no limit", n)
	}
	return nil
}
