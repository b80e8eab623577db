package wire

import (
	"fmt"
	"slices"
)

// Preferences are what a user chose for one conversation.
type Preferences struct {
	// SystemPrompt replaces that of the model.
	SystemPrompt string `json:"systemPrompt,omitempty"`
	// Temperature replaces that of the model; nil leaves it.
	Temperature *float64 `json:"temperature,omitempty"`
	// Servers are those whose tools the model may use; empty means all.
	Servers []string `json:"servers,omitempty"`
	// Profile narrows the conversation to a part of the gateway; empty means
	// what the caller may use.
	Profile string `json:"profile,omitempty"`
}

// maxSystemPrompt bounds the system prompt of a conversation, in bytes.
const maxSystemPrompt = 32 << 10

// Validate returns what is wrong with preferences that a client sent.
func (p Preferences) Validate() error {
	switch {
	case len(p.SystemPrompt) > maxSystemPrompt:
		return invalid(fmt.Sprintf("the system prompt has %d bytes; %d are allowed", len(p.SystemPrompt), maxSystemPrompt))
	case p.Temperature != nil && !(*p.Temperature >= 0 && *p.Temperature <= 2):
		return invalid("the temperature must be between 0 and 2")
	case len(p.Servers) > 1000:
		return invalid("more than 1000 servers")
	}
	return nil
}

// Uses reports whether the tools of a server may be used in the conversation.
func (p Preferences) Uses(server string) bool {
	return len(p.Servers) == 0 || slices.Contains(p.Servers, server)
}
