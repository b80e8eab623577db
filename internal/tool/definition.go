package tool

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// Definition is a tool as its upstream defined it. The fields are those that
// Junctor uses; Raw is the definition byte for byte, to be passed on.
type Definition struct {
	Name         Name            `json:"-"`
	Title        string          `json:"title"`
	Description  string          `json:"description"`
	InputSchema  json.RawMessage `json:"inputSchema"`
	OutputSchema json.RawMessage `json:"outputSchema"`
	Annotations  Annotations     `json:"annotations"`
	UI           Interface       `json:"-"`
	Raw          json.RawMessage `json:"-"`
}

// Annotations are the server's hints about a tool. Hints that the server did
// not give are not set.
type Annotations struct {
	Title           string `json:"title,omitempty"`
	ReadOnlyHint    *bool  `json:"readOnlyHint,omitempty"`
	DestructiveHint *bool  `json:"destructiveHint,omitempty"`
	IdempotentHint  *bool  `json:"idempotentHint,omitempty"`
	OpenWorldHint   *bool  `json:"openWorldHint,omitempty"`
}

// Repeatable reports whether the tool is marked read-only or idempotent, so
// that a failed call may be retried.
func (a Annotations) Repeatable() bool {
	return a.ReadOnlyHint != nil && *a.ReadOnlyHint || a.IdempotentHint != nil && *a.IdempotentHint
}

// ParseDefinition parses one entry of a tools/list result. It retains raw as
// Raw; the caller must not modify it afterwards.
func ParseDefinition(server string, raw json.RawMessage) (Definition, error) {
	var named struct {
		Name string          `json:"name"`
		Meta json.RawMessage `json:"_meta"`
		Definition
	}
	if err := json.Unmarshal(raw, &named); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok { // its message contains Go types
			return Definition{}, fmt.Errorf("tool definition: %s must not be of the type %s", cmp.Or(wrong.Field, "it"), wrong.Value)
		}
		return Definition{}, fmt.Errorf("tool definition: %w", err)
	}
	d := named.Definition
	d.Name = Name{Server: server, Tool: named.Name}
	d.Raw = raw
	d.UI = readInterface(named.Meta)
	if named.Name == "" {
		return Definition{}, fmt.Errorf("tool definition without a name")
	}
	if d.Title == "" {
		d.Title = d.Annotations.Title
	}
	if s := bytes.TrimSpace(d.InputSchema); len(s) == 0 || s[0] != '{' {
		return Definition{}, fmt.Errorf("tool %q: inputSchema is not an object", named.Name)
	}
	if s := bytes.TrimSpace(d.OutputSchema); len(s) != 0 && s[0] != '{' {
		d.OutputSchema = nil
	}
	return d, nil
}

// Fingerprint returns a hash of the definition's content that does not depend
// on the order of keys or on white space.
func (d Definition) Fingerprint() string {
	canonical := []byte(d.Raw)
	var v any
	dec := json.NewDecoder(bytes.NewReader(d.Raw))
	dec.UseNumber()
	if dec.Decode(&v) == nil {
		if b, err := json.Marshal(v); err == nil {
			canonical = b
		}
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:16])
}
