package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/tailscale/hujson"

	"junctor/internal/jsonedit"
)

// Rule changes the keys of the rule for one pattern that patch has; null
// removes a key. The rule becomes the last one, so that it overrides all
// others.
func Rule(pattern string, patch json.RawMessage) Edit { return Edit{rule, pattern, patch} }

// ruleKey is the key of the rules in a file.
const ruleKey = "toolRules"

// editRule merges patch into the last rule that has only this pattern and no
// condition, or into a new one, and moves it to the end. A rule without any key
// but its pattern is removed.
func editRule(text []byte, pattern string, patch json.RawMessage) ([]byte, error) {
	var changes map[string]json.RawMessage
	if err := json.Unmarshal(patch, &changes); err != nil {
		return nil, fmt.Errorf("the rule for %s is not a JSON object", pattern)
	}
	if len(bytes.TrimSpace(text)) == 0 {
		text = []byte("{}\n")
	}
	rules, index, err := ruleOf(text, pattern)
	if err != nil {
		return nil, err
	}
	merged := map[string]json.RawMessage{}
	if index >= 0 {
		merged = rules[index]
		if text, err = jsonedit.Remove(text, ruleKey, strconv.Itoa(index)); err != nil {
			return nil, err
		}
	}
	for key, value := range changes {
		merged[key] = value
		if string(value) == "null" {
			delete(merged, key)
		}
	}
	quoted, err := json.Marshal(pattern)
	if err != nil {
		return nil, err
	}
	if delete(merged, "pattern"); len(merged) == 0 {
		return text, nil
	}
	entry := append([]byte(`{"pattern":`), quoted...)
	for _, key := range slices.Sorted(maps.Keys(merged)) {
		entry = fmt.Appendf(entry, ",%q:%s", key, merged[key])
	}
	entry = append(entry, '}')
	if rules == nil {
		return jsonedit.Set(text, append(append([]byte("["), entry...), ']'), ruleKey)
	}
	return jsonedit.Set(text, entry, ruleKey, "-")
}

// ruleOf returns the rules of a file, or nil if it has none, and the index of
// the last one that has only this pattern and no condition, or -1.
func ruleOf(text []byte, pattern string) ([]map[string]json.RawMessage, int, error) {
	raw, ok := jsonedit.Get(text, ruleKey)
	if !ok {
		return nil, -1, nil
	}
	plain, err := hujson.Standardize(bytes.Clone(raw))
	if err != nil {
		return nil, -1, err
	}
	rules := []map[string]json.RawMessage{}
	if err := json.Unmarshal(plain, &rules); err != nil {
		return nil, -1, fmt.Errorf("%s in the file is not a list of rules", ruleKey)
	}
	for i, r := range slices.Backward(rules) {
		if r["when"] != nil {
			continue // does not apply to all tools that match
		}
		var one string
		var list []string
		if json.Unmarshal(r["pattern"], &list) == nil && len(list) == 1 {
			one = list[0]
		} else if json.Unmarshal(r["pattern"], &one) != nil {
			continue
		}
		if one == pattern {
			return rules, i, nil
		}
	}
	return rules, -1, nil
}
