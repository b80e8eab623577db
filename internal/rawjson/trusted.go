package rawjson

import (
	"bytes"
	"encoding/json"
	"iter"
)

// TrustedField returns the value of a member of an object that was checked
// before, or nil if there is none. Of a repeated member the last one counts.
func TrustedField(object json.RawMessage, key string) (value json.RawMessage) {
	for m := range TrustedPositions(object) {
		if m.Is(object, key) {
			value = m.Value(object)
		}
	}
	return value
}

// TrustedPositions is [Positions] for JSON that was checked before.
func TrustedPositions(b []byte) iter.Seq[Member] {
	return func(yield func(Member) bool) {
		i := SkipSpace(b, 0)
		if i >= len(b) || b[i] != '{' {
			return
		}
		for i = SkipSpace(b, i+1); i < len(b) && b[i] == '"'; i = SkipSpace(b, i+1) {
			m := Member{KeyStart: i, KeyEnd: skipTrustedString(b, i)}
			if i = SkipSpace(b, m.KeyEnd); i >= len(b) || b[i] != ':' {
				return
			}
			m.Start = SkipSpace(b, i+1)
			m.End = skipTrusted(b, m.Start)
			if !yield(m) {
				return
			}
			if i = SkipSpace(b, m.End); i >= len(b) || b[i] != ',' {
				return
			}
		}
	}
}

// skipTrusted returns the index after the value that begins at i.
func skipTrusted(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = skipTrustedString(b, i)
			if depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
			if depth < 0 { // the end of the object or array around a number or a literal
				return i
			}
		case ',', ' ', '\n', '\r', '\t':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return i
}

// skipTrustedString returns the index after the string that opens at i.
func skipTrustedString(b []byte, i int) int {
	for i++; i < len(b); i++ {
		quote := bytes.IndexByte(b[i:], '"')
		if quote < 0 {
			return len(b)
		}
		i += quote
		slashes := 0
		for b[i-1-slashes] == '\\' { // stops at the opening quote at the latest
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
	return len(b)
}
