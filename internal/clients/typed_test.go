package clients

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"junctor/internal/config"
)

const typedToken = "ghp_0123456789abcdefghij0123456789abcdef"

// TestKeepSecrets checks that entered secrets are written to .env and not to
// the configuration.
func TestKeepSecrets(t *testing.T) {
	home := t.TempDir()
	file := filepath.Join(home, "junctor.json")
	if err := os.WriteFile(file, []byte(`{}`), 0o600); err != nil {
		t.Fatal(err)
	}
	o := config.Options{File: file, Home: home, WorkDir: home}
	got, err := KeepSecrets(o, map[string]json.RawMessage{
		"hub":   json.RawMessage(`{"command":"hub","env":{"GITHUB_TOKEN":"` + typedToken + `","LEVEL":"debug"}}`),
		"plain": json.RawMessage(`{"url":"https://example.com/mcp"}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if s := string(got["hub"]); !strings.Contains(s, `"GITHUB_TOKEN":"${GITHUB_TOKEN}"`) || !strings.Contains(s, `"LEVEL":"debug"`) {
		t.Errorf("hub: %s", s)
	}
	if string(got["plain"]) != `{"url":"https://example.com/mcp"}` {
		t.Errorf("plain: %s", got["plain"])
	}
	text, err := os.ReadFile(filepath.Join(home, ".env"))
	if err != nil || !strings.Contains(string(text), `GITHUB_TOKEN="`+typedToken+`"`) {
		t.Errorf(".env: %s %v", text, err)
	}
}

// TestHideSecrets checks that editing a server neither reveals nor loses its
// secrets.
func TestHideSecrets(t *testing.T) {
	old := json.RawMessage(`{"command":"hub","args":["--verbose","--token=` + typedToken + `"],"env":{"API_KEY":"sk-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}}`)
	shown, err := HideSecrets("hub", old)
	if err != nil {
		t.Fatal(err)
	}
	if s := string(shown); strings.Contains(s, typedToken) || strings.Contains(s, "sk-aaa") || !strings.Contains(s, `"--token=[hidden `) {
		t.Fatalf("shown: %s", s)
	}
	edited := strings.Replace(string(shown), `"--verbose",`, "", 1)
	if got, want := string(ShowSecrets("hub", json.RawMessage(edited), old)), strings.Replace(string(old), `"--verbose",`, "", 1); got != want {
		t.Errorf("saved %s, want %s", got, want)
	}
}
