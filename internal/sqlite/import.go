package sqlite

import (
	"context"

	"junctor/internal/store"
	"junctor/internal/store/sqlstore"
)

// Import implements store.Importer.
func (s *Store) Import(ctx context.Context, b store.Batch) error {
	err := s.write.submit(ctx, manyStatements, func(w *writer) error {
		if err := w.importCalls(b.Calls); err != nil {
			return err
		}
		_, err := s.database.execAll(w, sqlstore.Import(b))
		return err
	})
	if err != nil {
		return s.explain("import records", constraintError(err))
	}
	s.WakeAll()
	return nil
}
