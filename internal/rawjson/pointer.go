package rawjson

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
)

// Pointer returns the value at a JSON pointer (RFC 6901), which may be
// percent-encoded as in the fragment of a URI, or nil if there is none.
func Pointer(value json.RawMessage, pointer string) json.RawMessage {
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if token == "" || value == nil {
			continue
		}
		name := UnescapePointer(token)
		if IsObject(value) {
			value = Field(value, name)
			continue
		}
		n, err := strconv.Atoi(name)
		list := value
		value = nil
		for e := range Elements(list) {
			if n--; n == -1 && err == nil {
				value = e
				break
			}
		}
	}
	return value
}

var (
	pointerEscapes   = strings.NewReplacer("~", "~0", "/", "~1")
	pointerUnescapes = strings.NewReplacer("~1", "/", "~0", "~")
)

// EscapePointer escapes a name as a token of a JSON pointer.
func EscapePointer(name string) string { return pointerEscapes.Replace(name) }

// UnescapePointer returns the name for a token of a JSON pointer.
func UnescapePointer(token string) string {
	if plain, err := url.PathUnescape(token); err == nil {
		token = plain
	}
	return pointerUnescapes.Replace(token)
}
