package discovery

import (
	"errors"
	"time"

	"junctor/internal/setting"
)

// Config configures the MCP API.
type Config struct {
	// Whether the MCP API is enabled.
	Enabled bool `json:"enabled"`
	// What a client sees: the five meta-tools (meta), all enabled tools (direct), or search_tools and run_code, which makes many calls in one script (code).
	Mode Mode `json:"mode"`
	// Cache of each server's tool list. With it, listing and searching work immediately after a start.
	Cache CacheConfig `json:"cache" apply:"restart"`
	// Default number of search results.
	SearchLimit int `json:"searchLimit"`
	// Maximum number of search results.
	MaxSearchLimit int `json:"maxSearchLimit"`
	// Maximum number of tools on a page of list_tools.
	ListLimit int `json:"listLimit"`
	// Whether run_code is available in addition to the meta-tools.
	Code bool `json:"code"`
	// Maximum size of the text, and of the structured content, that execute_tool returns, in bytes. Longer content is truncated and stored for up to an hour, and the response says how to read the rest. 0 means no limit.
	MaxResultBytes int `json:"maxResultBytes"`
	// Maximum size of a meta-tool's response that describes tools, in bytes. The response says if tools are left out.
	MaxAnswerBytes int `json:"maxAnswerBytes"`
}

// CacheConfig configures the cache of tool lists.
type CacheConfig struct {
	// Whether tool lists are cached.
	Enabled bool `json:"enabled"`
	// How long a cached tool list is valid, in seconds.
	TTL int `json:"ttl"`
}

// Duration returns how long cached tools are valid; 0 if caching is disabled.
func (c CacheConfig) Duration() time.Duration {
	if !c.Enabled {
		return 0
	}
	return time.Duration(c.TTL) * time.Second
}

// Mode is what a client of the MCP face sees.
type Mode string

// The modes.
const (
	MetaMode   Mode = "meta"
	DirectMode Mode = "direct"
	CodeMode   Mode = "code"
)

// Values lists the modes.
func (Mode) Values() []string {
	return []string{string(MetaMode), string(DirectMode), string(CodeMode)}
}

// maxTTL is a year; a larger value is probably a mistake.
const maxTTL = 366 * 24 * 3600

// DefaultConfig returns the five meta-tools with a cache of an hour.
func DefaultConfig() Config {
	return Config{
		Enabled:        true,
		Mode:           MetaMode,
		Cache:          CacheConfig{Enabled: true, TTL: 3600},
		SearchLimit:    10,
		MaxSearchLimit: 50,
		ListLimit:      100,
		MaxAnswerBytes: 64 << 10,
		MaxResultBytes: 64 << 10,
	}
}

// Validate reports everything that is wrong with the configuration.
func (c Config) Validate() error {
	errs := []error{setting.OneOf("mode", c.Mode)}
	if c.Cache.TTL < 0 || c.Cache.TTL > maxTTL {
		errs = append(errs, setting.Wrong("cache.ttl", "must be between 0 and %d seconds", maxTTL))
	}
	for _, n := range []struct {
		key        string
		value, min int
	}{
		{"searchLimit", c.SearchLimit, 1},
		{"maxSearchLimit", c.MaxSearchLimit, 1},
		{"listLimit", c.ListLimit, 1},
		{"maxAnswerBytes", c.MaxAnswerBytes, 1024},
	} {
		if n.value < n.min {
			errs = append(errs, setting.Wrong(n.key, "must be at least %d", n.min))
		}
	}
	if c.MaxResultBytes != 0 && c.MaxResultBytes < 1024 {
		errs = append(errs, setting.Wrong("maxResultBytes", "must be 0 (all) or at least 1024"))
	}
	if c.SearchLimit > c.MaxSearchLimit {
		errs = append(errs, setting.Wrong("searchLimit", "is %d, more than maxSearchLimit (%d)", c.SearchLimit, c.MaxSearchLimit))
	}
	return errors.Join(errs...)
}
