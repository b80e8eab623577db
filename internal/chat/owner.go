package chat

import (
	"context"
	"slices"

	"junctor/internal/store"
	"junctor/internal/tool"
)

// readable reports whether the caller may read a conversation that was written
// with profiles. Its owner may; with a profile, only what was written with it.
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

// writtenBy takes the profiles from the session that the caller does not have:
// who has them cannot read what this caller writes.
func (s *Session) writtenBy(ctx context.Context, caller *tool.Caller) error {
	names := caller.Profiles.Names()
	s.mu.Lock()
	left := slices.DeleteFunc(slices.Clone(s.meta.Profiles), func(name string) bool { return !slices.Contains(names, name) })
	changed := len(left) < len(s.meta.Profiles)
	s.meta.Profiles = left
	for w := range s.watchers {
		if !readable(&w.caller, s.owner, left) {
			w.drop()
		}
	}
	stored := s.stored
	s.mu.Unlock()
	if !changed || !stored {
		return nil
	}
	return unavailable(s.change(ctx, func(m *metadata) { m.Profiles = left }))
}
