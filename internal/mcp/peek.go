package mcp

import (
	"bytes"

	"junctor/internal/rawjson"
)

// peekBytes is how much of the beginning and of the end of a message that is
// too large is kept, to find its id.
const peekBytes = 512

// peekID reads the id from the beginning of a truncated message. It stops at
// the first incomplete member.
func peekID(head []byte) ID {
	for m := range rawjson.Positions(head) {
		if m.Is(head, "id") && m.End < len(head) {
			id, _ := CanonicalID(m.Value(head))
			return id
		}
	}
	return ""
}

// peekTailID reads the id from the end of a message whose middle was discarded:
// some servers write the id last. It accepts only a member that is followed by
// the closing brace of the whole message, or by the version and the closing
// brace.
func peekTailID(tail []byte) ID {
	tail = bytes.TrimRight(tail, " \r\n\t")
	i := bytes.LastIndex(tail, []byte(`"id"`))
	if i < 0 {
		return ""
	}
	i = rawjson.SkipSpace(tail, i+len(`"id"`))
	if i >= len(tail) || tail[i] != ':' {
		return ""
	}
	i = rawjson.SkipSpace(tail, i+1)
	end, err := rawjson.SkipValue(tail, i, 1)
	if err != nil {
		return ""
	}
	rest := bytes.Join(bytes.Fields(tail[end:]), nil)
	if string(rest) != "}" && string(rest) != `,"jsonrpc":"2.0"}` {
		return ""
	}
	id, _ := CanonicalID(tail[i:end])
	return id
}

// peekResponseID returns the id of the call that an invalid message should have
// answered, for example a message with a NaN, which Python writes but JSON does
// not allow. A program may print unrelated JSON with an id, so only a message
// with a "jsonrpc" member and without a method counts.
func peekResponseID(data []byte) ID {
	head, tail := data[:min(len(data), peekBytes)], data[max(0, len(data)-peekBytes):]
	named := bytes.Contains(tail, []byte(`"jsonrpc"`))
	for m := range rawjson.Positions(head) {
		switch {
		case m.Is(head, "method"):
			return ""
		case m.Is(head, "jsonrpc"):
			named = true
		}
	}
	if !named {
		return ""
	}
	if id := peekID(head); id != "" {
		return id
	}
	return peekTailID(tail)
}
