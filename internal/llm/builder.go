package llm

import (
	"encoding/json"
	"slices"
	"strings"
)

// Builder assembles a turn from its events. All adapters use it.
type Builder struct {
	parts      []Part
	open       strings.Builder // the text or reasoning in progress
	isThinking bool
	calls      int
	size       int
	unfaithful bool
}

// Text appends to the text and returns the event.
func (b *Builder) Text(s string) Event { b.add(s, false); return Event{Text: s} }

// Reasoning appends to the reasoning and returns the event.
func (b *Builder) Reasoning(s string) Event { b.add(s, true); return Event{Reasoning: s} }

func (b *Builder) add(s string, thinking bool) {
	if thinking != b.isThinking {
		b.close()
		b.isThinking = thinking
	}
	b.open.WriteString(s)
	b.size += len(s)
}

// Call adds a call and returns the event; see [Toolset.Call] for faithful. If
// an earlier call of the turn has the same id, the call gets a new one, because
// results and approvals are matched by id.
func (b *Builder) Call(c *ToolCall, faithful bool) Event {
	b.close()
	if slices.ContainsFunc(b.parts, func(p Part) bool { return p.Call != nil && p.Call.ID == c.ID }) {
		c.ID, faithful = NewCallID(), false
	}
	b.parts = append(b.parts, Part{Call: c})
	b.calls++
	b.unfaithful = b.unfaithful || !faithful
	return Event{Call: c}
}

// Grow counts bytes that are not part of the message yet, such as arguments.
func (b *Builder) Grow(n int) { b.size += n }

// Full reports whether the reply has grown beyond [MaxReply].
func (b *Builder) Full() bool { return b.size > MaxReply }

// Calls returns the number of calls so far.
func (b *Builder) Calls() int { return b.calls }

func (b *Builder) close() {
	if b.open.Len() == 0 {
		return
	}
	if b.isThinking {
		b.parts = append(b.parts, Part{Reasoning: b.open.String()})
	} else {
		b.parts = append(b.parts, Part{Text: b.open.String()})
	}
	b.open.Reset()
}

// Message returns the message so far, without a native form.
func (b *Builder) Message() Message {
	b.close()
	return Message{Role: Assistant, Parts: b.parts}
}

// Turn returns the last event. The native form is kept only if it is equivalent
// to the neutral one. If the reply was truncated, a last call without arguments
// is marked as malformed, because its arguments may be missing.
func (b *Builder) Turn(stop Stop, detail string, usage Usage, by string, native json.RawMessage) Event {
	m := b.Message()
	if n := len(m.Parts); n > 0 && (stop == StopLength || stop == StopFilter) {
		if c := m.Parts[n-1].Call; c != nil && c.bare {
			c.Arguments, c.Malformed = json.RawMessage("{}"), bound("")
			c.Problem = "the reply was cut off before the arguments"
		}
	}
	if len(native) > 0 && !b.unfaithful {
		m.Native = &Native{By: by, Data: native}
	}
	if b.calls > 0 && (stop == StopEnd || stop == StopOther) {
		stop = StopCalls // some servers report "stop" nevertheless
	}
	return Event{Turn: &Turn{Message: m, Stop: stop, Detail: detail, Usage: usage}}
}
