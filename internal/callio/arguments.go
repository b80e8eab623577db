// Package callio parses the arguments of a tool call from the command line, and
// shows its progress and its result in a terminal.
package callio

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"junctor/internal/rawjson"
)

// Arguments combines all ways to pass arguments into one JSON object.
func Arguments(schema json.RawMessage, whole string, pairs []string, stdin io.Reader) (json.RawMessage, error) {
	if whole == "" && len(pairs) > 0 && strings.HasPrefix(strings.TrimSpace(pairs[0]), "{") {
		whole, pairs = pairs[0], pairs[1:]
	}
	raw := json.RawMessage(whole)
	if whole == "-" {
		data, err := io.ReadAll(io.LimitReader(stdin, 16<<20))
		if err != nil {
			return nil, fmt.Errorf("read the arguments from stdin: %w", err)
		}
		raw = data
	}
	if len(strings.TrimSpace(string(raw))) == 0 {
		raw = json.RawMessage(`{}`)
	}
	if trimmed := strings.TrimSpace(string(raw)); !json.Valid(raw) || trimmed[0] != '{' {
		return nil, errors.New("the arguments are not a JSON object")
	}
	for _, pair := range pairs {
		key, value, err := parsePair(schema, pair)
		if err != nil {
			return nil, err
		}
		raw = rawjson.SetField(raw, value, key)
	}
	return raw, nil
}

// parsePair parses key=value, depending on the type of the key in the schema,
// or key:=JSON.
func parsePair(schema json.RawMessage, pair string) (string, json.RawMessage, error) {
	key, value, ok := strings.Cut(pair, "=")
	if !ok || key == "" {
		return "", nil, fmt.Errorf("%q is not key=value; give all arguments as one JSON object with --args", pair)
	}
	if name, isJSON := strings.CutSuffix(key, ":"); isJSON {
		if !json.Valid([]byte(value)) {
			return "", nil, fmt.Errorf("the value of %s is not JSON", name)
		}
		return name, json.RawMessage(value), nil
	}
	if takesText(schema, rawjson.Field(schema, "properties", key), map[string]bool{}) || !json.Valid([]byte(value)) {
		quoted, err := json.Marshal(value)
		return key, quoted, err
	}
	return key, json.RawMessage(value), nil
}

// takesText reports whether a parameter may be a string, so that 007 is not
// converted to a number. A parameter without a type is not a text here: its
// value is a string only if it is not valid JSON. References are resolved in
// root, each once (seen), because schemas may refer to themselves.
func takesText(root, parameter json.RawMessage, seen map[string]bool) bool {
	var p struct {
		Type  any               `json:"type"`
		Const any               `json:"const"`
		Enum  []any             `json:"enum"`
		Ref   string            `json:"$ref"`
		AnyOf []json.RawMessage `json:"anyOf"`
		OneOf []json.RawMessage `json:"oneOf"`
		AllOf []json.RawMessage `json:"allOf"`
	}
	if json.Unmarshal(parameter, &p) != nil {
		return false
	}
	switch t := p.Type.(type) {
	case string:
		return t == "string"
	case []any:
		return slices.Contains(t, any("string"))
	}
	branches := slices.Concat(p.AnyOf, p.OneOf, p.AllOf)
	if local, ok := strings.CutPrefix(p.Ref, "#/"); ok && !seen[p.Ref] {
		seen[p.Ref] = true
		branches = append(branches, rawjson.Pointer(root, local))
	}
	return slices.ContainsFunc(append(p.Enum, p.Const), func(v any) bool { _, ok := v.(string); return ok }) ||
		slices.ContainsFunc(branches, func(b json.RawMessage) bool { return takesText(root, b, seen) })
}
