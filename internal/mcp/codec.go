package mcp

import (
	"bytes"
	"fmt"
	"strconv"

	"junctor/internal/rawjson"
)

// Limits bound the input that is accepted. Zero fields mean their defaults.
type Limits struct {
	MaxBytes int // of one message; 16 MiB
	MaxDepth int // of nesting; 256
	MaxBatch int // messages in one batch; 256

	// Repair accepts flaws for which a server should not lose its connection:
	// bytes that are not UTF-8 are replaced by U+FFFD, and a message nested
	// deeper than MaxDepth is decoded. Both are marked in the Message. Without
	// Repair such messages are refused.
	Repair bool
}

// The defaults of [Limits].
const (
	DefaultMaxBytes = 16 << 20
	DefaultMaxDepth = 256
	defaultMaxBatch = 256
)

// WithDefaults returns the limits with their defaults in place of zeros.
func (l Limits) WithDefaults() Limits {
	if l.MaxBytes <= 0 {
		l.MaxBytes = DefaultMaxBytes
	}
	if l.MaxDepth <= 0 {
		l.MaxDepth = DefaultMaxDepth
	}
	if l.MaxBatch <= 0 {
		l.MaxBatch = defaultMaxBatch
	}
	return l
}

// DecodeError reports why bytes are not a message.
type DecodeError struct {
	Code     int    // CodeParseError or CodeInvalidRequest
	ID       ID     // of the broken message, if it could be read
	Msg      string // what is wrong, safe to send back
	TooLarge bool   // the message is over the size limit

	answers ID           // the call that it should have answered, if it looks like a response
	drop    DroppedInput // the input that a Stream could not decode
}

// ResponseID returns the id of the call that the broken message would have
// answered, or "" if it is not a response.
func (e *DecodeError) ResponseID() ID {
	if e.TooLarge {
		return e.ID
	}
	return e.answers
}

func (e *DecodeError) Error() string { return e.Msg }

// Response returns the response that JSON-RPC requires for the broken message.
func (e *DecodeError) Response() *Message {
	return &Message{ID: e.ID, Error: &Error{Code: e.Code, Message: e.Msg}}
}

// Decode decodes one message. The message refers to data, which must not be
// modified afterwards. Every error is a *DecodeError.
func Decode(data []byte, limits Limits) (Message, error) {
	limits = limits.WithDefaults()
	if err := checkSize(data, limits); err != nil {
		return Message{}, err
	}
	if at := rawjson.InvalidUTF8(data); at >= 0 {
		return decodeRepaired(data, at, limits)
	}
	start := rawjson.SkipSpace(data, 0)
	m, end, err := decodeObject(data, start, limits)
	if err != nil {
		return Message{}, err
	}
	if end = rawjson.SkipSpace(data, end); end != len(data) {
		return Message{}, &DecodeError{Code: CodeParseError, ID: m.ID, Msg: fmt.Sprintf("parse error: more data after the message, at byte %d", end)}
	}
	return m, nil
}

// decodeRepaired decodes a message that is not valid UTF-8 at the given index.
// It marks the message as repaired, or without Repair returns an error with its
// id.
func decodeRepaired(data []byte, at int, limits Limits) (Message, error) {
	clean := rawjson.RepairUTF8(data)
	limits.MaxBytes = len(clean)
	m, err := Decode(clean, limits)
	if err != nil {
		return Message{}, err
	}
	if !limits.Repair {
		return Message{}, &DecodeError{Code: CodeParseError, ID: m.ID, Msg: fmt.Sprintf("parse error: not valid UTF-8, at byte %d", at)}
	}
	m.Repaired = true
	return m, nil
}

// DecodeEach decodes one message or a batch of them (which 2025-03-26 allowed),
// and calls f with each message or the error of decoding it. It reports whether
// data was a batch.
func DecodeEach(data []byte, limits Limits, f func(Message, error)) (batch bool) {
	limits = limits.WithDefaults()
	i := rawjson.SkipSpace(data, 0)
	if i >= len(data) || data[i] != '[' || len(data) > limits.MaxBytes {
		f(Decode(data, limits))
		return false
	}
	repaired := false
	if at := rawjson.InvalidUTF8(data); at >= 0 {
		if !limits.Repair {
			f(Message{}, parseError(at, rawjson.ErrUTF8))
			return true
		}
		repaired, data = true, rawjson.RepairUTF8(data)
	}
	end, err := rawjson.SkipValue(data, i, rawjson.MaxDepth)
	if err == nil && rawjson.SkipSpace(data, end) != len(data) {
		err = rawjson.ErrSyntax
	}
	if err != nil {
		f(Message{}, parseError(end, err))
		return true
	}
	i = rawjson.SkipSpace(data, i+1)
	if data[i] == ']' {
		f(Message{}, &DecodeError{Code: CodeInvalidRequest, Msg: "invalid request: an empty batch"})
		return true
	}
	for n := 0; ; n++ {
		if n == limits.MaxBatch {
			f(Message{}, &DecodeError{Code: CodeInvalidRequest, Msg: fmt.Sprintf("invalid request: more than %d messages in a batch", limits.MaxBatch)})
			return true
		}
		next, _ := rawjson.SkipValue(data, i, rawjson.MaxDepth) // checked above
		m, _, err := decodeObject(data[:next], i, limits)
		m.Repaired = repaired && err == nil
		f(m, err)
		i = rawjson.SkipSpace(data, next)
		if data[i] == ']' {
			return true
		}
		i = rawjson.SkipSpace(data, i+1)
	}
}

func checkSize(data []byte, limits Limits) error {
	if len(data) > limits.MaxBytes {
		return &DecodeError{Code: CodeInvalidRequest, ID: peekID(data[:min(len(data), peekBytes)]), TooLarge: true,
			Msg: fmt.Sprintf("message of %d bytes is over the limit of %d", len(data), limits.MaxBytes)}
	}
	return nil
}

func parseError(at int, err error) *DecodeError {
	return &DecodeError{Code: CodeParseError, Msg: fmt.Sprintf("parse error: %v, at byte %d", err, at)}
}

// envelope contains the members of a message before they are validated.
type envelope struct {
	version, id, method, params, result, err []byte
}

// decodeObject decodes the message that begins at i and returns where it ends.
func decodeObject(b []byte, i int, limits Limits) (Message, int, error) {
	if i >= len(b) {
		return Message{}, i, &DecodeError{Code: CodeParseError, Msg: "parse error: empty message"}
	}
	if b[i] != '{' {
		if end, err := rawjson.SkipValue(b, i, rawjson.MaxDepth); err != nil {
			return Message{}, end, parseError(end, err)
		}
		return Message{}, i, &DecodeError{Code: CodeInvalidRequest, Msg: "invalid request: a message is a JSON object"}
	}
	var e envelope
	end, err := rawjson.WalkObject(b, i, limits.MaxDepth, e.take)
	deep := err == rawjson.ErrDepth
	if deep {
		e = envelope{}
		end, err = rawjson.WalkObject(b, i, rawjson.MaxDepth, e.take)
	}
	if err != nil {
		broken := parseError(end, err)
		broken.answers = peekResponseID(b[i:])
		if err == rawjson.ErrDepth { // valid JSON as far as it was read, so its id can be used
			broken.ID = peekID(b[i:min(len(b), i+peekBytes)])
		}
		return Message{}, end, broken
	}
	m, err := e.message()
	if deep && err == nil {
		if !limits.Repair {
			return Message{}, end, &DecodeError{Code: CodeInvalidRequest, ID: m.ID, Msg: DepthMessage(limits.MaxDepth)}
		}
		m.Deep = true
	}
	return m, end, err
}

// DepthMessage returns the error message for a message nested deeper than the
// limit.
func DepthMessage(limit int) string {
	return fmt.Sprintf("invalid request: JSON nested deeper than %d levels", limit)
}

// take stores a member of the envelope. If a member is repeated, the last one
// counts, as in encoding/json.
func (e *envelope) take(key, value []byte) {
	if field := e.field(key); field != nil {
		*field = value
	}
}

func (e *envelope) field(key []byte) *[]byte {
	if bytes.IndexByte(key, '\\') >= 0 {
		name, _ := rawjson.Unquote(key)
		key = rawjson.AppendQuoted(nil, name)
	}
	switch string(key[1 : len(key)-1]) {
	case "jsonrpc":
		return &e.version
	case "id":
		return &e.id
	case "method":
		return &e.method
	case "params":
		return &e.params
	case "result":
		return &e.result
	case "error":
		return &e.err
	}
	return nil
}

func (e *envelope) message() (Message, error) {
	var m Message
	invalid := func(text string) (Message, error) {
		broken := &DecodeError{Code: CodeInvalidRequest, ID: m.ID, Msg: "invalid request: " + text}
		if e.version != nil && e.method == nil {
			broken.answers = m.ID
		}
		return Message{}, broken
	}
	if e.id != nil && !rawjson.IsNull(e.id) {
		id, ok := CanonicalID(e.id)
		if !ok {
			return invalid("id must be a string or a number")
		}
		m.ID = id
	}
	switch {
	case e.version == nil:
		return invalid(`"jsonrpc" is missing; it must be "2.0"`)
	case string(e.version) != `"2.0"`:
		return invalid(`"jsonrpc" must be "2.0"`)
	}
	if e.method != nil {
		method, ok := methodText(e.method)
		switch {
		case !ok || method == "":
			return invalid("method must be a string")
		case e.id != nil && m.ID == "":
			return invalid("id must not be null")
		case e.result != nil || e.err != nil:
			return invalid("a message has either a method or a result")
		}
		if e.params != nil && !rawjson.IsNull(e.params) {
			if c := e.params[0]; c != '{' && c != '[' {
				return invalid("params must be an object")
			}
			m.Params = e.params
		}
		m.Method = method
		return m, nil
	}
	if rawjson.IsNull(e.err) {
		e.err = nil // some servers write both members, one of them null
	}
	if e.err != nil && rawjson.IsNull(e.result) {
		e.result = nil
	}
	switch {
	case e.result == nil && e.err == nil:
		return invalid("neither method nor result nor error")
	case e.result != nil && e.err != nil:
		return invalid("both result and error")
	case e.result != nil && m.ID == "":
		return invalid("a result without an id")
	}
	m.Result = e.result
	if e.err != nil {
		m.Error = decodeRPCError(e.err)
	}
	return m, nil
}

// methodText is rawjson.Unquote for methods. It does not allocate for common
// ones.
func methodText(quoted []byte) (string, bool) {
	switch string(quoted) {
	case `"tools/call"`:
		return MethodToolsCall, true
	case `"tools/list"`:
		return MethodToolsList, true
	case `"notifications/progress"`:
		return MethodProgress, true
	case `"notifications/message"`:
		return MethodLogMessage, true
	}
	return rawjson.Unquote(quoted)
}

// decodeRPCError decodes an error object. It tolerates the mistakes of servers,
// because an error must reach the caller even if it is malformed.
func decodeRPCError(raw []byte) *Error {
	e := &Error{Code: CodeInternalError}
	if raw[0] != '{' {
		if s, ok := rawjson.Unquote(raw); ok {
			e.Message = s
		} else {
			e.Message = string(raw)
		}
		return e
	}
	for key, value := range rawjson.Members(raw) {
		switch key {
		case "code":
			if n, err := strconv.Atoi(string(value)); err == nil {
				e.Code = n
			} else if f, err := strconv.ParseFloat(string(value), 64); err == nil && f == float64(int32(f)) {
				e.Code = int(f)
			}
		case "message":
			if s, ok := rawjson.Unquote(value); ok {
				e.Message = s
			} else {
				e.Message = string(value)
			}
		case "data":
			e.Data = value
		}
	}
	return e
}

// CanonicalID makes ids comparable: it removes unnecessary escapes from a
// string and returns a number unchanged.
func CanonicalID(raw []byte) (ID, bool) {
	switch c := raw[0]; {
	case c == '"':
		if bytes.IndexByte(raw, '\\') < 0 {
			return ID(raw), true
		}
		s, ok := rawjson.Unquote(raw)
		if !ok {
			return "", false
		}
		return ID(rawjson.AppendQuoted(nil, s)), true
	case c == '-' || '0' <= c && c <= '9':
		return ID(raw), true
	}
	return "", false
}
