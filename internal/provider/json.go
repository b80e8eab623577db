package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"junctor/internal/rawjson"
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

// has reports whether the object has one of the keys.
func (o *object) has(keys ...string) bool {
	return slices.ContainsFunc(keys, func(k string) bool { _, ok := o.get(k); return ok })
}

// isKind reports whether the type of a call is kind or absent.
func (o *object) isKind(kind string) bool {
	t := o.text("type")
	return t == "" || t == kind
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
		return strconv.AppendBool(dst, v)
	case string:
		return rawjson.AppendQuoted(dst, v)
	case json.Number:
		return append(dst, v...)
	case json.RawMessage:
		return append(dst, v...)
	case int:
		return strconv.AppendInt(dst, int64(v), 10)
	case []any:
		dst = append(dst, '[')
		for _, e := range v {
			dst = rawjson.AppendComma(dst)
			dst = appendJSON(dst, e)
		}
		return append(dst, ']')
	case *object:
		dst = append(dst, '{')
		for _, k := range v.keys {
			dst = rawjson.AppendComma(dst)
			dst = append(rawjson.AppendQuoted(dst, k), ':')
			dst = appendJSON(dst, v.vals[k])
		}
		return append(dst, '}')
	}
	panic(fmt.Sprintf("provider: %T is not JSON", v)) // a programming error; no input leads here
}

// toAnySlice returns a list of strings as a JSON value.
func toAnySlice(list []string) []any {
	out := make([]any, len(list))
	for i, s := range list {
		out[i] = s
	}
	return out
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
		return ok && slices.EqualFunc(a, b, equalJSON)
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
	case []any, *object:
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
