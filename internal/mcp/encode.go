package mcp

import (
	"bytes"
	"encoding/json"
	"strconv"

	"junctor/internal/rawjson"
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
		dst = rawjson.AppendQuoted(dst, m.Method)
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
		dst = rawjson.AppendQuoted(dst, m.Error.Message)
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
	dst, rest := m.appendLead(dst)
	return append(appendRaw(dst, rest), '}')
}

// appendLead appends the beginning of the result up to and including
// ResultPrefix, and returns the rest of the result.
func (m *Message) appendLead(dst []byte) (lead, rest []byte) {
	if len(m.ResultPrefix) == 0 {
		return dst, m.Result
	}
	open := rawjson.SkipSpace(m.Result, 0) + 1
	dst = append(appendRaw(dst, m.Result[:open]), m.ResultPrefix...)
	rest = m.Result[open:]
	if next := rawjson.SkipSpace(rest, 0); next < len(rest) && rest[next] == '}' { // nothing follows the last comma
		dst = dst[:len(dst)-1]
	}
	return dst, rest
}

// MergePrefix moves ResultPrefix into Result.
func (m *Message) MergePrefix() {
	if len(m.ResultPrefix) > 0 {
		lead, rest := m.appendLead(make([]byte, 0, len(m.ResultPrefix)+len(m.Result)))
		m.Result, m.ResultPrefix = append(lead, rest...), nil
	}
}

// largeResult is the size from which a result is written without being copied.
// Below it a copy costs less than another write.
const largeResult = 16 << 10

// Encoded is an encoded message: usually only Head, and for a large result
// Head, the bytes of the result as Body, and Tail.
type Encoded struct{ Head, Body, Tail []byte }

// Encode encodes m. It does not copy a large result.
func Encode(m *Message) Encoded {
	if m.Method != "" || m.Error != nil || len(m.Result) < largeResult {
		return Encoded{Head: AppendMessage(make([]byte, 0, len(m.Params)+len(m.Result)+len(m.ResultPrefix)+128), m)}
	}
	head := append(make([]byte, 0, len(m.ID)+len(m.ResultPrefix)+64), `{"jsonrpc":"2.0"`...)
	if m.ID != "" {
		head = append(append(head, `,"id":`...), m.ID...)
	}
	head, rest := m.appendLead(append(head, `,"result":`...))
	return Encoded{Head: head, Body: rest, Tail: []byte{'}'}}
}

// Size returns the number of bytes of the message.
func (e Encoded) Size() int { return len(e.Head) + len(e.Body) + len(e.Tail) }

// AppendTo appends the message to dst, on one line.
func (e Encoded) AppendTo(dst []byte) []byte {
	return append(appendRaw(append(dst, e.Head...), e.Body), e.Tail...)
}

// appendRaw appends JSON on one line. Raw line breaks only occur between
// tokens, because strings must escape them.
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

// NumberID returns a numeric request id.
func NumberID(n int64) ID { return ID(strconv.FormatInt(n, 10)) }
