package clients

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"junctor/internal/config"
)

// TestSecretsKeptAtOnce checks that servers added concurrently keep their
// secrets, even if these would use the same variable.
func TestSecretsKeptAtOnce(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "junctor.json")
	write(t, file, `{}`)
	o := config.Options{File: file}
	secret := func(i int) string { return fmt.Sprintf("ghp_0123456789abcdefghij0123456789abcd%02d", i) }
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			name := fmt.Sprint("s", i)
			kept, err := KeepSecrets(o, map[string]json.RawMessage{name: json.RawMessage(`{"command":"x","env":{"TOKEN":"` + secret(i) + `"}}`)})
			if err == nil {
				_, err = config.Apply(o, config.Set(name, kept[name]))
			}
			if err == nil {
				_, err = KeepSettingSecrets(o, "llm", json.RawMessage(fmt.Sprintf(`[{"provider":"p%d","apiKey":"k%d"}]`, i, i)))
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	cfg, _, err := config.Load(o)
	if err != nil || len(cfg.Servers) != 16 {
		t.Fatalf("%v, %v", cfg, err)
	}
	for i := range 16 {
		if s, _ := cfg.Server(fmt.Sprint("s", i)); s.Env["TOKEN"].Reveal() != secret(i) {
			t.Errorf("server %d has another secret than the one given", i)
		}
		if v, _ := cfg.Lookup(fmt.Sprintf("P%d_API_KEY", i)); v != fmt.Sprint("k", i) {
			t.Errorf("the key of model %d is %q", i, v)
		}
	}
}

// TestSecretsOfFoundFile checks that a trusted file in the working folder
// remains trusted when a secret is written next to it.
func TestSecretsOfFoundFile(t *testing.T) {
	work, user := t.TempDir(), t.TempDir()
	write(t, filepath.Join(work, "junctor.json"), `{}`)
	o := config.Options{WorkDir: work, UserDir: user}
	entries := map[string]json.RawMessage{"hub": json.RawMessage(`{"command":"x","env":{"HUB_TOKEN":"ghp_0123456789abcdefghij0123456789abcdef"}}`)}
	o.Trust = func(config.TrustRequest) (bool, error) { return true, nil }
	if _, _, err := config.Load(o); err != nil {
		t.Fatal(err)
	}
	o.Trust = nil
	kept, err := KeepSecrets(o, entries)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := config.Apply(o, config.Set("hub", kept["hub"])); err != nil {
		t.Fatal(err)
	}
	if cfg, _, err := config.Load(o); err != nil || len(cfg.Servers) != 1 || !strings.HasPrefix(cfg.Servers[0].Env["HUB_TOKEN"].Reveal(), "ghp_") {
		t.Errorf("%v", err)
	}

	o.WorkDir = t.TempDir()
	write(t, filepath.Join(o.WorkDir, "junctor.json"), `{}`)
	if _, err := KeepSecrets(o, entries); err == nil {
		t.Error("a secret was written beside a file that is not trusted")
	}
	if _, err := os.Stat(filepath.Join(o.WorkDir, ".env")); err == nil {
		t.Error("there is a .env after a refusal")
	}
}

// TestSecretBesideInvalidFile checks that a variable in .env keeps its value
// and a new secret gets another variable, even if the configuration is
// invalid.
func TestSecretBesideInvalidFile(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "junctor.json")
	write(t, file, `{"mcpServers":{"broken":{"comand":"x"}}}`)
	write(t, filepath.Join(dir, ".env"), "HUB_TOKEN=ghp_other\n")
	o := config.Options{File: file}
	kept, err := KeepSecrets(o, map[string]json.RawMessage{"hub": json.RawMessage(`{"command":"x","env":{"HUB_TOKEN":"ghp_0123456789abcdefghij0123456789abcdef"}}`)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := config.Apply(o, config.Remove("broken"), config.Set("hub", kept["hub"])); err != nil {
		t.Fatal(err)
	}
	cfg, _, err := config.Load(o)
	if err != nil {
		t.Fatal(err)
	}
	if s, _ := cfg.Server("hub"); !strings.HasPrefix(s.Env["HUB_TOKEN"].Reveal(), "ghp_0123") {
		t.Errorf("the server uses the secret of another: %s", kept["hub"])
	}
}
