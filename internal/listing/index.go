package listing

import (
	"bytes"
	"slices"

	"junctor/internal/catalog"
	"junctor/internal/search"
)

// NewIndex returns a search index that is kept in sync with the catalogue: it
// is updated before a new snapshot becomes visible. Only changed servers are
// indexed again.
func NewIndex(c *catalog.Catalog) *search.Index {
	index := search.New()
	c.OnChange(func(before, after *catalog.Snapshot) {
		for _, s := range after.Servers() {
			if old := before.Server(s.Name); old == nil || !sameDocuments(old, s) {
				index.Put(s.Name, documents(s))
			}
		}
		for _, s := range before.Servers() {
			if after.Server(s.Name) == nil {
				index.Remove(s.Name)
			}
		}
	})
	return index
}

// documents returns a server's tools as documents of the search index.
func documents(s *catalog.Server) []search.Doc {
	docs := make([]search.Doc, 0, len(s.Tools))
	for _, e := range s.Tools {
		docs = append(docs, search.Doc{
			Name: e.Name, Title: e.Title, Description: e.Description, InputSchema: e.InputSchema, Tags: e.Tags,
			ReadOnly: e.Annotations.ReadOnlyHint, ServerTitle: s.Title, ServerDescription: s.Description,
		})
	}
	return docs
}

// sameDocuments reports whether both servers have the same documents.
func sameDocuments(a, b *catalog.Server) bool {
	if a == b {
		return true
	}
	return a.Title == b.Title && a.Description == b.Description && slices.EqualFunc(a.Tools, b.Tools, func(x, y *catalog.Entry) bool {
		return bytes.Equal(x.Raw, y.Raw) && slices.Equal(x.Tags, y.Tags)
	})
}
