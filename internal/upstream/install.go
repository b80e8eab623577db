package upstream

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"junctor/internal/child"
	"junctor/internal/setting"
)

const (
	// installTimeout bounds the start of a package runner, which may download
	// the server first. startTimeoutMs only bounds how long callers wait for
	// it: a runner that is killed during an install leaves a broken cache for
	// every other program that uses it.
	installTimeout = 5 * time.Minute

	// installShown is how long a package runner may take before it is
	// reported as installing.
	installShown = 2 * time.Second
)

// InstallsPackage reports whether the server's program is a package runner,
// which downloads the server before it starts it.
func (c Config) InstallsPackage() bool {
	name, args := child.ProgramName(c.Command), c.Args
	if name == "cmd" { // Windows starts scripts as cmd /c npx …
		if len(args) < 2 || !strings.EqualFold(args[0], "/c") {
			return false
		}
		name, args = child.ProgramName(args[1]), args[2:]
	}
	sub := func(names ...string) bool { return len(args) > 0 && slices.Contains(names, args[0]) }
	switch name {
	case "npx", "uvx", "bunx", "pnpx":
		return true
	case "pnpm", "yarn":
		return sub("dlx")
	case "npm":
		return sub("exec", "x")
	case "bun":
		return sub("x")
	case "uv":
		return sub("tool", "run")
	case "pipx", "docker", "podman":
		return sub("run")
	}
	return false
}

// StartLimit returns how long the program may take to answer the handshake.
func (c Config) StartLimit() time.Duration {
	if c.InstallsPackage() {
		return max(c.StartTimeoutMs.Duration(), installTimeout)
	}
	return c.StartTimeoutMs.Duration()
}

// startWait returns how long callers wait for the first connection.
func (s *Supervisor) startWait(c Config) time.Duration {
	if s.opts.AwaitInstall {
		return c.StartLimit()
	}
	return c.StartTimeoutMs.Duration()
}

// installing returns how long a package runner has been starting, and whether
// that is long enough to report an install. u.mu is held.
func (u *upstream) installing() (time.Duration, bool) {
	if u.state != Connecting || u.attemptStarted.IsZero() || !u.cfg.InstallsPackage() {
		return 0, false
	}
	d := time.Since(u.attemptStarted)
	return d, d >= installShown
}

func stillInstalling(d time.Duration) string {
	return fmt.Sprintf("still installing, %d s", int(d.Seconds()))
}

// withStartLimit returns the configuration with StartLimit as its start
// timeout.
func (c Config) withStartLimit() Config {
	c.StartTimeoutMs = setting.Millis(c.StartLimit() / time.Millisecond)
	return c
}
