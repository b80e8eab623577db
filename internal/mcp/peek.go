package mcp

import (
	"bytes"

	"junctor/internal/rawjson"
)

// peekBytes is how much of the beginning and of the end of a message that is
// too large to hold is kept, to find out whom it concerned.
const peekBytes = 512

// peekID reads the id from the beginning of a message that is cut off. It
// looks no further than the first member that is not whole.
func peekID(head []byte) ID {
	for m := range rawjson.Positions(head) {
		if m.Is(head, "id") && m.End < len(head) {
			id, _ := CanonicalID(m.Value(head))
			return id
		}
	}
	return ""
}

// peekTailID reads the id from the end of a message whose middle was thrown
// away: some servers write the id last. It takes only a member that the
// closing brace of the whole message follows directly, or with nothing but the
// version between.
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

// peekResponseID returns the call that an unreadable message was to answer: one
// with a value in it that is no JSON, say, such as the NaN that Python writes.
// A program may print JSON of its own that has an id, so only what names the
// protocol and no method counts.
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
