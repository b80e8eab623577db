package searchtest

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"unicode"

	"junctor/internal/search"
	"junctor/internal/tool"
)

// BM25 is the textbook baseline: one bag of words per tool (server, name,
// description and unparsed schema), split at everything that is not a letter or
// digit, without stemming, k1 = 1.2, b = 0.75.
type BM25 struct {
	names    []tool.Name
	lengths  []float64
	mean     float64
	postings map[string][]bm25Posting
}

type bm25Posting struct {
	doc   int
	count float64
}

// NewBM25 indexes the tools of a set.
func NewBM25(set *Set) *BM25 {
	r := &BM25{postings: make(map[string][]bm25Posting)}
	for i, d := range set.Docs {
		words := bm25Words(docText(d))
		r.names = append(r.names, d.Name)
		r.lengths = append(r.lengths, float64(len(words)))
		r.mean += float64(len(words))
		counts := make(map[string]float64)
		for _, w := range words {
			counts[w]++
		}
		for w, n := range counts {
			r.postings[w] = append(r.postings[w], bm25Posting{i, n})
		}
	}
	r.mean /= float64(max(1, len(r.names)))
	return r
}

// docText returns the indexed text of a tool.
func docText(d search.Doc) string {
	return strings.Join([]string{d.Name.Server, d.Name.Tool, d.Description, string(d.InputSchema)}, " ")
}

func bm25Words(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// Search returns the best tools for a query, at most limit.
func (r *BM25) Search(text string, limit int) []tool.Name {
	const k1, b = 1.2, 0.75
	scores := make(map[int]float64)
	for _, w := range bm25Words(text) {
		list := r.postings[w]
		n, df := float64(len(r.names)), float64(len(list))
		idf := math.Log(1 + (n-df+0.5)/(df+0.5))
		for _, p := range list {
			scores[p.doc] += idf * p.count * (k1 + 1) / (p.count + k1*(1-b+b*r.lengths[p.doc]/r.mean))
		}
	}
	docs := make([]int, 0, len(scores))
	for d := range scores {
		docs = append(docs, d)
	}
	slices.SortFunc(docs, func(a, b int) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(a, b)) })
	var names []tool.Name
	for _, d := range docs[:min(limit, len(docs))] {
		names = append(names, r.names[d])
	}
	return names
}
