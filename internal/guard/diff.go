package guard

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"junctor/internal/rawjson"
)

// Difference is one difference between two definitions.
type Difference struct {
	Where  string          `json:"where"`            // path of the difference, such as description or inputSchema.properties.path
	Before json.RawMessage `json:"before,omitempty"` // absent if it was added
	After  json.RawMessage `json:"after,omitempty"`  // absent if it was removed
}

// maxDifferences bounds the differences that Diff returns.
const maxDifferences = 100

// Diff returns the differences between two definitions, in order. For a value
// that only one of them has, Before or After is nil.
func Diff(before, after json.RawMessage) []Difference {
	a, b := decode(before), decode(after)
	var out []Difference
	diff("", a, b, 0, &out)
	return out
}

func decode(raw json.RawMessage) any {
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if dec.Decode(&v) != nil {
		return missing{}
	}
	return v
}

// missing stands for an absent value, as opposed to null.
type missing struct{}

func diff(where string, a, b any, depth int, out *[]Difference) {
	if len(*out) >= maxDifferences {
		return
	}
	if depth < maxNesting {
		switch a := a.(type) {
		case map[string]any:
			if b, ok := b.(map[string]any); ok {
				keys := map[string]bool{}
				for k := range a {
					keys[k] = true
				}
				for k := range b {
					keys[k] = true
				}
				sorted := make([]string, 0, len(keys))
				for k := range keys {
					sorted = append(sorted, k)
				}
				slices.Sort(sorted)
				for _, k := range sorted {
					diff(strings.TrimPrefix(where+"."+k, "."), member(a, k), member(b, k), depth+1, out)
				}
				return
			}
		case []any:
			if b, ok := b.([]any); ok && len(a) == len(b) {
				for i := range a {
					diff(where+"["+strconv.Itoa(i)+"]", a[i], b[i], depth+1, out)
				}
				return
			}
		}
	}
	before, after := encode(a), encode(b)
	if !bytes.Equal(before, after) {
		*out = append(*out, Difference{Where: where, Before: before, After: after})
	}
}

func member(m map[string]any, key string) any {
	if v, ok := m[key]; ok {
		return v
	}
	return missing{}
}

func encode(v any) json.RawMessage {
	if _, ok := v.(missing); ok {
		return nil
	}
	raw, _ := rawjson.Marshal(v) // nil for a value that cannot be encoded
	return raw
}
