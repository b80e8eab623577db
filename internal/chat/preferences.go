package chat

import (
	"context"

	"junctor/internal/chat/wire"
	"junctor/internal/store"
	"junctor/internal/tool"
)

// narrow returns the caller narrowed to the profile of the conversation, if it
// has one.
func (h *Host) narrow(caller tool.Caller, p wire.Preferences) (tool.Caller, error) {
	if p.Profile == "" || h.Profiles == nil {
		return caller, nil
	}
	return h.Profiles.Narrow(caller, p.Profile)
}

// SetPreferences replaces the preferences of the conversation, from the next
// message on.
func (s *Session) SetPreferences(ctx context.Context, caller tool.Caller, p wire.Preferences) error {
	if err := p.Validate(); err != nil {
		return err
	}
	if _, err := s.host.narrow(caller, p); err != nil {
		return err
	}
	if s.setUnstoredPreferences(p) {
		return nil
	}
	_, err := s.updateRecord(ctx, func(rec *store.Session) error {
		return changeMetadata(rec, func(m *metadata) { m.Preferences = p })
	})
	return unavailable(err)
}

// setUnstoredPreferences sets the preferences of a session that is not stored
// yet; the first message stores them. It reports false if the session is stored.
func (s *Session) setUnstoredPreferences(p wire.Preferences) bool {
	s.recordMu.Lock()
	defer s.recordMu.Unlock()
	if s.isStored() {
		return false
	}
	s.mu.Lock()
	s.meta.Preferences = p
	s.mu.Unlock()
	s.announce()
	return true
}

func (s *Session) preferences() wire.Preferences {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.meta.Preferences
}
