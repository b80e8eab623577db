package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEditSettings checks that settings changed through the API are written to
// the file, their secrets to .env, and applied, and that settings that need a
// restart are reported.
func TestEditSettings(t *testing.T) {
	dir := t.TempDir()
	r := start(t, "{\n  // kept\n  \"limits\": {\"maxSessions\": 7},\n  \"auth\": {\"keys\": [{\"name\": \"ci\", \"key\": \"plain-0123456789abcdef\"}]}\n}", dir)
	file := func(name string) string {
		text, err := os.ReadFile(filepath.Join(filepath.Dir(r.config.Load().Place().Path), name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	const key = "sk-proj-0123456789abcdefghij0123456789abcdef"
	code, body := r.ask("PATCH", "/api/config", `{"set":{"log.level":"error","limits.maxSessions":null,"debugPort":0,"log.format":"json",
		"llm":[{"provider":"openai","model":"gpt-5","apiKey":"`+key+`"}]}}`)
	if code != 200 || !strings.Contains(body, `"restart":["log.format"]`) || strings.Contains(body, key) || strings.Contains(body, "plain-0123") {
		t.Fatalf("change: %d %s", code, body)
	}
	cfg := r.config.Load()
	if cfg.Log.Level != "error" || cfg.Limits.MaxSessions != 10_000 || len(cfg.LLM) != 1 || cfg.LLM[0].APIKey.Reveal() != key {
		t.Errorf("in force: %v %v %v", cfg.Log, cfg.Limits.MaxSessions, cfg.LLM)
	}
	text := file("junctor.json")
	if strings.Contains(text, key) || !strings.Contains(text, "${OPENAI_API_KEY}") || !strings.Contains(text, "// kept") || strings.Contains(text, "maxSessions") {
		t.Errorf("the file: %s", text)
	}
	if !strings.Contains(file(".env"), key) {
		t.Errorf(".env: %s", file(".env"))
	}
	if m := r.models.set().Get("openai/gpt-5"); m == nil {
		t.Error("the model is not there")
	}

	// A list is returned with placeholders for its secrets.
	if _, body = r.ask("GET", "/api/config", ""); !strings.Contains(body, "[hidden 1]") || strings.Contains(body, "plain-0123") {
		t.Errorf("shown: %s", body)
	}
	if code, body = r.ask("PATCH", "/api/config", `{"set":{"auth.keys":[{"name":"ci","key":"[hidden 1]","admin":true}]}}`); code != 200 {
		t.Fatalf("edit of a key: %d %s", code, body)
	}
	if k := r.config.Load().Auth.Keys; len(k) != 1 || !k[0].Admin || k[0].Key.Reveal() != "plain-0123456789abcdef" {
		t.Errorf("keys: %v", k)
	}
	if text := file("junctor.json"); strings.Contains(text, "plain-0123") {
		t.Errorf("the file after an edit: %s", text)
	}

	before := file(".env")
	for _, bad := range []string{
		`{"set":{"limits.maxBodyBytes":5,"llm":[{"provider":"openai","model":"x","apiKey":"sk-other-0123456789"}]}}`,
		`{"set":{"mcpServers.x":{"command":"true"}}}`, `{"set":{}}`, `{"set":{"log.level":"loud"}}`, `{}`,
	} {
		if code, body := r.ask("PATCH", "/api/config", bad); code != 400 {
			t.Errorf("%s: %d %s", bad, code, body)
		}
	}
	if file(".env") != before {
		t.Errorf("a refused change wrote a secret: %s", file(".env"))
	}
	if code, body := r.ask("GET", "/api/config/schema", ""); code != 200 || !strings.Contains(body, `"x-apply"`) {
		t.Errorf("schema: %d %.200s", code, body)
	}
}
