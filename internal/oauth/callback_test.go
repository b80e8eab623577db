package oauth

import "testing"

func TestCallbackURL(t *testing.T) {
	for listen, want := range map[string]string{
		"127.0.0.1:8787": "http://127.0.0.1:8787/oauth/callback", "[::]:80": "http://localhost:80/oauth/callback",
		"0.0.0.0:8787": "http://localhost:8787/oauth/callback", "10.0.0.1:8787": "http://10.0.0.1:8787/oauth/callback", "odd": "",
	} {
		if got := CallbackURL("", "http", listen); got != want {
			t.Errorf("at %s: %q", listen, got)
		}
	}
	if got := CallbackURL("https://junctor.example/mcp", "http", "0.0.0.0:8787"); got != "https://junctor.example/oauth/callback" {
		t.Errorf("with a public name: %q", got)
	}
	if got := CallbackURL("urn:junctor", "http", "127.0.0.1:1"); got != "http://127.0.0.1:1/oauth/callback" {
		t.Errorf("with a public name that is no address: %q", got)
	}
}
