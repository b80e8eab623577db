package config

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"junctor/internal/telemetry"
	"junctor/internal/upstream"
)

// server decodes one upstream over the defaults.
func (l *loader) server(cfg *Config, d *decoder, e entry, base upstream.Config) {
	if e.node.kind != object {
		l.report(e.node, fmt.Sprintf("is %s, must be an object with command, url or openapi", e.node.kind))
		return
	}
	normalise(e, l.report, l.note)

	// A server with a variable that is not set is unavailable, but must not
	// prevent the others from starting.
	key := joinKey("mcpServers", e.known)
	var missing []string
	l.x.expandTree(e.node, l.report, func(n *node, name string) {
		l.incomplete[key] = true
		if !slices.Contains(missing, name) {
			missing = append(missing, name)
		}
		l.notes = append(l.notes, l.problem(n, n.path, fmt.Sprintf(unset, name)))
	})
	envFile := e.node.take("envFile")

	c := base
	before := len(l.problems)
	d.decode(e.node, reflect.ValueOf(&c).Elem(), key)
	c.Name, c.Unset = e.known, missing
	d.from[key+".name"] = e.node.atKey()
	if c.Transport == "" || c.Transport == upstream.Auto {
		c.Transport = upstream.Auto
		if c.Command != "" && c.URL == "" {
			c.Transport = upstream.Stdio
		}
		if c.OpenAPI != "" {
			c.Transport = upstream.OpenAPI
		}
	}
	l.paths(&c)
	if envFile != nil {
		l.readEnvFile(&c, envFile, d, key)
	}
	if len(l.problems) > before && c.Command == "" && c.URL == "" && c.OpenAPI == "" {
		// The setting is present but has the wrong type, which was reported.
		if e.node.has("command", "url", "openapi") {
			return
		}
	}
	cfg.Servers = append(cfg.Servers, c)
}

// dir returns the folder that relative paths are resolved against: that of the
// file, because a configuration must mean the same wherever it is used from.
func (l *loader) dir() string {
	if l.place.Path != "" {
		return filepath.Dir(l.place.Path)
	}
	return l.o.BaseDir
}

// paths makes the paths of a server absolute.
func (l *loader) paths(c *upstream.Config) {
	dir := l.dir()
	c.Cwd = l.path(c.Cwd, dir)
	if !strings.Contains(c.OpenAPI, "://") {
		c.OpenAPI = l.path(c.OpenAPI, dir)
	}
	if strings.HasPrefix(c.Command, "~/") || strings.HasPrefix(c.Command, "./") || strings.HasPrefix(c.Command, "../") ||
		strings.HasPrefix(c.Command, `.\`) || strings.HasPrefix(c.Command, `..\`) {
		if c.Cwd != "" {
			dir = c.Cwd
		}
		c.Command = l.path(c.Command, dir)
	}
}

// path expands ~ and makes a path absolute; an empty path stays empty.
func (l *loader) path(p, dir string) string {
	if p == "~" || strings.HasPrefix(p, "~/") || strings.HasPrefix(p, `~\`) {
		if l.o.Home != "" {
			return filepath.Join(l.o.Home, p[1:])
		}
	}
	if p == "" || filepath.IsAbs(p) || dir == "" {
		return p
	}
	return filepath.Join(dir, p)
}

// readEnvFile adds the variables of an envFile, as VS Code and Cursor do. Those
// of env take precedence.
func (l *loader) readEnvFile(c *upstream.Config, n *node, d *decoder, key string) {
	if n.kind != str {
		l.report(n, fmt.Sprintf("is %s, must be a string", n.kind))
		return
	}
	path := l.path(n.value, l.x.workspace)
	src, err := l.open(path)
	if err != nil {
		if e, ok := errors.AsType[*Error](err); ok && c.Enabled {
			l.report(n, fmt.Sprintf("%s: %s", path, e.Problems[0].Msg))
		}
		return
	}
	vars, problems := parseDotenv(src)
	l.problems = append(l.problems, problems...)
	merged := make(map[string]telemetry.Secret, len(vars)+len(c.Env))
	for name, value := range vars {
		merged[name] = telemetry.Secret(value)
		if _, own := c.Env[name]; !own {
			d.from[joinKey(key+".env", name)] = n
		}
	}
	maps.Copy(merged, c.Env)
	c.Env = merged
}
