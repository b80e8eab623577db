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

// SplitRaw reads what JoinRaw wrote; an empty array gives nil.
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

// Clip returns v when it has at most limit bytes; otherwise an object that
// tells the size and holds the beginning as text, so that what is kept stays
// JSON: {"truncated":true,"bytes":123456,"head":"…"}. With limit 0 only the
// size remains.
func Clip(v json.RawMessage, limit int) json.RawMessage {
	if len(v) <= limit {
		return v
	}
	head := v[:max(limit, 0)]
	for i := 0; i < utf8.UTFMax && len(head) > 0 && !utf8.Valid(head[max(0, len(head)-utf8.UTFMax):]); i++ {
		// The cut may have split a character, and the window may begin
		// inside one: step back until the end is whole.
		if r, _ := utf8.DecodeLastRune(head); r != utf8.RuneError {
			break
		}
		head = head[:len(head)-1]
	}
	b, err := json.Marshal(struct {
		Truncated bool   `json:"truncated"`
		Bytes     int    `json:"bytes"`
		Head      string `json:"head,omitempty"`
	}{true, len(v), string(head)})
	if err != nil { // a struct of plain fields always marshals
		return json.RawMessage(`{"truncated":true}`)
	}
	return b
}

// ValidUTF8 returns v with every invalid byte replaced by U+FFFD. Records of
// earlier versions may hold such bytes, and strict clients refuse a whole page
// because of one of them.
func ValidUTF8(v json.RawMessage) json.RawMessage {
	if utf8.Valid(v) {
		return v
	}
	return bytes.ToValidUTF8(v, []byte("\uFFFD"))
}
