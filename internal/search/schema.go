package search

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// schema is what the ranking reads of a JSON Schema.
type schema struct {
	Description string
	Enum        []any
	Properties  map[string]schema
	Items       *schema
}

const (
	maxSchemaBytes = 1 << 20
	maxSchemaDepth = 4
	maxEnumValues  = 30
)

// parameters returns the names of a tool's parameters, and their descriptions
// and enumerated values as text.
func parameters(raw json.RawMessage) (names, texts string) {
	if len(raw) > maxSchemaBytes || !bytes.Contains(raw, []byte(`"properties"`)) {
		return "", ""
	}
	var s schema
	// Fields of an unexpected type are skipped and the rest is read, so the
	// error can be ignored.
	_ = json.Unmarshal(raw, &s)
	var n, t strings.Builder
	s.walk(&n, &t, 0)
	return n.String(), t.String()
}

func (s *schema) walk(names, texts *strings.Builder, depth int) {
	if depth > maxSchemaDepth || names.Len() > maxTextBytes || texts.Len() > maxTextBytes {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[key]
		names.WriteString(key)
		names.WriteByte(' ')
		texts.WriteString(p.Description)
		texts.WriteByte('\n')
		for _, v := range p.Enum[:min(len(p.Enum), maxEnumValues)] {
			if v, ok := v.(string); ok && len(v) <= maxTokenBytes {
				texts.WriteString(v)
				texts.WriteByte(' ')
			}
		}
		p.walk(names, texts, depth+1)
	}
	if s.Items != nil {
		s.Items.walk(names, texts, depth+1)
	}
}
