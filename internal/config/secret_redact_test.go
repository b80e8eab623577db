package config

import (
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
