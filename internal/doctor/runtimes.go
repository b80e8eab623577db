package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"junctor/internal/child"
	"junctor/internal/upstream"
)

// runtimeInfo describes a program that runs servers.
type runtimeInfo struct {
	install  string
	version  []string // the arguments for printing its version
	minMajor int      // the oldest major version that current servers support
	hint     string   // what to do if it does not print its version; empty means install
}

// runtimes returns the programs that usually run MCP servers.
func runtimes() map[string]runtimeInfo {
	node := "install Node.js 20 or later: https://nodejs.org"
	uv := "install uv: https://docs.astral.sh/uv/getting-started/installation"
	return map[string]runtimeInfo{
		"node":    {install: node, version: []string{"--version"}, minMajor: 20},
		"npx":     {install: node, version: []string{"--version"}, minMajor: 10},
		"npm":     {install: node, version: []string{"--version"}},
		"uvx":     {install: uv, version: []string{"--version"}},
		"uv":      {install: uv, version: []string{"--version"}},
		"python":  {install: "install Python 3.10 or later: https://www.python.org", version: []string{"--version"}},
		"python3": {install: "install Python 3.10 or later: https://www.python.org", version: []string{"--version"}},
		"pipx":    {install: "install pipx: https://pipx.pypa.io", version: []string{"--version"}},
		"bun":     {install: "install Bun: https://bun.sh", version: []string{"--version"}},
		"bunx":    {install: "install Bun: https://bun.sh"},
		"deno":    {install: "install Deno: https://deno.com", version: []string{"--version"}},
		"docker":  {install: "install Docker: https://docs.docker.com/get-docker", version: []string{"version", "--format", "{{.Server.Version}}"}, hint: "start Docker: its command is installed, but its engine does not respond"},
		"podman":  {install: "install Podman: https://podman.io", version: []string{"--version"}},
	}
}

// runtimes looks up the programs of the servers, each in the PATH of its
// server's environment.
func (r *Report) runtimes(ctx context.Context, f Facts, p Probes) {
	const area = "runtimes"
	if p.Look == nil {
		return
	}
	known := runtimes()
	asked := map[string]bool{} // programs whose version was checked
	for _, s := range f.Config.Servers {
		if !s.Enabled || s.Command == "" {
			continue
		}
		name := child.ProgramName(s.Command)
		path, err := p.Look(s.Command, environ(f.Environ, s))
		if err != nil {
			r.explain(Finding{Area: area, Subject: s.Name, What: fmt.Sprintf("its program %s is not found: %v", s.Command, err), Do: installHint(name, known)}, err)
			continue
		}
		if rt, ok := known[name]; ok && !asked[path] && len(rt.version) > 0 && p.Version != nil {
			asked[path] = true
			r.version(ctx, name, path, rt, p)
		}
		if script := missingScript(s, p); script != "" {
			r.explain(Finding{Area: area, Subject: s.Name, What: "its script " + script + " does not exist", Do: "build the server, or correct the path in args"}, nil)
		}
	}
}

// explain adds a finding about why a server is down. If its program exists but
// cannot be started, the error has the hint about what to do.
func (r *Report) explain(f Finding, err error) {
	if r.explained == nil {
		r.explained = map[string]bool{}
	}
	r.explained[f.Subject] = true
	f.Severity = Problem
	if start, ok := errors.AsType[*child.StartError](err); ok {
		f.What = fmt.Sprintf("its program %s cannot be started: %s", start.Command, start.Reason)
		if !start.NotFound() {
			f.Do = start.Hint
		}
	}
	r.Add(f)
}

func environ(host []string, s upstream.Config) []string {
	extra := make(map[string]string, len(s.Env))
	for name, v := range maps.All(s.Env) {
		extra[name] = v.Reveal()
	}
	return child.Environ(host, s.InheritEnv, extra)
}

func installHint(name string, known map[string]runtimeInfo) string {
	if rt, ok := known[name]; ok {
		return rt.install
	}
	return "install it, or set command to its full path"
}

var major = regexp.MustCompile(`\d+`)

func (r *Report) version(ctx context.Context, name, path string, rt runtimeInfo, p Probes) {
	text, err := p.Version(ctx, path, rt.version...)
	if err != nil {
		do := rt.hint
		if do == "" {
			do = rt.install
		}
		r.Add(Finding{Severity: Problem, Area: "runtimes", Subject: name, What: "does not answer: " + err.Error(), Do: do})
		return
	}
	text = strings.TrimSpace(text)
	if n, err := strconv.Atoi(major.FindString(text)); err == nil && n < rt.minMajor {
		r.Add(Finding{Severity: Warning, Area: "runtimes", Subject: name, What: "is " + text + ", which is too old", Do: rt.install})
		return
	}
	r.Add(Finding{Severity: OK, Area: "runtimes", Subject: name, What: text})
}

// missingScript returns the script of a server that an interpreter runs if the
// file does not exist, otherwise "".
func missingScript(s upstream.Config, p Probes) string {
	if p.Stat == nil || !slices.Contains([]string{"node", "python", "python3", "deno", "bun"}, child.ProgramName(s.Command)) {
		return ""
	}
	if len(s.Args) == 0 || strings.HasPrefix(s.Args[0], "-") {
		return "" // the next argument may be the value of an option
	}
	path := s.Args[0]
	if ext := strings.ToLower(filepath.Ext(path)); !slices.Contains([]string{".js", ".mjs", ".cjs", ".ts", ".py"}, ext) {
		return ""
	}
	if !filepath.IsAbs(path) && s.Cwd != "" {
		path = filepath.Join(s.Cwd, path)
	}
	if _, err := p.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return s.Args[0]
	}
	return ""
}
