package clients

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"junctor/internal/config"
)

// symlink creates a symbolic link, or skips the test if that is not permitted.
func symlink(t *testing.T, target, link string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		if runtime.GOOS == "windows" {
			t.Skip("this user may not make links: ", err)
		}
		t.Fatal(err)
	}
}

// Secrets are not written through a symbolic link to a target outside the
// folder, which may be from a repository or another user.
func TestSecretsAreNotWrittenThroughLinksOutside(t *testing.T) {
	const secret = "0123456789abcdef0123456789abcdef"
	for name, tt := range map[string]struct {
		target  string // of .env, relative to its folder
		refused bool
	}{
		"outside":                {"../../victim", true},
		"outside through a link": {"up/victim", true},
		"outside and missing":    {"../../missing", false}, // the link is replaced
		"inside":                 {"env/real", false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			m := machine(dir)
			write(t, m.home(".cursor", "mcp.json"), `{"mcpServers":{"s":{"url":"https://x.example.com","headers":{"Authorization":"Bearer `+secret+`"}}}}`)
			victim, folder := filepath.Join(dir, "victim"), filepath.Join(dir, "own", "junctor")
			write(t, victim, "KEPT=1\n")
			if err := os.Chmod(victim, 0o644); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(folder, "env", "real"), "OLD=1\n")
			symlink(t, "../..", filepath.Join(folder, "up"))
			symlink(t, tt.target, filepath.Join(folder, ".env"))
			o := config.Options{UserDir: filepath.Join(dir, "own"), Home: dir}
			own, err := Own(o)
			if err != nil {
				t.Fatal(err)
			}
			_, err = TakeOver(o, Compare(Discover(m), own, Variables(o)), false)
			if (err != nil) != tt.refused || err != nil && !strings.Contains(err.Error(), "symbolic link") {
				t.Errorf("TakeOver = %v", err)
			}
			if text, _ := os.ReadFile(victim); string(text) != "KEPT=1\n" {
				t.Errorf("the file outside is now %q", text)
			}
			if info, err := os.Stat(victim); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o644 {
				t.Errorf("the file outside has mode %v, %v", info.Mode(), err)
			}
			if _, err := os.Lstat(filepath.Join(dir, "missing")); err == nil {
				t.Error("a file outside was made")
			}
			if _, err := os.Lstat(filepath.Join(folder, "junctor.json")); (err != nil) != tt.refused {
				t.Errorf("the configuration: %v", err)
			}
			if tt.refused {
				return
			}
			text, err := os.ReadFile(filepath.Join(folder, ".env"))
			if err != nil || !strings.Contains(string(text), secret) {
				t.Errorf(".env is %q, %v", text, err)
			}
			if info, err := os.Stat(filepath.Join(folder, ".env")); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
				t.Errorf(".env has mode %v, %v", info.Mode(), err)
			}
		})
	}
}

// A symbolic link at the path of the copy is neither written through nor
// restored.
func TestSymlinkInPlaceOfBackupIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	m := machine(dir)
	c, err := Lookup("cursor")
	if err != nil {
		t.Fatal(err)
	}
	f, err := c.target(m, "")
	if err != nil {
		t.Fatal(err)
	}
	const before = `{"mcpServers":{}}`
	const planted = `{"mcpServers":{"evil":{"command":"evil"}}}`
	victim := filepath.Join(dir, "victim")
	write(t, f.Path, before)
	for name, target := range map[string]string{"to a file": victim, "to nothing": filepath.Join(dir, "missing")} {
		t.Run(name, func(t *testing.T) {
			write(t, victim, planted)
			symlink(t, target, f.Path+backupSuffix)
			defer os.Remove(f.Path + backupSuffix)
			change, err := c.Connect(m, Connection{Command: "/opt/junctor", Args: []string{"mcp"}})
			if err != nil {
				t.Fatal(err)
			}
			if err := change.Apply(); err == nil || !strings.Contains(err.Error(), "not a regular file") {
				t.Errorf("Apply = %v", err)
			}
			if text, _ := os.ReadFile(f.Path); string(text) != before {
				t.Errorf("the client's file is %q without a copy of what it was", text)
			}
			if text, _ := os.ReadFile(victim); string(text) != planted {
				t.Errorf("the file outside is %q", text)
			}
			if _, err := os.Lstat(filepath.Join(dir, "missing")); err == nil {
				t.Error("a file outside was made")
			}
			if change, err := c.Undo(m, "", ""); err == nil || !strings.Contains(err.Error(), "not a regular file") {
				t.Errorf("Undo = %s, %v", change.After, err)
			}
		})
	}
}
