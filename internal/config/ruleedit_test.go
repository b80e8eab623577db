package config

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestRuleEdit checks that enabling or disabling a tool results in a single
// rule, the last one, and that nothing else in the file changes.
func TestRuleEdit(t *testing.T) {
	for name, tt := range map[string]struct{ before, patch, after string }{
		"empty file":  {``, `{"enabled":false}`, `{"toolRules":[{"pattern":"fs:read","enabled":false}]}`},
		"no rules":    {`{"listen":":1"}`, `{"approval":"ask"}`, `{"listen":":1","toolRules":[{"pattern":"fs:read","approval":"ask"}]}`},
		"others":      {`{"toolRules":[{"pattern":"*","tags":["x"]}]}`, `{"enabled":true}`, `{"toolRules":[{"pattern":"*","tags":["x"]},{"pattern":"fs:read","enabled":true}]}`},
		"merge, last": {`{"toolRules":[{"pattern":["fs:read"],"enabled":false},{"pattern":"fs:*","enabled":true}]}`, `{"approval":"ask"}`, `{"toolRules":[{"pattern":"fs:*","enabled":true},{"pattern":"fs:read","approval":"ask","enabled":false}]}`},
		"take away":   {`{"toolRules":[{"pattern":"fs:read","approval":"ask"}]}`, `{"approval":null}`, `{"toolRules":[]}`},
		"two of it":   {`{"toolRules":[{"pattern":["fs:read","fs:write"],"enabled":false}]}`, `{"enabled":true}`, `{"toolRules":[{"pattern":["fs:read","fs:write"],"enabled":false},{"pattern":"fs:read","enabled":true}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := EditBytes([]byte(tt.before), Rule("fs:read", json.RawMessage(tt.patch)))
			if err != nil {
				t.Fatal(err)
			}
			var a, b any
			if err := json.Unmarshal(got, &a); err != nil {
				t.Fatalf("%s: %v", got, err)
			}
			if err := json.Unmarshal([]byte(tt.after), &b); err != nil {
				t.Fatal(err)
			}
			have, err := json.Marshal(a)
			if err != nil {
				t.Fatal(err)
			}
			want, err := json.Marshal(b)
			if err != nil {
				t.Fatal(err)
			}
			if string(have) != string(want) {
				t.Errorf("%s, want %s", have, want)
			}
		})
	}
	commented := "{\n  // mine\n  \"toolRules\": [\n    { \"pattern\": \"fs:*\", \"enabled\": true }, // all of it\n  ]\n}\n"
	got, err := EditBytes([]byte(commented), Rule("fs:read", json.RawMessage(`{"enabled":false}`)))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"// mine", "// all of it", `"fs:read"`} {
		if !strings.Contains(string(got), want) {
			t.Errorf("%q is not in %s", want, got)
		}
	}
	if _, err := EditBytes([]byte(`{"toolRules":{}}`), Rule("fs:read", json.RawMessage(`{"enabled":false}`))); err == nil {
		t.Error("rules that are no list were accepted")
	}
}
