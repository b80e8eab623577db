package rawjson

import (
	"bytes"
	"encoding/json"
	"iter"
)

// Member is the position of one member of an object: of its key and its value,
// without surrounding white space.
type Member struct{ KeyStart, KeyEnd, Start, End int }

// Name returns the unquoted name of a member of object. It allocates only for
// names written with escapes.
func (m Member) Name(object []byte) []byte {
	quoted := object[m.KeyStart:m.KeyEnd]
	if bytes.IndexByte(quoted, '\\') >= 0 {
		name, _ := Unquote(quoted)
		return []byte(name)
	}
	return quoted[1 : len(quoted)-1]
}

// Is reports whether m is the member of object called key.
func (m Member) Is(object []byte, key string) bool { return keyIs(object[m.KeyStart:m.KeyEnd], key) }

// Value returns the value of a member of object.
func (m Member) Value(object []byte) json.RawMessage { return object[m.Start:m.End:m.End] }

// Positions iterates over the members of the object in b. It stops at the first
// syntax error.
func Positions(b []byte) iter.Seq[Member] {
	return func(yield func(Member) bool) {
		i := SkipSpace(b, 0)
		if i >= len(b) || b[i] != '{' {
			return
		}
		for i = SkipSpace(b, i+1); i < len(b) && b[i] == '"'; i = SkipSpace(b, i+1) {
			m := Member{KeyStart: i}
			var err error
			if m.KeyEnd, err = skipString(b, i); err != nil {
				return
			}
			if i = SkipSpace(b, m.KeyEnd); i >= len(b) || b[i] != ':' {
				return
			}
			m.Start = SkipSpace(b, i+1)
			if m.End, err = SkipValue(b, m.Start, MaxDepth); err != nil {
				return
			}
			if !yield(m) {
				return
			}
			if i = SkipSpace(b, m.End); i >= len(b) || b[i] != ',' {
				return
			}
		}
	}
}

// Members iterates over the members of a JSON object, in order.
func Members(object json.RawMessage) iter.Seq2[string, json.RawMessage] {
	return func(yield func(string, json.RawMessage) bool) {
		for m := range Positions(object) {
			key, ok := Unquote(object[m.KeyStart:m.KeyEnd])
			if ok && !yield(key, object[m.Start:m.End:m.End]) {
				return
			}
		}
	}
}

// MemberNames iterates over the names of the members of a JSON object, in
// order. It allocates only for names written with escapes.
func MemberNames(object json.RawMessage) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for m := range Positions(object) {
			if !yield(m.Name(object)) {
				return
			}
		}
	}
}

// Elements iterates over the elements of a JSON array, in order.
func Elements(array json.RawMessage) iter.Seq[json.RawMessage] {
	return func(yield func(json.RawMessage) bool) {
		i := SkipSpace(array, 0)
		if i >= len(array) || array[i] != '[' {
			return
		}
		for i = SkipSpace(array, i+1); i < len(array) && array[i] != ']'; i = SkipSpace(array, i+1) {
			end, err := SkipValue(array, i, MaxDepth)
			if err != nil || !yield(array[i:end:end]) {
				return
			}
			if i = SkipSpace(array, end); i >= len(array) || array[i] != ',' {
				return
			}
		}
	}
}

// Find returns the last member called key, as encoding/json would.
func Find(object []byte, key string) (found Member, ok bool) {
	for m := range Positions(object) {
		if m.Is(object, key) {
			found, ok = m, true
		}
	}
	return found, ok
}

// Field returns the value at the path, or nil if there is none. Keys must be
// ASCII.
func Field(object json.RawMessage, path ...string) json.RawMessage {
	for _, key := range path {
		m, ok := Find(object, key)
		if !ok {
			return nil
		}
		object = object[m.Start:m.End:m.End]
	}
	return object
}

// FieldString returns the string at the path, or "" if there is none.
func FieldString(object json.RawMessage, path ...string) string {
	s, _ := Unquote(Field(object, path...))
	return s
}

// SetField returns the object with the value at the path replaced or added.
// Missing objects along the path are created, including the outermost one if
// object is empty. The input is not modified.
func SetField(object, value json.RawMessage, path ...string) json.RawMessage {
	if len(path) == 0 {
		return value
	}
	if m, ok := Find(object, path[0]); ok {
		inner := SetField(object[m.Start:m.End], value, path[1:]...)
		out := make([]byte, 0, len(object)-(m.End-m.Start)+len(inner))
		out = append(out, object[:m.Start]...)
		out = append(out, inner...)
		return append(out, object[m.End:]...)
	}
	inner := SetField(nil, value, path[1:]...)
	open := SkipSpace(object, 0)
	if open >= len(object) || object[open] != '{' {
		out := make([]byte, 0, len(path[0])+len(inner)+5)
		out = append(out, '{')
		out = AppendQuoted(out, path[0])
		out = append(out, ':')
		out = append(out, inner...)
		return append(out, '}')
	}
	out := make([]byte, 0, len(object)+len(path[0])+len(inner)+4)
	out = append(out, object[:open+1]...)
	out = AppendQuoted(out, path[0])
	out = append(out, ':')
	out = append(out, inner...)
	if next := SkipSpace(object, open+1); next < len(object) && object[next] != '}' {
		out = append(out, ',')
	}
	return append(out, object[open+1:]...)
}

// DeleteField returns the object without the member at the path, or object
// itself if there is no such member. The input is not modified.
func DeleteField(object json.RawMessage, path ...string) json.RawMessage {
	if len(path) == 0 {
		return object
	}
	if len(path) > 1 {
		m, ok := Find(object, path[0])
		if !ok {
			return object
		}
		inner := object[m.Start:m.End]
		changed := DeleteField(inner, path[1:]...)
		if len(changed) == len(inner) {
			return object
		}
		out := make([]byte, 0, len(object))
		out = append(out, object[:m.Start]...)
		out = append(out, changed...)
		return append(out, object[m.End:]...)
	}
	// Copy the other members byte for byte. All occurrences of a repeated key
	// are removed.
	var out []byte
	at := 0
	for m := range Positions(object) {
		if !m.Is(object, path[0]) {
			continue
		}
		if out == nil {
			out = make([]byte, 0, len(object))
		}
		after := SkipSpace(object, m.End)
		if after < len(object) && object[after] == ',' { // remove the comma after it
			out = append(out, object[at:m.KeyStart]...)
			at = SkipSpace(object, after+1)
			continue
		}
		out = append(out, object[at:m.KeyStart]...) // the last member: remove the comma before it
		for len(out) > 0 && (out[len(out)-1] == ',' || isSpace(out[len(out)-1])) {
			out = out[:len(out)-1]
		}
		at = m.End
	}
	if out == nil {
		return object
	}
	return append(out, object[at:]...)
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\r' || c == '\t' }

// IsObject reports whether raw begins like a JSON object.
func IsObject(raw json.RawMessage) bool {
	i := SkipSpace(raw, 0)
	return i < len(raw) && raw[i] == '{'
}

// IsNull reports whether a JSON value without white space around it is null.
func IsNull(raw []byte) bool { return len(raw) == 4 && raw[0] == 'n' }
