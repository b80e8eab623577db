package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEditOfFoundFile checks that a file that was found in the working folder
// can be edited by a user whose configuration folder does not exist, and by one
// without such a folder.
func TestEditOfFoundFile(t *testing.T) {
	yes := func(TrustRequest) (bool, error) { return true, nil }
	const invalid = `{"mcpServers":{"a":{"command":"x"},"typo":{"comand":"x"}}}`
	for name, test := range map[string]struct {
		user, content string
		trust         func(TrustRequest) (bool, error)
	}{
		"invalid, no folder yet":  {filepath.Join(t.TempDir(), "not", "yet"), invalid, nil},
		"valid, no folder yet":    {filepath.Join(t.TempDir(), "not", "yet"), `{"mcpServers":{"typo":{"command":"x"}}}`, yes},
		"invalid, without folder": {"", invalid, nil},
		"valid, without folder":   {"", `{"mcpServers":{"typo":{"command":"x"}}}`, yes},
	} {
		t.Run(name, func(t *testing.T) {
			o := Options{WorkDir: t.TempDir(), UserDir: test.user, Trust: test.trust}
			file := filepath.Join(o.WorkDir, "mcp.json")
			write(t, file, test.content, 0o600)
			asked := 0
			if o.Trust != nil {
				o.Trust = func(r TrustRequest) (bool, error) { asked++; return test.trust(r) }
			}
			if _, err := Apply(o, Remove("typo")); err != nil {
				t.Fatal(err)
			}
			if text, err := os.ReadFile(file); err != nil || strings.Contains(string(text), "typo") {
				t.Errorf("%s, %v", text, err)
			}
			if asked > 1 {
				t.Errorf("asked %d times", asked)
			}
		})
	}
}

// TestRefusedTrustEditsNothing checks that a file is not edited if trust is
// refused.
func TestRefusedTrustEditsNothing(t *testing.T) {
	o := Options{WorkDir: t.TempDir(), Trust: func(TrustRequest) (bool, error) { return false, nil }}
	file := filepath.Join(o.WorkDir, "mcp.json")
	write(t, file, `{"mcpServers":{"a":{"command":"x"}}}`, 0o600)
	if _, err := Apply(o, Remove("a")); err == nil {
		t.Error("edited")
	}
}
