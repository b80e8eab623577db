package schema

import (
	"bytes"
	"encoding/json"
	"io"

	"junctor/internal/rawjson"
)

// decode decodes a JSON value for the evaluator, with numbers as json.Number.
// Values of a few levels, like almost all arguments, are decoded by plain; all
// others, and all errors, by encoding/json.
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

// maxPlainDepth is the maximum depth of values for plain, which scans a nested
// value once for each level around it.
const maxPlainDepth = 8

// plain decodes a valid JSON value without leading white space.
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
