package secretkey

import (
	"strings"
	"testing"

	"junctor/internal/telemetry"
)

func TestParse(t *testing.T) {
	const key = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
	hex := strings.Repeat("0f", 32)
	for name, tt := range map[string]struct {
		in   string
		n    int
		says string // "" means success
	}{
		"one":        {in: key, n: 1},
		"several":    {in: key + ", " + hex, n: 2},
		"passphrase": {in: "bad", says: "JUNCTOR_SECRET_KEY is not valid: a sealing key is 32 random bytes"},
		"second":     {in: key + ",bad", says: "key 2 of 2 in JUNCTOR_SECRET_KEY is not valid: a sealing key is 32 random bytes"},
		"missing":    {in: key + ",", says: "key 2 of 2 in JUNCTOR_SECRET_KEY is not valid"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Parse(telemetry.Secret(tt.in))
			if len(got) != tt.n || (err != nil) != (tt.says != "") || err != nil && !strings.Contains(err.Error(), tt.says) {
				t.Errorf("Parse(%q) = %d keys, %v; want %d, an error that says %q", tt.in, len(got), err, tt.n, tt.says)
			}
			if err != nil && strings.Contains(err.Error(), "bad") {
				t.Errorf("the error shows the key: %v", err)
			}
		})
	}
}
