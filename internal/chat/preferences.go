package chat

import (
	"context"
	"fmt"
	"slices"

	"junctor/internal/store"
	"junctor/internal/tool"
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

func (p Preferences) validate() error {
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

// uses reports whether the tools of a server may be used in the conversation.
func (p Preferences) uses(server string) bool {
	return len(p.Servers) == 0 || slices.Contains(p.Servers, server)
}

// narrow returns the caller with the profile of the conversation.
func (h *Host) narrow(caller tool.Caller, p Preferences) (tool.Caller, error) {
	if p.Profile == "" || h.Profiles == nil {
		return caller, nil
	}
	return h.Profiles.Narrow(caller, p.Profile)
}

// Prefer replaces the preferences of the conversation, from the next message
// on.
func (s *Session) Prefer(ctx context.Context, caller tool.Caller, p Preferences) error {
	if err := p.validate(); err != nil {
		return err
	}
	if _, err := s.host.narrow(caller, p); err != nil {
		return err
	}
	s.mu.Lock()
	s.meta.Preferences = p
	stored, payload := s.stored, s.sessionPayload()
	s.mu.Unlock()
	if stored { // otherwise the first message stores them
		if err := s.change(ctx, func(m *metadata) { m.Preferences = p }); err != nil {
			return unavailable(err)
		}
	}
	s.emit(TypeSession, payload)
	return nil
}

// change changes one thing of the stored metadata, whatever process holds the
// session.
func (s *Session) change(ctx context.Context, change func(*metadata)) error {
	_, err := s.host.Store.UpdateSession(ctx, s.id, func(rec *store.Session) error { return changeMetadata(rec, change) })
	return err
}

// sessionPayload returns what clients receive about a changed session. s.mu is
// held.
func (s *Session) sessionPayload() SessionPayload {
	return SessionPayload{Title: s.title, Model: s.model, Preferences: s.meta.Preferences}
}

func (s *Session) preferences() Preferences {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.meta.Preferences
}
