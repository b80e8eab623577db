package listing

import (
	"context"

	"junctor/internal/catalog"
	"junctor/internal/search"
	"junctor/internal/tool"
)

// Find waits for servers that are starting, and returns the enabled tools that
// the caller may use and that match a query, best first.
func (s *Service) Find(ctx context.Context, caller *tool.Caller, query string, limit int) ([]*catalog.Entry, error) {
	s.Await(ctx, caller)
	found, err := s.Search(s.Snapshot(), caller, Filter{}, search.Query{Text: query, Limit: limit})
	if err != nil {
		return nil, err
	}
	entries := make([]*catalog.Entry, len(found))
	for i, m := range found {
		entries[i] = m.Entry
	}
	return entries, nil
}
