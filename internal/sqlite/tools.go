package sqlite

import (
	"context"
	"database/sql"
	"errors"

	"junctor/internal/store"
)

// The last three columns are of before; the tables of older versions want them.
const catalogueValues = ` INTO catalogues (server, config, info, guidance, guidance_source, tools, seen, prompts, resources, resource_templates)
VALUES (?, ?, ?, ?, ?, ?, ?, '[]', '[]', '[]')`

// PutCatalogue implements store.Catalogues.
func (s *Store) PutCatalogue(ctx context.Context, c store.Catalogue) error {
	args := catalogueArgs(c)
	err := s.write.submit(ctx, single, func(w *writer) error {
		return w.exec(context.Background(), "INSERT"+catalogueValues+` ON CONFLICT (server) DO UPDATE SET config = excluded.config,
info = excluded.info, guidance = excluded.guidance, guidance_source = excluded.guidance_source, tools = excluded.tools, seen = excluded.seen`, args...)
	})
	return s.announced(store.TopicCatalogues, s.explain("keep the tools of "+c.Server, err))
}

func catalogueArgs(c store.Catalogue) []any {
	return []any{c.Server, c.Config, text(c.Info), c.Guidance.Text, string(c.Guidance.Source), string(store.JoinRaw(c.Tools)), micros(c.Seen)}
}

// Catalogues implements store.Catalogues.
func (s *Store) Catalogues(ctx context.Context) ([]store.Catalogue, error) {
	out, err := collect(ctx, s.read, func(r row) (store.Catalogue, error) {
		var c store.Catalogue
		var seen int64
		var tools []byte
		err := r.Scan(&c.Server, &c.Config, (*[]byte)(&c.Info), &c.Guidance.Text, &c.Guidance.Source, &tools, &seen)
		if err == nil {
			c.Seen = moment(seen)
			c.Tools, err = store.SplitRaw(tools)
		}
		return c, err
	}, `SELECT server, config, info, guidance, guidance_source, tools, seen FROM catalogues ORDER BY server`)
	return out, s.explain("read the tools last seen", err)
}

// DeleteCatalogue implements store.Catalogues.
func (s *Store) DeleteCatalogue(ctx context.Context, server string) error {
	err := s.write.submit(ctx, single, func(w *writer) error {
		return w.exec(context.Background(), "DELETE FROM catalogues WHERE server = ?", server)
	})
	return s.announced(store.TopicCatalogues, s.explain("forget the tools of "+server, err))
}

const fingerprintColumns = `server, tool, first, first_seen, current, current_seen, approved, approved_at, approved_by, definition`

func scanFingerprint(r row) (store.Fingerprint, error) {
	var f store.Fingerprint
	var first, current, approved int64
	err := r.Scan(&f.Server, &f.Tool, &f.First, &first, &f.Current, &current, &f.Approved, &approved, &f.ApprovedBy, (*[]byte)(&f.Definition))
	f.FirstSeen, f.CurrentSeen, f.ApprovedAt = moment(first), moment(current), moment(approved)
	return f, err
}

// Observe implements store.Fingerprints.
func (s *Store) Observe(ctx context.Context, server string, seen []store.Observation) ([]store.Fingerprint, error) {
	// Most often nothing is new, and then nothing need be written.
	if out, known, err := s.known(ctx, server, seen); err != nil || known {
		return out, err
	}
	err := s.write.submit(ctx, several, func(w *writer) error {
		now := micros(s.now())
		for _, o := range seen {
			err := w.exec(context.Background(), `INSERT INTO fingerprints (`+fingerprintColumns+`)
VALUES (?1, ?2, ?3, ?4, ?3, ?4, ?3, ?4, '', ?5)
ON CONFLICT (server, tool) DO UPDATE SET current = excluded.current, current_seen = excluded.current_seen WHERE current <> excluded.current`,
				server, o.Tool, o.Fingerprint, now, text(o.Definition))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, s.explain("keep the fingerprints of "+server, err)
	}
	out, _, err := s.known(ctx, server, seen)
	return out, err
}

// known returns the fingerprints of the tools seen, and whether they are all
// as they were.
func (s *Store) known(ctx context.Context, server string, seen []store.Observation) ([]store.Fingerprint, bool, error) {
	all, err := s.Fingerprints(ctx, server)
	out, same := store.MatchFingerprints(all, seen)
	return out, same, err
}

// Approve implements store.Fingerprints.
func (s *Store) Approve(ctx context.Context, server string, o store.Observation, by string) error {
	err := s.write.submit(ctx, single, func(w *writer) error {
		n, err := w.affect(context.Background(), `UPDATE fingerprints SET approved = ?3, approved_at = ?4, approved_by = ?5, definition = ?6
WHERE server = ?1 AND tool = ?2 AND current = ?3`, server, o.Tool, o.Fingerprint, micros(s.now()), by, text(o.Definition))
		if err != nil || n > 0 {
			return err
		}
		var one int
		err = w.one(context.Background(), "SELECT 1 FROM fingerprints WHERE server = ? AND tool = ?", []any{server, o.Tool}, &one)
		if errors.Is(err, sql.ErrNoRows) {
			return store.ErrNotFound
		}
		if err != nil {
			return err
		}
		return store.ErrConflict
	})
	return s.announced(store.TopicCatalogues, s.explain("approve "+server+":"+o.Tool, err))
}

// Fingerprints implements store.Fingerprints.
func (s *Store) Fingerprints(ctx context.Context, server string) ([]store.Fingerprint, error) {
	query, args := "SELECT "+fingerprintColumns+" FROM fingerprints", []any{}
	if server != "" {
		query, args = query+" WHERE server = ?", append(args, server)
	}
	out, err := collect(ctx, s.read, scanFingerprint, query+" ORDER BY server, tool", args...)
	return out, s.explain("read the fingerprints", err)
}

// collect runs a query and returns its rows.
func collect[T any](ctx context.Context, db *sql.DB, scan func(row) (T, error), query string, args ...any) ([]T, error) {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := []T{}
	for rows.Next() {
		v, err := scan(rows)
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, rows.Err()
}

// announced wakes the watchers of a topic when a write succeeded.
func (s *Store) announced(topic string, err error) error {
	if err == nil {
		s.Wake(topic)
	}
	return err
}
