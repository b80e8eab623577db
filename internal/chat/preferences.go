package chat

import (
	"context"

	"junctor/internal/chat/wire"
	"junctor/internal/store"
	"junctor/internal/tool"
)

// narrow returns the caller with the profile of the conversation.
func (h *Host) narrow(caller tool.Caller, p wire.Preferences) (tool.Caller, error) {
	if p.Profile == "" || h.Profiles == nil {
		return caller, nil
	}
	return h.Profiles.Narrow(caller, p.Profile)
}

// Prefer replaces the preferences of the conversation, from the next message
// on.
func (s *Session) Prefer(ctx context.Context, caller tool.Caller, p wire.Preferences) error {
	if err := p.Validate(); err != nil {
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
	s.emit(wire.TypeSession, payload)
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
func (s *Session) sessionPayload() wire.SessionPayload {
	return wire.SessionPayload{Title: s.title, Model: s.model, Preferences: s.meta.Preferences}
}

func (s *Session) preferences() wire.Preferences {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.meta.Preferences
}
