package config

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestSetValue(t *testing.T) {
	for name, tt := range map[string]struct{ text, key, value, want string }{
		"new file":        {"", "log.level", `"debug"`, "{\n  \"log\": {\n    \"level\": \"debug\"\n  }\n}\n"},
		"shorthand":       {`{"log": "warn"}`, "log.format", `"json"`, `{"log": { "level": "warn", "format": "json" }}`},
		"other member":    {"{\n  // why\n  \"limits\": {\"maxBodyBytes\": 2048}\n}", "limits.maxSessions", "5", "{\n  // why\n  \"limits\": {\"maxBodyBytes\": 2048, \"maxSessions\": 5}\n}"},
		"back to default": {"{\"limits\": {\"maxBodyBytes\": 2048, \"maxSessions\": 5}}", "limits.maxSessions", "null", "{\"limits\": {\"maxBodyBytes\": 2048}}"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := EditBytes([]byte(tt.text), SetValue(tt.key, json.RawMessage(tt.value)))
			if err != nil || string(got) != tt.want {
				t.Errorf("got %s, %v\nwant %s", got, err, tt.want)
			}
		})
	}
	for _, key := range []string{"mcpServers", "mcpServers.a.command", "log.colour", "", "OPENAI_API_KEY", "llm.0.apiKey"} {
		if got, err := EditBytes(nil, SetValue(key, json.RawMessage(`"x"`))); err == nil {
			t.Errorf("%q was set: %s", key, got)
		}
	}
	// The key under which nodes share a change cannot be the name of a server.
	if e := SetValue("listen", nil); e.Key() == "listen" {
		t.Error("a setting has the name of a server")
	}
}

func TestAppliesLive(t *testing.T) {
	for key, want := range map[string]bool{"listen": false, "store.url": false, "log.level": true, "log.format": false, "limits.maxBodyBytes": true, "llm": true, "discovery.cache.enabled": false} {
		if AppliesLive(key) != want {
			t.Errorf("%s: live is not %v", key, want)
		}
	}
}

func TestSecretsIn(t *testing.T) {
	for key, tt := range map[string]struct {
		value string
		want  [][]string
	}{
		"llm":       {`[{"provider":"openai","apiKey":"sk-1"},{"apiKey":"${X}"}]`, [][]string{{"0", "apiKey"}}},
		"store.url": {`"postgres://a:b@c/d"`, [][]string{nil}},
		"auth.keys": {`[{"name":"a","key":"0123456789abcdef"}]`, [][]string{{"0", "key"}}},
		"log":       {`{"level":"debug"}`, nil},
	} {
		if got := SecretsIn(key, json.RawMessage(tt.value)); !slices.EqualFunc(got, tt.want, slices.Equal) {
			t.Errorf("%s: %q", key, got)
		}
	}
}
