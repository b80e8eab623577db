//go:build !race

// The quality tests run thousands of queries on one goroutine, where the race
// detector finds nothing and makes each query ten times as slow. make test runs
// them without it.

package search_test

import (
	"os"
	"runtime"
	"slices"
	"testing"

	"junctor/internal/search"
	"junctor/internal/search/searchtest"
	"junctor/internal/tool"
)

// TestRankingQuality checks that the quality of the ranking does not regress.
// The bounds are a little below the figures in docs/search.md; raise them with
// the figures.
func TestRankingQuality(t *testing.T) {
	for _, tt := range []struct {
		folder                string
		recall1, recall5, mrr float64
		shared                bool
	}{
		{folder: ownSet, recall1: 0.72, recall5: 0.91, mrr: 0.80},
		{folder: "../../../shared/search-eval/dev", recall1: 0.74, recall5: 0.895, mrr: 0.805, shared: true},
		{folder: "../../../shared/search-eval/dev/mcpproxy45", recall1: 0.70, recall5: 0.955, mrr: 0.82, shared: true},
	} {
		t.Run(tt.folder, func(t *testing.T) {
			if _, err := os.Stat(tt.folder); err != nil && tt.shared {
				t.Skip("the set is not beside the repository")
			}
			set, ix := load(t, tt.folder)
			got := searchtest.Measure(set, func(text string) []tool.Name {
				return names(t, ix, text, searchtest.Depth)
			})[searchtest.All]
			t.Log(got)
			if got.Recall1 < tt.recall1 || got.Recall5 < tt.recall5 || got.MRR < tt.mrr {
				t.Errorf("%v; want recall@1 %.3f, @5 %.3f, MRR %.3f or more", got, tt.recall1, tt.recall5, tt.mrr)
			}
		})
	}
}

// TestRankingBeatsBM25 checks that Junctor's ranking is better than the
// baseline. bench/eval also compares it with an index of bleve.
func TestRankingBeatsBM25(t *testing.T) {
	set, ix := load(t, ownSet)
	ours := searchtest.Measure(set, func(text string) []tool.Name { return names(t, ix, text, searchtest.Depth) })[searchtest.All]
	bm25 := searchtest.NewBM25(set)
	theirs := searchtest.Measure(set, func(text string) []tool.Name { return bm25.Search(text, searchtest.Depth) })[searchtest.All]
	if theirs.Recall5 == 0 || theirs.Recall5 > ours.Recall5-0.2 {
		t.Errorf("recall@5 of BM25 is %.3f, ours %.3f; want 0.2 more", theirs.Recall5, ours.Recall5)
	}
}

func TestEvaluationSetSize(t *testing.T) {
	set, _ := load(t, ownSet)
	kinds := map[string]int{}
	for _, q := range set.Queries {
		kinds[q.Kind]++
	}
	if len(set.Docs) < 150 || len(set.Queries) < 120 || len(kinds) < 6 {
		t.Errorf("%d tools, %d queries, kinds %v", len(set.Docs), len(set.Queries), kinds)
	}
}

// TestExactNameIsFirst checks that the name of a tool, unqualified or qualified,
// finds that tool first.
func TestExactNameIsFirst(t *testing.T) {
	set, ix := load(t, ownSet)
	// Tools that the words of other tools describe better, and unusual names.
	odd := []search.Doc{
		{Name: tool.Name{Server: "odd", Tool: "the"}, Description: "Only a stop word."},
		{Name: tool.Name{Server: "odd", Tool: "!tables"}, Description: "Starts with punctuation."},
		{Name: tool.Name{Server: "odd", Tool: "read_File"}, Description: "In another case."},
		{Name: tool.Name{Server: "odd", Tool: "x:y/z"}},
		{Name: tool.Name{Server: "odd", Tool: "!!"}},
		{Name: tool.Name{Server: "odd", Tool: "天气"}},
		{Name: tool.Name{Server: "odd", Tool: "My Tool"}},
		{Name: tool.Name{Server: "odd", Tool: "q"}},
	}
	ix.Put("odd", odd)
	for _, d := range append(odd, set.Docs...) {
		if got := names(t, ix, d.Name.Tool, 1); len(got) == 0 || got[0].Tool != d.Name.Tool {
			t.Errorf("the query %q finds %v first", d.Name.Tool, got)
		}
		if got := names(t, ix, d.Name.String(), 1); len(got) == 0 || got[0] != d.Name {
			t.Errorf("the query %q finds %v first", d.Name, got)
		}
	}
}

// TestUnrelatedToolKeepsRanking checks that adding a tool that is unrelated to
// the queries hardly changes their hits.
func TestUnrelatedToolKeepsRanking(t *testing.T) {
	set, ix := load(t, ownSet)
	before := make([][]tool.Name, len(set.Queries))
	for i, q := range set.Queries {
		before[i] = names(t, ix, q.Text, 5)
	}
	stranger := tool.Name{Server: "observatory", Tool: "classify_galaxy"}
	ix.Put("observatory", []search.Doc{{Name: stranger, Description: "Classify the morphology of a galaxy from its spectrum."}})
	changed := 0
	for i, q := range set.Queries {
		after := slices.DeleteFunc(names(t, ix, q.Text, 6), func(n tool.Name) bool { return n == stranger })
		if !slices.Equal(before[i], after[:min(len(after), 5)]) {
			changed++
		}
		if len(after) > 0 && len(before[i]) > 0 && after[0] != before[i][0] {
			t.Logf("%q: %v was first, now %v", q.Text, before[i][0], after[0])
		}
	}
	if limit := len(set.Queries) / 20; changed > limit {
		t.Errorf("the first five of %d queries changed, want at most %d", changed, limit)
	}
}

// TestIndexMemoryIsBounded checks that an index of 5,000 tools uses less than
// 10 MB once it is built.
func TestIndexMemoryIsBounded(t *testing.T) {
	set := big(t, 5000)
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	ix := search.New()
	set.Fill(ix)
	for _, q := range set.Queries {
		names(t, ix, q.Text, 10)
	}
	kept := heap() - before
	t.Logf("%.1f MB for %d tools", float64(kept)/1e6, ix.Len())
	if kept > 10e6 {
		t.Errorf("%d bytes are kept, want at most 10 MB", kept)
	}
	runtime.KeepAlive(set)
}
