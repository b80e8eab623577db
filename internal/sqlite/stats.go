package sqlite

import (
	"context"

	"junctor/internal/store"
)

// Stats implements store.CallLog.
func (s *Store) Stats(ctx context.Context, q store.CallQuery) (store.CallStats, error) {
	q.AfterSeq, q.BeforeSeq, q.Text = 0, 0, ""
	var c store.StatsCollector
	err := s.scan(ctx, q, true, func(b *blockReader) error {
		found, err := b.matching(q)
		if err != nil || len(found) == 0 {
			return err
		}
		h := &b.head
		tools := make([]*store.ToolCollector, len(h.groups))
		for _, i := range found {
			g := h.group[i]
			if tools[g] == nil {
				tools[g] = c.Tool(h.groups[g].server, h.groups[g].tool)
			}
			tools[g].Add(store.Status(h.groups[g].status), h.took[i])
		}
		return nil
	})
	return c.Stats(), s.explain("read the call log", err)
}
