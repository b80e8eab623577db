package schema

import (
	"bytes"
	"encoding/json"
	"io"

	"junctor/internal/rawjson"
)

// decode returns a JSON value as the evaluator takes it, with numbers as they
// were written. Values of a few levels, which almost all arguments are, are read
// from the bytes; the others, and all errors, are encoding/json's.
func decode(raw []byte) (any, error) {
	if rawjson.Check(raw, maxPlainDepth) == nil {
		if v, ok := plain(bytes.TrimSpace(raw)); ok {
			return v, nil
		}
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, errMoreValues
	}
	return v, nil
}

// maxPlainDepth is how deep a value may be nested to be read by plain, which
// scans a value once for each level that it is in.
const maxPlainDepth = 8

// plain returns a valid JSON value without white space before it.
func plain(raw []byte) (v any, ok bool) {
	switch raw[0] {
	case '"':
		return rawjson.Unquote(raw)
	case '{':
		m := map[string]any{}
		for key, value := range rawjson.Members(raw) {
			if m[key], ok = plain(value); !ok {
				return nil, false
			}
		}
		return m, true
	case '[':
		list := []any{}
		for value := range rawjson.Elements(raw) {
			if v, ok = plain(value); !ok {
				return nil, false
			}
			list = append(list, v)
		}
		return list, true
	case 't', 'f':
		return raw[0] == 't', true
	case 'n':
		return nil, true
	}
	return json.Number(raw), true
}
