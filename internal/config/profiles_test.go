package config

import (
	"strings"
	"testing"
)

// TestRulesNameExistingProfiles checks that a key or a rule with a profile that
// is not defined is an error.
func TestRulesNameExistingProfiles(t *testing.T) {
	for key, auth := range map[string]string{
		"auth.keys[0].profile":           `"keys": [{"name": "k", "key": "sixteen-letters-at-least", "profile": "coding"}]`,
		"auth.jwt.rules[0].profiles[0]":  `"jwt": {"issuer": "https://i.example", "audience": "https://a.example", "rules": [{"profiles": ["coding"]}]}`,
		"auth.oidc.rules[0].profiles[0]": `"oidc": {"issuer": "https://i.example", "clientId": "c", "rules": [{"profiles": ["coding"]}]}`,
	} {
		if _, _, err := Parse("a", []byte(`{"auth": {`+auth+`}}`), Options{}); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
		if _, _, err := Parse("a", []byte(`{"profiles": {"coding": {}}, "auth": {`+auth+`}}`), Options{}); err != nil {
			t.Errorf("%s, defined: %v", key, err)
		}
	}
}

func TestOldNameOfApprovalTimeout(t *testing.T) {
	cfg, notes, err := Parse("a", []byte(`{"chat": {"approvalTimeoutMs": 1234}}`), Options{})
	if err != nil || cfg.Approval.TimeoutMs != 1234 || len(notes) != 1 || !strings.Contains(notes[0].String(), "approval.timeoutMs") {
		t.Errorf("%v, %v", notes, err)
	}
	if _, _, err := Parse("a", []byte(`{"chat": {"approvalTimeoutMs": 1}, "approval": {"timeoutMs": 2}}`), Options{}); err == nil {
		t.Error("both names are accepted")
	}
}
