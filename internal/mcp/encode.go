package mcp

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// AppendMessage appends m as one line of JSON, without the newline. Params,
// Result and Error.Data must be valid JSON; line breaks between their tokens
// become spaces, so that the result fits every framing.
func AppendMessage(dst []byte, m *Message) []byte {
	dst = append(dst, `{"jsonrpc":"2.0"`...)
	if m.ID != "" {
		dst = append(dst, `,"id":`...)
		dst = append(dst, m.ID...)
	}
	if m.Method != "" {
		dst = append(dst, `,"method":`...)
		dst = appendQuoted(dst, m.Method)
		if len(m.Params) > 0 {
			dst = append(dst, `,"params":`...)
			dst = appendRaw(dst, m.Params)
		}
		return append(dst, '}')
	}
	if m.Error != nil {
		if m.ID == "" {
			dst = append(dst, `,"id":null`...)
		}
		dst = append(dst, `,"error":{"code":`...)
		dst = strconv.AppendInt(dst, int64(m.Error.Code), 10)
		dst = append(dst, `,"message":`...)
		dst = appendQuoted(dst, m.Error.Message)
		if len(m.Error.Data) > 0 {
			dst = append(dst, `,"data":`...)
			dst = appendRaw(dst, m.Error.Data)
		}
		return append(dst, "}}"...)
	}
	dst = append(dst, `,"result":`...)
	if len(m.Result) == 0 {
		return append(dst, "{}}"...)
	}
	return append(appendRaw(dst, m.Result), '}')
}

// appendRaw appends JSON on one line. A raw line break can only stand between
// tokens, because strings must escape theirs.
func appendRaw(dst []byte, raw json.RawMessage) []byte {
	start := len(dst)
	dst = append(dst, raw...)
	tail := dst[start:]
	for _, brk := range [2]byte{'\n', '\r'} {
		for rest := tail; ; {
			i := bytes.IndexByte(rest, brk)
			if i < 0 {
				break
			}
			rest[i] = ' '
			rest = rest[i+1:]
		}
	}
	return dst
}

// NumberID returns the id of a request that is told by a number.
func NumberID(n int64) ID { return ID(strconv.FormatInt(n, 10)) }

// StringID returns the id of a request that is told by a string.
func StringID(s string) ID { return ID(appendQuoted(nil, s)) }
