package config

import (
	"strings"
	"testing"
)

// TestAnyOriginNeedsAKey checks that any origin is refused on a listener without
// keys, because it would let every web page run tools.
func TestAnyOriginNeedsAKey(t *testing.T) {
	for name, tt := range map[string]struct {
		text    string
		env     map[string]string
		refused string
	}{
		"open loopback":       {text: `{"cors":{"origins":["*"]}}`, refused: "asks for no key"},
		"by name":             {text: `{"cors":{"origins":["*"]},"listen":"localhost:1"}`, refused: "asks for no key"},
		"among others":        {text: `{"cors":{"origins":["https://a.example","*"]}}`, refused: "asks for no key"},
		"IPv6":                {text: `{"cors":{"origins":["*"]},"listen":"[::1]:1"}`, refused: "asks for no key"},
		"loopback by PORT":    {text: `{"cors":{"origins":["*"]}}`, env: map[string]string{"PORT": "9"}, refused: "asks for no key"},
		"keys on loopback":    {text: `{"cors":{"origins":["*"]},"auth":{"loopback":"key"}}`},
		"off loopback":        {text: `{"cors":{"origins":["*"]},"listen":"0.0.0.0:1"}`},
		"an origin of a page": {text: `{"cors":{"origins":["https://a.example"]}}`},
		"null":                {text: `{"cors":{"origins":["null"]}}`, refused: "not an origin"},
		"null behind a key":   {text: `{"cors":{"origins":["null"]},"auth":{"loopback":"key"}}`, refused: "not an origin"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Parse("junctor.json", []byte(tt.text), Options{LookupEnv: func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok }})
			switch {
			case tt.refused == "" && err != nil:
				t.Error(err)
			case tt.refused != "" && (err == nil || !strings.Contains(err.Error(), tt.refused) || !strings.Contains(err.Error(), "cors.origins")):
				t.Errorf("Parse = %v, want it to say %q", err, tt.refused)
			}
		})
	}
}
