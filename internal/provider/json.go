package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxJSONDepth bounds the nesting of parsed JSON, so that hostile schemas
// cannot exhaust the stack. Real schemas are far below it.
const maxJSONDepth = 256

// object is a JSON object that keeps the order of its keys, because models fill
// parameters in the order in which they read them, and because output must be
// deterministic.
type object struct {
	keys []string
	vals map[string]any
}

func newObject() *object { return &object{vals: map[string]any{}} }

func (o *object) get(key string) (any, bool) {
	if o == nil {
		return nil, false
	}
	v, ok := o.vals[key]
	return v, ok
}

func (o *object) set(key string, v any) {
	if _, ok := o.vals[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.vals[key] = v
}

// setFirst sets a new key before all others.
func (o *object) setFirst(key string, v any) {
	o.keys = append([]string{key}, o.keys...)
	o.vals[key] = v
}

func (o *object) text(key string) string {
	v, _ := o.get(key)
	s, _ := v.(string)
	return s
}

// parseJSON parses a JSON value into *object, []any, string, json.Number, bool
// or nil. Numbers keep their digits.
func parseJSON(data []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	v, err := readValue(dec, 0)
	if err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more than one JSON value")
	}
	return v, nil
}

func readValue(dec *json.Decoder, depth int) (any, error) {
	if depth > maxJSONDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxJSONDepth)
	}
	t, err := dec.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		o := newObject()
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				return nil, err
			}
			v, err := readValue(dec, depth+1)
			if err != nil {
				return nil, err
			}
			o.set(key.(string), v)
		}
		_, err := dec.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			v, err := readValue(dec, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := dec.Token()
		return list, err
	}
	return t, nil
}

// appendJSON appends v, which consists of the types that parseJSON returns, of
// ints, and of json.RawMessage.
func appendJSON(dst []byte, v any) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		if v {
			return append(dst, "true"...)
		}
		return append(dst, "false"...)
	case string:
		return appendString(dst, v)
	case json.Number:
		return append(dst, v...)
	case json.RawMessage:
		return append(dst, v...)
	case int:
		return fmt.Appendf(dst, "%d", v)
	case []string:
		dst = append(dst, '[')
		for i, s := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendString(dst, s)
		}
		return append(dst, ']')
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, e)
		}
		return append(dst, ']')
	case *object:
		dst = append(dst, '{')
		for i, k := range v.keys {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendString(dst, k)
			dst = append(dst, ':')
			dst = appendJSON(dst, v.vals[k])
		}
		return append(dst, '}')
	}
	panic(fmt.Sprintf("provider: %T is not JSON", v)) // a programmer's error: no input leads here
}

const hexDigits = "0123456789abcdef"

// appendString quotes s without the HTML escapes of encoding/json, which cost
// tokens.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, '\\', 'n')
		case r == '\r':
			dst = append(dst, '\\', 'r')
		case r == '\t':
			dst = append(dst, '\\', 't')
		case r < ' ' || r == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[r>>4], hexDigits[r&15])
		default:
			dst = utf8.AppendRune(dst, r) // an invalid byte has become U+FFFD
		}
	}
	return append(dst, '"')
}

// encode returns v as JSON.
func encode(v any) json.RawMessage { return appendJSON(nil, v) }

// equalJSON compares two JSON values; the order of keys and the notation of
// numbers do not matter.
func equalJSON(a, b any) bool {
	switch a := a.(type) {
	case json.Number:
		b, ok := b.(json.Number)
		return ok && equalNumbers(a, b)
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equalJSON(a[i], b[i]) {
				return false
			}
		}
		return true
	case []string: // only in generated values
		b, ok := b.([]string)
		return ok && slices.Equal(a, b)
	case *object:
		b, ok := b.(*object)
		if !ok || len(a.keys) != len(b.keys) {
			return false
		}
		for _, k := range a.keys {
			if other, ok := b.vals[k]; !ok || !equalJSON(a.vals[k], other) {
				return false
			}
		}
		return true
	}
	switch b.(type) {
	case []any, []string, *object:
		return false
	}
	return a == b
}

func equalNumbers(a, b json.Number) bool {
	if a == b {
		return true
	}
	if integerText(a) && integerText(b) {
		return strings.Replace(a.String(), "-0", "0", 1) == strings.Replace(b.String(), "-0", "0", 1)
	}
	x, errX := a.Float64()
	y, errY := b.Float64()
	return errX == nil && errY == nil && x == y
}

// integerText reports whether a number is written without fraction and
// exponent.
func integerText(n json.Number) bool { return !strings.ContainsAny(n.String(), ".eE") }
