package chat

import (
	"context"
	"errors"
	"slices"

	"junctor/internal/store"
	"junctor/internal/tool"
)

// readable reports whether the caller may read a conversation. Only its owner
// may; a caller that is narrowed to profiles may only if all of these are among
// the profiles with which the conversation was written.
func readable(caller *tool.Caller, owner string, profiles []string) bool {
	return owner == caller.ID && !slices.ContainsFunc(caller.Profiles.Names(), func(name string) bool { return !slices.Contains(profiles, name) })
}

func (s *Session) readableBy(caller *tool.Caller) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return readable(caller, s.owner, s.meta.Profiles)
}

func recordReadable(caller *tool.Caller, rec *store.Session) bool {
	meta, err := metadataOf(rec)
	return (err == nil || len(caller.Profiles) == 0) && readable(caller, rec.Owner, meta.Profiles)
}

// sessionsOf returns the sessions that match and that the caller may read.
func (h *Host) sessionsOf(ctx context.Context, caller *tool.Caller, q store.SessionQuery) ([]store.Session, error) {
	q.Owner = caller.ID
	var out []store.Session
	for {
		page, err := h.Store.Sessions(ctx, q)
		if err != nil {
			return nil, unavailable(err)
		}
		for _, rec := range page {
			if recordReadable(caller, &rec) {
				out = append(out, rec)
			}
		}
		if len(out) >= q.Rows() || len(page) < q.Rows() {
			return out[:min(len(out), q.Rows())], nil
		}
		q.Before = page[len(page)-1].Updated
	}
}

// intersect returns the profiles that are also among names.
func intersect(profiles, names []string) []string {
	return slices.DeleteFunc(slices.Clone(profiles), func(name string) bool { return !slices.Contains(names, name) })
}

// keepProfiles removes all profiles but the named ones from the session, and
// drops the watchers that may no longer read it. s.mu is held.
func (s *Session) keepProfiles(names []string) {
	s.meta.Profiles = intersect(s.meta.Profiles, names)
	for w := range s.watchers {
		if !readable(&w.caller, s.owner, s.meta.Profiles) {
			w.drop()
			delete(s.watchers, w) // nothing may be added to its queue
		}
	}
}

// writtenBy removes the profiles that the caller does not have from the
// session, because callers with these profiles must not read what this caller
// writes. The change is stored before any message, so that other processes,
// which check the profiles after reading messages, see it.
func (s *Session) writtenBy(ctx context.Context, caller *tool.Caller) error {
	names := caller.Profiles.Names()
	s.recordMu.Lock()
	defer s.recordMu.Unlock()
	s.mu.Lock()
	due := s.stored && len(intersect(s.meta.Profiles, names)) < len(s.meta.Profiles)
	s.mu.Unlock()
	if due {
		if err := s.updateMetadata(ctx, func(m *metadata) { m.Profiles = intersect(m.Profiles, names) }); err != nil {
			return unavailable(err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keepProfiles(names)
	return nil
}

// checkReadable returns an error if the caller may not read the session any
// more.
func (s *Session) checkReadable(ctx context.Context, caller *tool.Caller) error {
	if len(caller.Profiles) > 0 && s.isStored() {
		if err := s.readRecord(ctx); err != nil && !errors.Is(err, store.ErrNotFound) {
			return unavailable(err)
		}
	}
	if !s.readableBy(caller) {
		return noSession()
	}
	return nil
}
