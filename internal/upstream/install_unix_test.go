//go:build unix

package upstream_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"junctor/internal/upstream"
	"junctor/internal/upstream/upstreamtest"
)

func TestInstallsPackage(t *testing.T) {
	for command, want := range map[string]bool{
		"npx -y x": true, "/usr/bin/npx x": true, `C:\nodejs\npx.cmd x`: true, "uvx x": true, "bunx x": true,
		"pnpm dlx x": true, "pnpm start": false, "docker run -i x": true, "docker compose up": false,
		"cmd /c npx -y x": true, "cmd.exe /C npx.cmd -y x": true, "cmd /c dir": false, "node server.js": false, "uv run server.py": true, "": false,
	} {
		words := append(strings.Fields(command), "")
		c := upstream.Config{Command: words[0], Args: words[1:]}
		if got := c.InstallsPackage(); got != want {
			t.Errorf("%q: %v, want %v", command, got, want)
		}
	}
}

// A package runner that needs longer than startTimeoutMs is not killed: callers
// time out, and the status reports the install.
func TestSlowInstallIsNotInterrupted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hold := filepath.Join(dir, "hold")
	if err := syscall.Mkfifo(hold, 0o600); err != nil {
		t.Fatal(err)
	}
	cfg := upstreamtest.Stdio(t, "pkg", upstreamtest.Script{})
	script := fmt.Sprintf("#!/bin/sh\nread x < %s\nexec %s \"$@\"\n", hold, cfg.Command)
	cfg.Command = filepath.Join(dir, "npx")
	if err := os.WriteFile(cfg.Command, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	cfg.StartTimeoutMs = 50
	r := newFixture(t, upstream.Options{}, cfg)
	r.run()
	var st upstream.Status
	r.eventually("the install to be shown", func() bool {
		if st, _ = r.StatusOf("pkg"); st.State != upstream.Connecting {
			t.Fatalf("state %s (%s) while the package is being installed", st.State, st.Reason)
		}
		return st.Phase == "installing"
	})
	if !strings.HasPrefix(st.Reason, "still installing, ") || st.Attempts != 1 {
		t.Errorf("reason %q, attempts %d", st.Reason, st.Attempts)
	}
	if err := os.WriteFile(hold, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r.eventually("connected at the first attempt", func() bool {
		st, _ := r.StatusOf("pkg")
		if st.State == upstream.Disconnected {
			t.Fatalf("the install was interrupted: %s", st.Reason)
		}
		return st.State == upstream.Connected
	})
}
