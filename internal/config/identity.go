package config

import (
	"maps"
	"slices"
)

// Environment identifies the values that this configuration took from the real
// environment, where .env beside the file does not have the same: two processes
// with the same file and the same result use the same accounts. It is empty
// when there are none, and reveals no value.
//
// Variables that only change how the gateway runs, such as PORT and LOG_LEVEL,
// do not count unless the file itself names them.
func (c *Config) Environment() string {
	if c.env == nil || len(c.env.own) == 0 {
		return ""
	}
	var parts [][]byte
	for _, name := range slices.Sorted(maps.Keys(c.env.own)) {
		parts = append(parts, []byte(name), []byte(c.env.own[name]))
	}
	return digest(parts...)
}

// Incomplete reports whether variables of the configuration have no value here
// and none has a value of its own, as for agents that start programs with a
// short environment. Such a process has no account that another gateway of the
// same file could be confused with.
func (c *Config) Incomplete() bool {
	return c.env != nil && c.env.unset && !c.env.defaulted && len(c.env.own) == 0
}
