package chat

import (
	"encoding/json"
	"strings"
	"testing"

	"junctor/internal/chat/wire"
	"junctor/internal/llm/llmtest"
)

// TestCallsWithOneIDAreKeptApart checks that each call has its own approval and
// result even if all calls of a reply have the same id, as with some services.
func TestCallsWithOneIDAreKeptApart(t *testing.T) {
	twice := func(name, first, second string) llmtest.Reply {
		return llmtest.Reply{Calls: []llmtest.Call{{Tool: name, ID: "0", Args: json.RawMessage(first)}, {Tool: name, ID: "0", Args: json.RawMessage(second)}}}
	}
	each(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "add", Results: llmtest.N(0)}, Reply: twice("calc:add", `{"a":200,"b":22}`, `{"a":300,"b":33}`)},
		{When: llmtest.When{User: "delete", Results: llmtest.N(0)}, Reply: twice("ask:delete", `{"path":"/notes"}`, `{"path":"/keys"}`)},
		{When: llmtest.When{Results: llmtest.N(2)}, Reply: llmtest.Reply{Text: "{{results}}"}},
	}}, func(t *testing.T, r *fixture) {
		c := r.connect("")
		c.sendText("add")
		if text, _ := c.reply(); !strings.Contains(text, "222") || !strings.Contains(text, "333") {
			t.Errorf("the model is given the results %q, want 222 and 333", text)
		}
		c.sendText("delete")
		allowed, denied := c.kind(wire.TypeApproval), c.kind(wire.TypeApproval)
		if allowed.Payload.CallID == denied.Payload.CallID {
			t.Fatalf("two approvals of one call: %s, %s", allowed.Raw, denied.Raw)
		}
		if strings.Contains(string(allowed.Payload.Arguments), "/keys") {
			allowed, denied = denied, allowed
		}
		c.send("deny", map[string]any{"callId": denied.Payload.CallID, "reason": "not the keys"})
		c.send("approve", map[string]any{"callId": allowed.Payload.CallID})
		if text, _ := c.reply(); !strings.Contains(text, "done delete") || !strings.Contains(text, "not the keys") || r.ups.count("ask:delete") != 1 {
			t.Errorf("the model is told %q after %d calls", text, r.ups.count("ask:delete"))
		}
		failed := map[string]bool{}
		for _, m := range c.all {
			if m.Type == wire.TypeStatus && m.Payload.Tool == "ask:delete" && m.Payload.State == "complete" {
				failed[m.Payload.Data.CallID] = m.Payload.Data.IsError
			}
		}
		if len(failed) != 2 || failed[allowed.Payload.CallID] || !failed[denied.Payload.CallID] {
			t.Errorf("failed calls %v, allowed %s, denied %s", failed, allowed.Payload.CallID, denied.Payload.CallID)
		}
	})
}

// TestCallCutOffBeforeArgumentsIsNotMade checks that a tool with optional
// arguments does not run without them because the reply was truncated before
// the arguments.
func TestCallCutOffBeforeArgumentsIsNotMade(t *testing.T) {
	each(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "cut", Results: llmtest.N(0)}, Times: 1, Reply: llmtest.Reply{Calls: []llmtest.Call{{Tool: "odd:boom", Raw: " "}}, Stop: "length"}},
		{When: llmtest.When{User: "cut"}, Reply: llmtest.Reply{Text: "told: {{results}}"}},
	}}, func(t *testing.T, r *fixture) {
		c := r.connect("")
		c.sendText("cut")
		text, stop := c.reply()
		if !strings.HasPrefix(text, "told:") || stop != stopEnd || r.ups.count("odd:boom") > 0 {
			t.Errorf("%q, %s after %d calls", text, stop, r.ups.count("odd:boom"))
		}
		// Gemini never sends partial calls.
		if r.model.Last().API != llmtest.Gemini && !strings.Contains(text, "INVALID_ARGUMENTS") {
			t.Errorf("the model was told %q", text)
		}
	})
}
