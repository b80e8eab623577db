package sqlite

import (
	"context"

	"junctor/internal/store"
)

// Import implements store.Importer.
func (s *Store) Import(ctx context.Context, b store.Batch) error {
	err := s.write.submit(ctx, several, func(w *writer) error {
		bg := context.Background()
		put := func(query string, args ...any) error { return w.exec(bg, query, args...) }
		if err := w.importCalls(b.Calls); err != nil {
			return err
		}
		for _, c := range b.Catalogues {
			if err := put("INSERT OR IGNORE"+catalogueValues, catalogueArgs(c)...); err != nil {
				return err
			}
		}
		for _, f := range b.Fingerprints {
			if err := put("INSERT OR IGNORE INTO fingerprints ("+fingerprintColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
				f.Server, f.Tool, f.First, micros(f.FirstSeen), f.Current, micros(f.CurrentSeen), f.Approved, micros(f.ApprovedAt), f.ApprovedBy, text(f.Definition)); err != nil {
				return err
			}
		}
		for _, k := range b.Keys {
			if err := put("INSERT OR IGNORE INTO keys ("+keyColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", keyArgs(k)...); err != nil {
				return err
			}
		}
		for _, v := range b.Values {
			if err := put("INSERT OR IGNORE INTO vals ("+valueColumns+") VALUES (?, ?, ?, ?, ?, ?)",
				v.Space, v.Name, blob(v.Data), v.Version, micros(v.Updated), micros(v.Expires)); err != nil {
				return err
			}
		}
		for _, c := range b.Sessions {
			if err := put("INSERT OR IGNORE INTO sessions ("+sessionColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, 1)",
				c.ID, c.Owner, c.Title, c.Model, micros(c.Created), micros(c.Updated), text(c.Metadata)); err != nil {
				return err
			}
		}
		for _, m := range b.Messages {
			if err := put("INSERT OR IGNORE INTO messages (session, seq, time, role, content, native) VALUES (?, ?, ?, ?, ?, ?)",
				m.Session, m.Seq, micros(m.Time), m.Role, text(m.Content), text(m.Native)); err != nil {
				return err
			}
		}
		for _, e := range b.Events {
			if err := put("INSERT OR IGNORE INTO events (session, seq, time, data) VALUES (?, ?, ?, ?)", e.Session, e.Seq, micros(e.Time), text(e.Data)); err != nil {
				return err
			}
		}
		return nil
	})
	if orphan(err) {
		err = store.ErrNotFound
	}
	if err != nil {
		return s.explain("take over records", err)
	}
	s.WakeAll()
	return nil
}
