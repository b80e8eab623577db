package config

import (
	"strings"
	"testing"
)

// TestPublicURL checks the validation of the address that the gateway's own
// authorization server needs.
func TestPublicURL(t *testing.T) {
	for text, refused := range map[string]string{
		`{"auth":{"server":true}}`:                                                                                                          "needs publicUrl",
		`{"auth":{"server":true},"publicUrl":"https://a.example/"}`:                                                                         "no path",
		`{"auth":{"server":true},"publicUrl":"https://user@a.example"}`:                                                                     "no path",
		`{"auth":{"server":true},"publicUrl":"http://a.example"}`:                                                                           "must be https",
		`{"auth":{"server":true},"publicUrl":"http://127.0.0.1:8787"}`:                                                                      "",
		`{"auth":{"server":true},"publicUrl":"https://a.example"}`:                                                                          "",
		`{"auth":{"server":true,"jwt":{"issuer":"https://b.example","audience":"x"}},"publicUrl":"https://a.example"}`:                      "",
		`{"auth":{"server":true,"jwt":{"issuer":"https://a.example/","audience":"https://a.example/mcp"}},"publicUrl":"https://a.example"}`: "is this gateway itself",
		`{"auth":{"server":true,"jwt":{"issuer":"https://a.example","audience":"https://a.example/mcp"}},"publicUrl":"https://a.example"}`:  "is this gateway itself",
		`{"auth":{"jwt":{"issuer":"https://a.example","audience":"https://a.example/mcp"}},"publicUrl":"https://a.example"}`:                "",
	} {
		_, _, err := Parse("junctor.json", []byte(text), Options{LookupEnv: func(string) (string, bool) { return "", false }})
		if refused == "" && err != nil || refused != "" && (err == nil || !strings.Contains(err.Error(), refused)) {
			t.Errorf("%s: %v, want %q", text, err, refused)
		}
	}
}
