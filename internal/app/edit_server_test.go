package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTypedSecrets checks that secrets in servers that are added or edited
// through the API are moved to .env, and that an edit neither reveals nor
// loses them.
func TestTypedSecrets(t *testing.T) {
	dir := t.TempDir()
	r := start(t, `{}`, dir)
	const token = "ghp_0123456789abcdefghij0123456789abcdef"
	if code, body := r.ask("POST", "/api/servers", `{"servers":{"hub":{"command":"true","enabled":false,"env":{"HUB_TOKEN":"`+token+`"}}}}`); code != 200 {
		t.Fatalf("add: %d %s", code, body)
	}
	file := func(name string) string {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(r.config.Load().Place().Path), name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if text := file("junctor.json"); strings.Contains(text, token) || !strings.Contains(text, "${HUB_TOKEN}") {
		t.Errorf("the configuration after an add: %s", text)
	}
	if !strings.Contains(file(".env"), token) {
		t.Errorf(".env: %s", file(".env"))
	}
	if s, ok := r.config.Load().Server("hub"); !ok || s.Env["HUB_TOKEN"] != token {
		t.Errorf("the server gets %v", s.Env)
	}

	// A plain-text secret written directly into the file.
	r.write(strings.Replace(file("junctor.json"), "${HUB_TOKEN}", "sk-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 1))
	eventually(t, "the edit of the file", func() bool {
		s, _ := r.config.Load().Server("hub")
		return strings.HasPrefix(s.Env["HUB_TOKEN"].Reveal(), "sk-aaa")
	})
	code, body := r.ask("GET", "/api/servers/hub/config", "")
	if code != 200 || strings.Contains(body, "sk-aaa") || !strings.Contains(body, "[hidden 1]") {
		t.Fatalf("shown: %d %s", code, body)
	}
	if code, body := r.ask("PUT", "/api/servers/hub", `{"server":{"command":"false","enabled":false,"env":{"HUB_TOKEN":"[hidden 1]","LEVEL":"2"}}}`); code != 200 {
		t.Fatalf("edit: %d %s", code, body)
	}
	s, _ := r.config.Load().Server("hub")
	if s.Command != "false" || s.Env["LEVEL"] != "2" || !strings.HasPrefix(s.Env["HUB_TOKEN"].Reveal(), "sk-aaa") {
		t.Errorf("after the edit: %s %v", s.Command, s.Env)
	}
	if strings.Contains(file("junctor.json"), "sk-aaa") {
		t.Errorf("the configuration after an edit: %s", file("junctor.json"))
	}
	if code, _ := r.ask("PUT", "/api/servers/none", `{"server":{"command":"true"}}`); code != 404 {
		t.Errorf("edit of no server: %d", code)
	}
}

// TestRefusedServerWritesNoSecret checks that a rejected server leaves nothing
// in .env.
func TestRefusedServerWritesNoSecret(t *testing.T) {
	r := start(t, `{"mcpServers":{"have":{"command":"true","enabled":false}}}`, t.TempDir())
	for _, bad := range []string{
		`{"servers":{"hub":{"url":"ftp://x","headers":{"Authorization":"Bearer ghp_0123456789abcdefghij0123456789abcdef"}}}}`,
		`{"servers":{"hub":{"command":"true","enabled":false,"env":{"HUB_TOKEN":"ghp_0123456789abcdefghij0123456789abcdef"}},"have":{"command":"true"}}}`,
	} {
		if code, body := r.ask("POST", "/api/servers", bad); code != 400 {
			t.Errorf("%d %s", code, body)
		}
	}
	if text, err := os.ReadFile(filepath.Join(filepath.Dir(r.config.Load().Place().Path), ".env")); err == nil {
		t.Errorf("a refused server wrote %s", text)
	}
}
