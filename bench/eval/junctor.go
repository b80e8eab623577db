package main

import (
	"junctor/internal/search"
	"junctor/internal/search/searchtest"
	"junctor/internal/tool"
)

// junctor is the ranking of the gateway.
type junctor struct{ ix *search.Index }

func buildJunctor(set *searchtest.Set) (ranker, error) {
	ix := search.New()
	set.Fill(ix)
	ix.Len() // merges the parts, like the first query would
	return junctor{ix}, nil
}

func (j junctor) Search(text string, limit int) ([]tool.Name, error) {
	hits, err := j.ix.Search(search.Query{Text: text, Limit: limit})
	if err != nil {
		return nil, err
	}
	names := make([]tool.Name, len(hits))
	for i, h := range hits {
		names[i] = h.Name
	}
	return names, nil
}

// bm25 is the standard BM25 ranking.
type bm25 struct{ *searchtest.BM25 }

func buildBM25(set *searchtest.Set) (ranker, error) {
	return bm25{searchtest.NewBM25(set)}, nil
}

func (r bm25) Search(text string, limit int) ([]tool.Name, error) {
	return r.BM25.Search(text, limit), nil
}
