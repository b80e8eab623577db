package mcp

import (
	"bytes"
	"encoding/json"
	"iter"
)

// The functions of this file walk through JSON that [Decode] has accepted, and
// check nothing again: the inside of a string is skipped as fast as a byte can
// be searched for. On other bytes they find what they find, and never panic.

// ResultIsError reports whether a decoded result has isError set.
func ResultIsError(result json.RawMessage) bool {
	failed := false
	for m := range trustedMembers(result) {
		if keyIs(result[m.keyStart:m.keyEnd], "isError") {
			failed = string(result[m.start:m.end]) == "true"
		}
	}
	return failed
}

// MayNameTask reports whether a result that was decoded has a member that can
// name a task.
func MayNameTask(result json.RawMessage) bool {
	for m := range trustedMembers(result) {
		switch string(memberName(result, m)) {
		case "task", "taskId", "_meta":
			return true
		}
	}
	return false
}

// trustedField returns the value of a member of an object that was decoded, nil
// when there is none. The last of a repeated one counts.
func trustedField(object json.RawMessage, key string) (value json.RawMessage) {
	for m := range trustedMembers(object) {
		if keyIs(object[m.keyStart:m.keyEnd], key) {
			value = object[m.start:m.end:m.end]
		}
	}
	return value
}

// trustedMembers is members for bytes that Decode has accepted.
func trustedMembers(b []byte) iter.Seq[member] {
	return func(yield func(member) bool) {
		i := skipSpace(b, 0)
		if i >= len(b) || b[i] != '{' {
			return
		}
		for i = skipSpace(b, i+1); i < len(b) && b[i] == '"'; i = skipSpace(b, i+1) {
			m := member{keyStart: i, keyEnd: skipTrustedString(b, i)}
			if i = skipSpace(b, m.keyEnd); i >= len(b) || b[i] != ':' {
				return
			}
			m.start = skipSpace(b, i+1)
			m.end = skipTrusted(b, m.start)
			if !yield(m) {
				return
			}
			if i = skipSpace(b, m.end); i >= len(b) || b[i] != ',' {
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
			if depth < 0 { // of the object around a number or a word
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
		for b[i-1-slashes] == '\\' { // at the latest the opening quote is none
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
	return len(b)
}
