package config

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"junctor/internal/auth"
	"junctor/internal/telemetry"
	"junctor/internal/upstream"
)

// TestSecretValuesToRedact checks that ordinary values of a server's
// environment are not masked in records, and that secret settings, values that
// look secret and values of secret variables are.
func TestSecretValuesToRedact(t *testing.T) {
	x := &expansion{env: &environment{real: func(name string) (string, bool) {
		v, ok := map[string]string{"VENDOR_TOKEN": "from-a-variable", "REGION": "eu-central"}[name]
		return v, ok
	}, inFile: map[string]string{}}}
	x.expand("${VENDOR_TOKEN} and ${REGION}")
	c := &Config{env: x.env, Servers: []upstream.Config{{
		Name: "s", AuthorizationToken: "short",
		Env: map[string]telemetry.Secret{
			"LOG_LEVEL": "debug", "NODE_ENV": "production", "SORT_KEY": "created_at", "TOKEN_LIMIT": "100000",
			"API_KEY": "hunter2x", "DB_PASSWORD": "correct horse", "USE_TOKEN": "true",
			"ODD": "ghp_0123456789abcdefghijABCDEFGHIJ012345", "DATABASE_URL": "postgres://me:pass%20word@db/x",
		},
		Headers: map[string]telemetry.Secret{"Accept-Language": "english", "Authorization": "Bearer abcdef123"},
		OpenAPI: "x.json", Credentials: map[string]telemetry.Secret{"basic": "me:pw"},
	}}}
	c.Auth.OIDC = &auth.OIDCConfig{ClientSecret: "of-the-provider"}
	var got []string
	for _, s := range c.Secrets() {
		if s != "" {
			got = append(got, s.Reveal())
		}
	}
	slices.Sort(got)
	want := []string{"Bearer abcdef123", "abcdef123", "correct horse", "from-a-variable", "ghp_0123456789abcdefghijABCDEFGHIJ012345", "hunter2x", "me:pw", "of-the-provider", "postgres://me:pass%20word@db/x", "short"}
	if !slices.Equal(got, want) {
		t.Errorf("secrets = %q\nwant      %q", got, want)
	}
	var r telemetry.Redactor
	r.Add(c.Secrets()...)
	if text := "running in debug, production, eu-central, sorted by created_at"; r.String(text) != text {
		t.Errorf("ordinary words are masked: %s", r.String(text))
	}
	if text := r.String("hunter2x from-a-variable"); strings.Contains(text, "hunter") || strings.Contains(text, "variable") {
		t.Errorf("secrets are shown: %s", text)
	}
}

// TestSecretInFile checks for each setting that can be a secret whether a value
// in the file, a reference to a variable and a file of variables count.
func TestSecretInFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "secrets-of-production.env"), []byte("API_TOKEN=hunter2x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := func(settings string) string { return `{"mcpServers": {"s": {` + settings + `}}}` }
	web := func(settings string) string { return server(`"url": "https://mcp.example/mcp", ` + settings) }
	api := func(settings string) string { return server(`"openapi": "x.json", ` + settings) }
	for name, tt := range map[string]struct {
		text string // VALUE is replaced
		also string // another value that is secret
	}{
		"llm":                   {text: `{"llm": {"provider": "openai", "model": "m", "apiKey": "VALUE"}}`},
		"list of models":        {text: `{"llm": [{"provider": "openai", "model": "m", "apiKey": "VALUE"}]}`},
		"oidc":                  {text: `{"auth": {"oidc": {"issuer": "https://id.example", "clientId": "c", "clientSecret": "VALUE"}}, "publicUrl": "https://x.example"}`},
		"key":                   {text: `{"auth": {"keys": [{"name": "ci", "key": "VALUE"}]}}`},
		"webhook":               {text: `{"approval": {"webhook": {"url": "https://x.example", "secret": "VALUE"}}}`},
		"store":                 {text: `{"store": {"url": "VALUE"}}`, also: "postgres://me${A}:hunter2x@h/db"},
		"telemetry":             {text: `{"telemetry": {"otlp": {"endpoint": "http://localhost:4318", "headers": {"Authorization": "VALUE"}}}}`},
		"credentials":           {text: api(`"credentials": {"key": "VALUE"}`)},
		"client secret":         {text: web(`"oauth": {"clientId": "c", "clientSecret": "VALUE"}`)},
		"private key":           {text: web(`"oauth": {"clientId": "c", "privateKey": "VALUE"}`)},
		"token":                 {text: web(`"authorization_token": "VALUE"`)},
		"header":                {text: web(`"headers": {"Authorization": "Bearer VALUE"}`)},
		"env":                   {text: server(`"command": "x", "env": {"API_TOKEN": "VALUE"}`), also: "${A:-ghp_0123456789abcdefghijABCDEFGHIJ012345}"},
		"argument":              {text: server(`"command": "x", "args": ["--api-key", "VALUE", "-H", "Authorization: Bearer ${A}"]`)},
		"variables in the file": {text: `{"mcpServers": {}, "OPENAI_API_KEY": "VALUE"}`},
	} {
		t.Run(name, func(t *testing.T) {
			for value, want := range map[string]bool{"a-secret-of-some-length-0123456789": true, tt.also: true, "${A}": false, "${env:A}": false} {
				if value == "" {
					continue
				}
				if name == "store" && !strings.Contains(value, "://") {
					value = "postgres://me:" + value + "@db.example/junctor"
				}
				cfg, _, err := Parse(filepath.Join(dir, "junctor.json"), []byte(strings.Replace(tt.text, "VALUE", value, 1)), Options{LookupEnv: func(name string) (string, bool) {
					return "a-long-value-of-a-variable-0123456789", name == "A"
				}})
				if err != nil {
					t.Fatal(err)
				}
				if cfg.SecretInFile() != want {
					t.Errorf("%s: SecretInFile() = %v", value, !want)
				}
			}
		})
	}
	for name, text := range map[string]string{
		"nothing":           `{}`,
		"file of variables": server(`"command": "x", "envFile": "secrets-of-production.env"`),
		"ordinary":          web(`"headers": {"X-Team": "a", "Accept": "application/json"}`),
		"ordinary env":      server(`"command": "x", "args": ["--port", "80", "-v"], "env": {"NODE_ENV": "production", "TOKEN_FILE": "/run/token"}`),
		"placeholder":       server(`"command": "x", "env": {"API_TOKEN": "<your token>"}`),
	} {
		cfg, _, err := Parse(filepath.Join(dir, "junctor.json"), []byte(text), Options{BaseDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		if cfg.SecretInFile() {
			t.Errorf("%s counts as a secret", name)
		}
	}
}

// TestUnsetVariableHintSurvivesRedaction: the redactor does not mask the syntax of a
// default in the note about a variable that is not set, whatever its name.
func TestUnsetVariableHintSurvivesRedaction(t *testing.T) {
	o := Options{File: filepath.Join(t.TempDir(), "junctor.json"), LookupEnv: func(string) (string, bool) { return "", false }}
	if err := os.WriteFile(o.File, []byte(`{"mcpServers":{"s":{"command":"x","env":{"TOKEN":"${GITHUB_TOKEN}"}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	_, notes, err := Load(o)
	if err != nil || len(notes) != 1 {
		t.Fatalf("notes %v, %v", notes, err)
	}
	text := notes[0].String()
	if got := new(telemetry.Redactor).String(text); got != text || !strings.Contains(got, "GITHUB_TOKEN is not set") || !strings.Contains(got, ":-default}") {
		t.Errorf("redacted: %s", got)
	}
}
