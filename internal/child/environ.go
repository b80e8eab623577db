package child

import (
	"maps"
	"runtime"
	"slices"
	"strings"

	"junctor/internal/tool"
)

// Environ returns the environment of a program: the variables of host
// (KEY=value) that match the names or globs in inherit, overridden by extra.
// Names are case-insensitive on Windows.
func Environ(host, inherit []string, extra map[string]string) []string {
	return environ(host, inherit, extra, runtime.GOOS == "windows")
}

func environ(host, inherit []string, extra map[string]string, fold bool) []string {
	name := func(s string) string {
		if fold {
			return strings.ToUpper(s)
		}
		return s
	}
	globs := make([]string, len(inherit))
	for i, g := range inherit {
		globs[i] = name(g)
	}
	vars := make(map[string]string, len(extra))
	for _, kv := range host {
		// Windows stores the current folder of each drive in variables that
		// begin with "="; they cannot be inherited.
		key, _, ok := strings.Cut(kv, "=")
		if ok && key != "" && tool.MatchAny(globs, name(key)) {
			vars[name(key)] = kv
		}
	}
	for key, value := range extra {
		vars[name(key)] = key + "=" + value
	}
	return slices.Sorted(maps.Values(vars))
}

// lookup returns the value of a variable in an environment.
func lookup(env []string, key string) string {
	value := ""
	for _, kv := range env {
		k, v, ok := strings.Cut(kv, "=")
		if ok && (k == key || runtime.GOOS == "windows" && strings.EqualFold(k, key)) {
			value = v
		}
	}
	return value
}
