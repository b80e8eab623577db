package auth

import (
	"errors"
	"net/url"
	"strings"
	"time"

	"junctor/internal/setting"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// Config is who may call the HTTP faces.
type Config struct {
	// API keys written in the file, beside those made by "junctor keys add".
	Keys []KeyConfig `json:"keys,omitempty"`
	// Accept access tokens (JWTs) of an issuer.
	JWT *JWTConfig `json:"jwt,omitempty"`
	// Whether callers on this machine need a key: open lets every user of the machine in, key does not.
	Loopback Loopback `json:"loopback"`
}

// KeyConfig is one API key in the file. The key itself is best written as
// ${VAR}.
type KeyConfig struct {
	// The name of the key, which appears as the caller in logs.
	Name string `json:"name"`
	// The key itself; at least 16 characters. Best written as ${VAR}.
	Key telemetry.Secret `json:"key"`
	// Whether the key may change the configuration.
	Admin bool `json:"admin,omitempty"`
	// Globs of the servers that the key may use. Default: all.
	Servers []string `json:"servers,omitempty"`
	// Globs over server:tool of the tools that the key may use. Default: all.
	Tools []string `json:"tools,omitempty"`
	// How many calls the key may make. Default: no limit.
	Rate *setting.Rate `json:"rate,omitempty"`
	// When the key ends, as 2027-01-31 or 2027-01-31T12:00:00Z. Default: never.
	Expires string `json:"expires,omitempty"`
}

// JWTConfig is an issuer whose access tokens are accepted.
type JWTConfig struct {
	// The issuer, exactly as its tokens name it.
	Issuer string `json:"issuer"`
	// What the tokens must be for: the address of this Junctor, as its clients know it.
	Audience string `json:"audience"`
	// Where the issuer's keys are. Default: what its metadata says.
	JWKSURL string `json:"jwksUrl,omitempty"`
	// Scopes of which a token must have all. Default: none.
	Scopes []string `json:"scopes,omitempty"`
	// The scope that makes its bearer an administrator. Default: none does.
	AdminScope string `json:"adminScope,omitempty"`
}

// Loopback says who may call from this machine.
type Loopback string

// Who may call from this machine.
const (
	LoopbackOpen Loopback = "open"
	LoopbackKey  Loopback = "key"
)

// Words lists what loopback may be.
func (Loopback) Words() []string { return []string{string(LoopbackOpen), string(LoopbackKey)} }

// DefaultConfig returns open loopback and no keys.
func DefaultConfig() Config { return Config{Loopback: LoopbackOpen} }

// minKey is short enough for keys that people make with a generator and long
// enough that none can be guessed over the network.
const minKey = 16

// Validate reports everything that is wrong with the configuration.
func (c Config) Validate() error {
	errs := []error{setting.OneOf("loopback", c.Loopback)}
	seen := map[string]bool{}
	for i, k := range c.Keys {
		errs = append(errs, setting.UnderIndex("keys", i, k.Validate()))
		if seen[k.Name] && k.Name != "" {
			errs = append(errs, setting.UnderIndex("keys", i, setting.Wrong("name", "there is another key named %q", k.Name)))
		}
		seen[k.Name] = true
	}
	if c.JWT != nil {
		errs = append(errs, setting.Under("jwt", c.JWT.Validate()))
	}
	return errors.Join(errs...)
}

// Validate reports everything that is wrong with the key.
func (k KeyConfig) Validate() error {
	var errs []error
	if !tool.ValidServer(k.Name) { // keys are named as servers are
		errs = append(errs, setting.Wrong("name", "invalid key name %q; use 1 to %d characters of A-Z a-z 0-9 _ -", k.Name, tool.MaxServerName))
	}
	if len(k.Key.Reveal()) < minKey {
		errs = append(errs, setting.Wrong("key", "must have at least %d characters", minKey))
	}
	if strings.ContainsAny(k.Key.Reveal(), " \t\r\n\x00") {
		errs = append(errs, setting.Wrong("key", "must not have spaces or line breaks in it"))
	}
	if _, err := k.Expiry(); err != nil {
		errs = append(errs, setting.Wrong("expires", "must be a date such as 2027-01-31 or 2027-01-31T12:00:00Z"))
	}
	errs = append(errs, setting.Under("rate", k.Rate.Validate()))
	return errors.Join(errs...)
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
	return errors.Join(errs...)
}
