package rawjson

import (
	"bytes"
	"encoding/json"
)

// Marshal is [json.Marshal] without HTML escapes, which make text longer for
// models and harder to read for people.
func Marshal(v any) (json.RawMessage, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// MarshalOrNull is Marshal for values that cannot fail; it returns null for
// others.
func MarshalOrNull(v any) json.RawMessage {
	raw, err := Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return raw
}

// AppendComma appends the comma before another member or element, unless dst
// ends with the bracket that opens the object or array.
func AppendComma(dst []byte) []byte {
	if n := len(dst); n > 0 && dst[n-1] != '{' && dst[n-1] != '[' {
		return append(dst, ',')
	}
	return dst
}
