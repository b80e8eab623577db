package config

import (
	"maps"
	"slices"
)

// Environment returns a digest of the variables that this configuration uses
// from the real environment or the .env of the working folder, unless the .env
// beside the file has the same value. Two processes with the same file and the
// same digest use the same accounts. It is empty when there are no such
// variables.
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

// Incomplete reports whether the configuration uses variables that are not set,
// and none by its default or with a value as in [Config.Environment]. This is
// the case for agents that start programs with a reduced environment. Such a
// process has no account that could be confused with that of another gateway of
// the same file.
func (c *Config) Incomplete() bool {
	return c.env != nil && c.env.unset && !c.env.defaulted && len(c.env.own) == 0
}
