package sqlite

import (
	"context"

	"junctor/internal/store"
)

// Stats implements store.CallLog.
func (s *Store) Stats(ctx context.Context, q store.CallQuery) (store.CallStats, error) {
	q.AfterSeq, q.BeforeSeq = 0, 0
	c := store.NewStatsCollector(q)
	err := s.scan(ctx, q, true, func(b *blockReader) error {
		found, err := b.matching(q)
		if err != nil || len(found) == 0 {
			return err
		}
		h := &b.head
		groups := make([]*store.GroupCollector, len(h.groups))
		for _, i := range found {
			n := h.group[i]
			g := &h.groups[n]
			if groups[n] == nil {
				groups[n] = c.Group(g.server, g.tool, g.caller, g.callerName, g.face)
			}
			groups[n].Add(store.Status(g.status), h.times[i], h.took[i])
		}
		return nil
	})
	return c.Stats(), s.explain("read the call log", err)
}
