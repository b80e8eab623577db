package chat

import (
	"slices"
	"strings"
	"testing"

	"junctor/internal/chat/wire"
	"junctor/internal/llm/llmtest"
)

// TestRegenerateAfterAFailedReply checks that a message whose reply failed can
// be answered again by its id, with its attachments. The failed reply stays on
// another branch.
func TestRegenerateAfterAFailedReply(t *testing.T) {
	t.Parallel()
	r := newFixture(t, llmtest.Script{Rules: []llmtest.Rule{
		{When: llmtest.When{User: "break"}, Times: 1, Reply: llmtest.Reply{Error: &llmtest.Failure{Status: 400, Message: "broken"}}},
	}})
	c := r.connect("")
	c.send("message", map[string]any{"text": "break", "attachments": []any{map[string]any{"name": "a.txt", "mimeType": "text/plain", "data": "eHl6enk="}}})
	if text, stop := c.reply(); stop != stopError {
		t.Fatalf("reply %q, %s", text, stop)
	}
	failed := c.history()
	c.send("regenerate", map[string]any{"messageId": failed[0].ID})
	if text, stop := c.reply(); stop != stopEnd || !strings.HasPrefix(text, "You said: ") {
		t.Errorf("reply %q, %s", text, stop)
	}
	if body := string(r.model.Last().Body); !strings.Contains(body, "xyzzy") || strings.Contains(body, "I could not get an answer") {
		t.Errorf("the model got %s", body)
	}
	again := c.history()
	if len(again) != 2 || again[0].ID != failed[0].ID || !slices.Equal(again[1].Siblings, []string{failed[1].ID, again[1].ID}) || again[1].Notice == wire.NoticeFallback {
		t.Errorf("history %+v", again)
	}
}
