package store

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// JoinRaw writes values as one JSON array without touching their bytes, which
// json.Marshal would compact and escape.
func JoinRaw(values []json.RawMessage) []byte {
	size := 2
	for _, v := range values {
		size += len(v) + 1
	}
	b := append(make([]byte, 0, size), '[')
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, v...)
	}
	return append(b, ']')
}

// SplitRaw parses the output of JoinRaw. It returns nil for an empty array.
func SplitRaw(array []byte) ([]json.RawMessage, error) {
	if len(array) == 0 {
		return nil, nil
	}
	var out []json.RawMessage
	if err := json.Unmarshal(array, &out); err != nil {
		return nil, fmt.Errorf("list in the store: %w", err)
	}
	if len(out) == 0 {
		return nil, nil
	}
	return out, nil
}

// ValidUTF8 returns v with every run of invalid bytes replaced by U+FFFD.
// Records of earlier versions may contain such bytes, and strict clients reject
// a whole page because of one.
func ValidUTF8(v json.RawMessage) json.RawMessage {
	if utf8.Valid(v) {
		return v
	}
	return bytes.ToValidUTF8(v, []byte("\uFFFD"))
}
