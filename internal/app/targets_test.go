package app

import (
	"log/slog"
	"strings"
	"testing"

	"junctor/internal/config"
	"junctor/internal/secretkey"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

func TestTargetsHideSecretsAndPaths(t *testing.T) {
	cfg := config.Default()
	for name, edit := range map[string]func(*upstream.Config){
		"far": func(c *upstream.Config) { c.URL = "https://mcp.example/v1/sse?api_key=hidden" },
		"static": func(c *upstream.Config) {
			c.URL = "https://mcp.example/"
			c.Headers = map[string]telemetry.Secret{"authorization": "x"}
		},
		"near": func(c *upstream.Config) { c.Command = "/home/ada/bin/server" },
	} {
		c := upstream.DefaultConfig()
		c.Name = name
		edit(&c)
		cfg.Servers = append(cfg.Servers, c)
	}
	a, err := Open(t.Context(), Options{Config: cfg, DataDir: t.TempDir(), Log: slog.New(slog.DiscardHandler), Redactor: &telemetry.Redactor{}})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for name, want := range map[string]string{"far": "https://mcp.example/v1/sse", "near": "stdio:server", "static": "https://mcp.example/"} {
		got, ok := targets{a}.Target(name, tool.Local.ID)
		if !ok || got.URL != want || got.HasToken != (name == "static") || strings.Contains(got.URL, "hidden") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if _, ok := (targets{a}).Target("nope", tool.Local.ID); ok || len(targets{a}.Targets(tool.Local.ID)) != 3 {
		t.Error("targets that are not there")
	}
}

// TestReplacedSecretKeyReencryptsValues replaces the key: values encrypted with
// the old one are re-encrypted.
func TestReplacedSecretKeyReencryptsValues(t *testing.T) {
	const one, two = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="
	data := t.TempDir()
	open := func(keys telemetry.Secret) (*App, error) {
		return Open(t.Context(), Options{Config: config.Default(), DataDir: data, Log: slog.New(slog.DiscardHandler), Redactor: &telemetry.Redactor{}, SecretKey: keys})
	}
	vault := func(a *App, keys telemetry.Secret) *store.Vault {
		sealer, err := secretkey.Sealer(keys, data, false)()
		if err != nil {
			t.Fatal(err)
		}
		return store.NewVault(a.store, sealer)
	}
	a, err := open(one)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := vault(a, one).Put(t.Context(), "x", []byte("token"), -1); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if a, err = open(two + "," + one); err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if plain, _, err := vault(a, two).Get(t.Context(), "x"); err != nil || string(plain) != "token" {
		t.Errorf("with the new key alone: %q, %v", plain, err)
	}
	if _, _, err := vault(a, one).Get(t.Context(), "x"); err == nil {
		t.Error("the old key still opens it")
	}
	for _, keys := range []telemetry.Secret{"short", one + ",short"} {
		if _, err := secretkey.Sealer(keys, data, false)(); err == nil {
			t.Errorf("a key of another length was taken")
		}
	}
	if b, err := open(one + ",short"); err == nil {
		b.Close()
		t.Error("started with a key that is none")
	}
	if _, err := secretkey.Sealer("", data, false)(); err != nil {
		t.Error(err)
	}
}
