package main

import (
	"strconv"

	"github.com/blevesearch/bleve/v2"
	"github.com/blevesearch/bleve/v2/analysis/lang/en"

	"junctor/internal/search/searchtest"
	"junctor/internal/tool"
)

// bleveRanker is a typical in-memory index of the bleve library: fields with
// the English analyser (stemming, stop words), one match query over all of
// them, and the library's own scoring.
type bleveRanker struct {
	index bleve.Index
	names []tool.Name
}

func buildBleve(set *searchtest.Set) (ranker, error) {
	mapping := bleve.NewIndexMapping()
	mapping.DefaultAnalyzer = en.AnalyzerName
	index, err := bleve.NewMemOnly(mapping)
	if err != nil {
		return nil, err
	}
	r := &bleveRanker{index: index}
	batch := index.NewBatch()
	for i, d := range set.Docs {
		r.names = append(r.names, d.Name)
		err := batch.Index(strconv.Itoa(i), map[string]any{
			"server":      words(d.Name.Server),
			"name":        words(d.Name.Tool),
			"description": d.Description,
			"schema":      string(d.InputSchema),
		})
		if err != nil {
			return nil, err
		}
	}
	return r, index.Batch(batch)
}

// words splits snake_case and kebab-case for a fair comparison, because the
// library's English analyser does not.
func words(name string) string {
	b := []byte(name)
	for i, c := range b {
		if c == '_' || c == '-' {
			b[i] = ' '
		}
	}
	return string(b)
}

func (r *bleveRanker) Search(text string, limit int) ([]tool.Name, error) {
	found, err := r.index.Search(bleve.NewSearchRequestOptions(bleve.NewMatchQuery(text), limit, 0, false))
	if err != nil {
		return nil, err
	}
	var names []tool.Name
	for _, hit := range found.Hits {
		i, err := strconv.Atoi(hit.ID)
		if err != nil {
			return nil, err
		}
		names = append(names, r.names[i])
	}
	return names, nil
}

func (r *bleveRanker) Close() error { return r.index.Close() }
