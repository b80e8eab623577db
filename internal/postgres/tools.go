package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"junctor/internal/store"
)

const catalogueColumns = `server, config, info, guidance, guidance_source, tools, seen`

// The last three columns are of before; older nodes want them.
const insertCatalogue = "INSERT INTO catalogues (" + catalogueColumns + `, prompts, resources, resource_templates)
VALUES ($1, $2, $3, $4, $5, $6, $7, '[]', '[]', '[]')`

func catalogueArgs(c store.Catalogue) []any {
	return []any{c.Server, c.Config, raw(c.Info), clean(c.Guidance.Text), string(c.Guidance.Source), store.JoinRaw(c.Tools), stamp(c.Seen)}
}

// PutCatalogue implements store.Catalogues.
func (s *Store) PutCatalogue(ctx context.Context, c store.Catalogue) error {
	err := s.read(ctx, "keep the tools of "+c.Server, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, insertCatalogue+` ON CONFLICT (server) DO UPDATE SET config = excluded.config,
info = excluded.info, guidance = excluded.guidance, guidance_source = excluded.guidance_source, tools = excluded.tools, seen = excluded.seen`,
			catalogueArgs(c)...)
		return err
	})
	return s.announced(store.TopicCatalogues, err)
}

// Catalogues implements store.Catalogues.
func (s *Store) Catalogues(ctx context.Context) (out []store.Catalogue, err error) {
	err = s.read(ctx, "read the tools last seen", func(ctx context.Context) (err error) {
		out, err = collect(ctx, s, scanCatalogue, "SELECT "+catalogueColumns+` FROM catalogues ORDER BY server COLLATE "C"`)
		return err
	})
	return out, err
}

func scanCatalogue(r pgx.CollectableRow) (store.Catalogue, error) {
	var c store.Catalogue
	var seen pgtype.Timestamptz
	var tools []byte
	err := r.Scan(&c.Server, &c.Config, (*[]byte)(&c.Info), &c.Guidance.Text, &c.Guidance.Source, &tools, &seen)
	if err == nil {
		c.Seen = moment(seen)
		c.Tools, err = store.SplitRaw(tools)
	}
	return c, err
}

// DeleteCatalogue implements store.Catalogues.
func (s *Store) DeleteCatalogue(ctx context.Context, server string) error {
	err := s.read(ctx, "forget the tools of "+server, func(ctx context.Context) error {
		_, err := s.pool.Exec(ctx, "DELETE FROM catalogues WHERE server = $1", server)
		return err
	})
	return s.announced(store.TopicCatalogues, err)
}

const fingerprintColumns = `server, tool, first, first_seen, current, current_seen, approved, approved_at, approved_by, definition`

func scanFingerprint(r pgx.CollectableRow) (store.Fingerprint, error) {
	var f store.Fingerprint
	var first, current, approved pgtype.Timestamptz
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
	tools, prints, definitions := make([]string, len(seen)), make([]string, len(seen)), make([][]byte, len(seen))
	for i, o := range seen {
		tools[i], prints[i], definitions[i] = clean(o.Tool), o.Fingerprint, raw(o.Definition)
	}
	err := s.read(ctx, "keep the fingerprints of "+server, func(ctx context.Context) error {
		// In order, so that two nodes that see the same do not lock each other
		// out; once each, because a statement touches a row only once.
		_, err := s.pool.Exec(ctx, `INSERT INTO fingerprints (`+fingerprintColumns+`)
SELECT $1, o.tool, o.print, now(), o.print, now(), o.print, now(), '', o.definition
FROM (SELECT DISTINCT ON (tool) * FROM unnest($2::text[], $3::text[], $4::bytea[]) WITH ORDINALITY AS o (tool, print, definition, n) ORDER BY tool, n DESC) AS o
ON CONFLICT (server, tool) DO UPDATE SET current = excluded.current, current_seen = excluded.current_seen WHERE fingerprints.current <> excluded.current`,
			server, tools, prints, definitions)
		return err
	})
	if err != nil {
		return nil, err
	}
	out, _, err := s.known(ctx, server, seen)
	return out, err
}

// known returns the fingerprints of the tools seen, and whether they are all
// as they were.
func (s *Store) known(ctx context.Context, server string, seen []store.Observation) ([]store.Fingerprint, bool, error) {
	all, err := s.Fingerprints(ctx, server)
	stored := slices.Clone(seen)
	for i := range stored {
		stored[i].Tool = clean(stored[i].Tool)
	}
	out, same := store.MatchFingerprints(all, stored)
	return out, same, err
}

// Approve implements store.Fingerprints.
func (s *Store) Approve(ctx context.Context, server string, o store.Observation, by string) error {
	err := s.read(ctx, "approve "+server+":"+o.Tool, func(ctx context.Context) error {
		tag, err := s.pool.Exec(ctx, `UPDATE fingerprints SET approved = $3, approved_at = now(), approved_by = $4, definition = $5
WHERE server = $1 AND tool = $2 AND current = $3`, server, clean(o.Tool), o.Fingerprint, by, raw(o.Definition))
		if err != nil || tag.RowsAffected() > 0 {
			return err
		}
		var there bool
		if err := s.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM fingerprints WHERE server = $1 AND tool = $2)", server, clean(o.Tool)).Scan(&there); err != nil {
			return err
		}
		if !there {
			return store.ErrNotFound
		}
		return store.ErrConflict
	})
	return s.announced(store.TopicCatalogues, err)
}

// Fingerprints implements store.Fingerprints.
func (s *Store) Fingerprints(ctx context.Context, server string) (out []store.Fingerprint, err error) {
	err = s.read(ctx, "read the fingerprints", func(ctx context.Context) (err error) {
		out, err = collect(ctx, s, scanFingerprint,
			"SELECT "+fingerprintColumns+` FROM fingerprints WHERE server = $1 OR $1 = '' ORDER BY server COLLATE "C", tool COLLATE "C"`, server)
		return err
	})
	return out, err
}
