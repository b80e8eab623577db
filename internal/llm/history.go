package llm

import (
	"strings"
)

// Prompt returns the complete system prompt of a model with native tools: the
// base and the servers' guidance.
func (r Request) Prompt() string {
	system, guidance := strings.TrimSpace(r.System), strings.TrimSpace(r.Guidance)
	if system == "" || guidance == "" {
		return system + guidance
	}
	return system + "\n\n" + guidance
}

// History returns the messages in an order that every provider accepts. Each
// call is followed by its result in the next message, in the order of the
// calls; a call without a result, for example after a crash, gets a note as its
// result. Results without a call and messages without content are omitted.
func (r Request) History() []Message {
	var out []Message
	var open []*ToolCall // calls of the last message without a result
	answered := map[string]*ToolResult{}
	flush := func() {
		if len(open) == 0 {
			return
		}
		m := Message{Role: Tool}
		for _, c := range open {
			res := answered[c.ID]
			if res == nil {
				res = TextResult(c, "no result: the call was interrupted", true)
			}
			m.Parts = append(m.Parts, Part{Result: res})
		}
		out = append(out, m)
		open = nil
		clear(answered)
	}
	for _, m := range r.Messages {
		if m.Role == Tool {
			for _, res := range m.Results() {
				for _, c := range open {
					if c.ID == res.CallID {
						answered[res.CallID] = res
					}
				}
			}
			continue
		}
		flush()
		if m.empty() {
			continue
		}
		out = append(out, m)
		if m.Role == Assistant {
			open = m.Calls()
		}
	}
	flush()
	return out
}

// empty reports whether the message has no content in its neutral form.
// Reasoning does not count, because it is only sent in native form.
func (m Message) empty() bool {
	for _, p := range m.Parts {
		if p.Text != "" || p.Image != nil || p.File != nil || p.Call != nil {
			return false
		}
	}
	return true
}

// NativeFor returns the native form of a turn created by by, or nil.
func (m Message) NativeFor(by string) []byte {
	if m.Native == nil || m.Native.By != by || len(m.Native.Data) == 0 {
		return nil
	}
	return m.Native.Data
}
