package sqlstore

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"junctor/internal/store"
)

// The last three columns are not used, but older versions on the same database
// require them.
var catalogues = table[store.Catalogue]{
	"catalogues", "server, config, info, guidance, guidance_source, tools, seen, prompts, resources, resource_templates",
	func(c *store.Catalogue) []any {
		unused := func() *json.RawMessage { return new(json.RawMessage("[]")) }
		return []any{&c.Server, &c.Config, &c.Info, &c.Guidance.Text, (*string)(&c.Guidance.Source), &c.Tools, &c.Seen, unused(), unused(), unused()}
	},
}

// PutCatalogue implements store.Catalogues.
func (r Records) PutCatalogue(ctx context.Context, c store.Catalogue) error {
	put := catalogues.insert(c)
	put.SQL += ` ON CONFLICT (server) DO UPDATE SET config = excluded.config,
info = excluded.info, guidance = excluded.guidance, guidance_source = excluded.guidance_source, tools = excluded.tools, seen = excluded.seen`
	_, err := r.db.Exec(ctx, Op{"write the tools of " + c.Server, Repeat}, put)
	return r.announced(store.TopicCatalogues, err)
}

// Catalogues implements store.Catalogues.
func (r Records) Catalogues(ctx context.Context) ([]store.Catalogue, error) {
	return catalogues.list(ctx, r.db, "read the tools last seen", " ORDER BY server {bytes}")
}

var fingerprints = table[store.Fingerprint]{
	"fingerprints", "server, tool, first, first_seen, current, current_seen, approved, approved_at, approved_by, definition",
	func(f *store.Fingerprint) []any {
		return []any{&f.Server, &f.Tool, &f.First, &f.FirstSeen, &f.Current, &f.CurrentSeen, &f.Approved, &f.ApprovedAt, &f.ApprovedBy, &f.Definition}
	},
}

// Observe implements store.Fingerprints.
func (r Records) Observe(ctx context.Context, server string, seen []store.Observation) ([]store.Fingerprint, error) {
	seen = slices.Clone(seen)
	for i := range seen {
		seen[i].Tool = Clean(seen[i].Tool)
	}
	all, err := r.Fingerprints(ctx, server)
	if err != nil {
		return nil, err
	}
	// Usually nothing is new and nothing needs to be written.
	out, same := store.MatchFingerprints(all, seen)
	if same {
		return out, nil
	}
	var upserts []Statement
	for _, o := range seen {
		upserts = append(upserts, Statement{"INSERT INTO fingerprints (" + fingerprints.columns + `) VALUES (?1, ?2, ?3, {now}, ?3, {now}, ?3, {now}, '', ?4)
ON CONFLICT (server, tool) DO UPDATE SET current = excluded.current, current_seen = excluded.current_seen WHERE fingerprints.current <> excluded.current`,
			[]any{server, o.Tool, o.Fingerprint, o.Definition}})
	}
	// Sorted, so that two nodes that observe the same tools do not deadlock.
	slices.SortStableFunc(upserts, func(a, b Statement) int { return cmp.Compare(a.Args[1].(string), b.Args[1].(string)) })
	if _, err := r.db.Exec(ctx, Op{"write the fingerprints of " + server, Repeat}, upserts...); err != nil {
		return nil, err
	}
	all, err = r.Fingerprints(ctx, server)
	out, _ = store.MatchFingerprints(all, seen)
	return out, err
}

// Approve implements store.Fingerprints.
func (r Records) Approve(ctx context.Context, server string, o store.Observation, by string) error {
	op := Op{"approve " + server + ":" + o.Tool, Repeat}
	n, err := r.exec(ctx, op, `UPDATE fingerprints SET approved = ?3, approved_at = {now}, approved_by = ?4, definition = ?5
WHERE server = ?1 AND tool = ?2 AND current = ?3`, server, o.Tool, o.Fingerprint, by, o.Definition)
	if err == nil && n == 0 {
		if _, err = fingerprints.one(ctx, r.db, op.Name, " WHERE server = ?1 AND tool = ?2", server, o.Tool); err == nil {
			err = conflict(op)
		}
	}
	return r.announced(store.TopicCatalogues, err)
}

// Fingerprints implements store.Fingerprints.
func (r Records) Fingerprints(ctx context.Context, server string) ([]store.Fingerprint, error) {
	var where string
	var args []any
	if server != "" {
		where, args = " WHERE server = ?1", []any{server}
	}
	return fingerprints.list(ctx, r.db, "read the fingerprints", where+" ORDER BY server {bytes}, tool {bytes}", args...)
}
