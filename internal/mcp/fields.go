package mcp

import (
	"encoding/json"
	"iter"
)

// The functions of this file read and change single members of a JSON object
// and leave every other byte alone. They take what Decode accepted; bytes
// that are no JSON object have no members, and never cause a panic.

// member is where one member of an object lies: key and value without the
// white space around them.
type member struct{ keyStart, keyEnd, start, end int }

// members walks the object in b. It stops at the first byte that breaks the
// syntax.
func members(b []byte) iter.Seq[member] {
	return func(yield func(member) bool) {
		i := skipSpace(b, 0)
		if i >= len(b) || b[i] != '{' {
			return
		}
		for i = skipSpace(b, i+1); i < len(b) && b[i] == '"'; i = skipSpace(b, i+1) {
			m := member{keyStart: i}
			var err error
			if m.keyEnd, err = skipString(b, i); err != nil {
				return
			}
			if i = skipSpace(b, m.keyEnd); i >= len(b) || b[i] != ':' {
				return
			}
			m.start = skipSpace(b, i+1)
			if m.end, err = skipValue(b, m.start, maxScanDepth); err != nil {
				return
			}
			if !yield(m) {
				return
			}
			if i = skipSpace(b, m.end); i >= len(b) || b[i] != ',' {
				return
			}
		}
	}
}

// Members iterates over the members of a JSON object, in order.
func Members(object json.RawMessage) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		for m := range members(object) {
			key, ok := text(object[m.keyStart:m.keyEnd])
			if ok && !yield(key, object[m.start:m.end:m.end]) {
				return
			}
		}
	}
}

// MemberNames iterates over the names of the members of a JSON object, in
// order. It allocates only for names written with escapes.
func MemberNames(object json.RawMessage) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for m := range members(object) {
			if !yield(memberName(object, m)) {
				return
			}
		}
	}
}

// Elements iterates over the elements of a JSON array, in order.
func Elements(array json.RawMessage) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		i := skipSpace(array, 0)
		if i >= len(array) || array[i] != '[' {
			return
		}
		for i = skipSpace(array, i+1); i < len(array) && array[i] != ']'; i = skipSpace(array, i+1) {
			end, err := skipValue(array, i, maxScanDepth)
			if err != nil || !yield(array[i:end:end]) {
				return
			}
			if i = skipSpace(array, end); i >= len(array) || array[i] != ',' {
				return
			}
		}
	}
}

// find returns the last member called key, as encoding/json would.
func find(object []byte, key string) (found member, ok bool) {
	for m := range members(object) {
		if keyIs(object[m.keyStart:m.keyEnd], key) {
			found, ok = m, true
		}
	}
	return found, ok
}

// Field returns the value at the path, or nil when there is none. Keys must be
// ASCII.
func Field(object json.RawMessage, path ...string) json.RawMessage {
	for _, key := range path {
		m, ok := find(object, key)
		if !ok {
			return nil
		}
		object = object[m.start:m.end:m.end]
	}
	return object
}

// FieldString returns the string at the path, "" when there is none.
func FieldString(object json.RawMessage, path ...string) string {
	s, _ := text(Field(object, path...))
	return s
}

// SetField returns the object with the value at the path replaced or added;
// objects missing on the way are made, and so is the outermost one when object
// is empty. The input is not changed.
func SetField(object, value json.RawMessage, path ...string) json.RawMessage {
	if len(path) == 0 {
		return value
	}
	if m, ok := find(object, path[0]); ok {
		inner := SetField(object[m.start:m.end], value, path[1:]...)
		out := make([]byte, 0, len(object)-(m.end-m.start)+len(inner))
		out = append(out, object[:m.start]...)
		out = append(out, inner...)
		return append(out, object[m.end:]...)
	}
	inner := SetField(nil, value, path[1:]...)
	open := skipSpace(object, 0)
	if open >= len(object) || object[open] != '{' {
		out := make([]byte, 0, len(path[0])+len(inner)+5)
		out = append(out, '{')
		out = appendQuoted(out, path[0])
		out = append(out, ':')
		out = append(out, inner...)
		return append(out, '}')
	}
	out := make([]byte, 0, len(object)+len(path[0])+len(inner)+4)
	out = append(out, object[:open+1]...)
	out = appendQuoted(out, path[0])
	out = append(out, ':')
	out = append(out, inner...)
	if next := skipSpace(object, open+1); next < len(object) && object[next] != '}' {
		out = append(out, ',')
	}
	return append(out, object[open+1:]...)
}

// DeleteField returns the object without the member at the path, or the very
// same bytes when there is none. The input is not changed.
func DeleteField(object json.RawMessage, path ...string) json.RawMessage {
	if len(path) == 0 {
		return object
	}
	if len(path) > 1 {
		m, ok := find(object, path[0])
		if !ok {
			return object
		}
		inner := object[m.start:m.end]
		changed := DeleteField(inner, path[1:]...)
		if len(changed) == len(inner) {
			return object
		}
		out := make([]byte, 0, len(object))
		out = append(out, object[:m.start]...)
		out = append(out, changed...)
		return append(out, object[m.end:]...)
	}
	// Keep the other members, each with the bytes from its key to its value:
	// a repeated key goes as a whole.
	var out []byte
	at := 0
	for m := range members(object) {
		if !keyIs(object[m.keyStart:m.keyEnd], path[0]) {
			continue
		}
		if out == nil {
			out = make([]byte, 0, len(object))
		}
		after := skipSpace(object, m.end)
		if after < len(object) && object[after] == ',' { // take the comma behind it
			out = append(out, object[at:m.keyStart]...)
			at = skipSpace(object, after+1)
			continue
		}
		out = append(out, object[at:m.keyStart]...) // the last: take the comma before it
		for len(out) > 0 && (out[len(out)-1] == ',' || isSpace(out[len(out)-1])) {
			out = out[:len(out)-1]
		}
		at = m.end
	}
	if out == nil {
		return object
	}
	return append(out, object[at:]...)
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }
