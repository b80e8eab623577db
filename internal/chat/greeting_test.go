package chat

import (
	"encoding/json"
	"testing"

	"junctor/internal/chat/wire"
	"junctor/internal/llm/llmtest"
)

// TestGreetingHasTheLimits checks that a client receives the message limits in
// the greeting, before it can exceed them.
func TestGreetingHasTheLimits(t *testing.T) {
	t.Parallel()
	r := newFixture(t, llmtest.Script{}, withConfig(func(cfg *Config) { cfg.MaxMessageBytes, cfg.MaxAttachmentBytes = 1000, 0 }))
	m := r.dial("").next()
	var greeting struct {
		Payload struct{ Limits *wire.Limits }
	}
	if err := json.Unmarshal(m.Raw, &greeting); err != nil || m.Type != wire.TypeConnection {
		t.Fatalf("%s: %v", m.Raw, err)
	}
	if got := greeting.Payload.Limits; got == nil || *got != (wire.Limits{MessageBytes: 1000}) {
		t.Errorf("greeting %s", m.Raw)
	}
}
