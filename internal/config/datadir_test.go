package config

import (
	"path/filepath"
	"testing"
)

func TestUserDataDir(t *testing.T) {
	env := map[string]string{}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	check := func(goos, home, want string) {
		t.Helper()
		if got := DataDir(goos, lookup, home); got != filepath.FromSlash(want) {
			t.Errorf("on %s: %s, want %s", goos, got, want)
		}
	}
	check("linux", "/home/me", "/home/me/.local/share/junctor")
	check("darwin", "/Users/me", "/Users/me/Library/Application Support/junctor")
	env["LOCALAPPDATA"] = "/local"
	check("windows", "/home/me", "/local/junctor")
	env["XDG_DATA_HOME"] = t.TempDir()
	check("linux", "/home/me", env["XDG_DATA_HOME"]+"/junctor")
}
