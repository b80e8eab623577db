package search_test

import (
	"fmt"
	"testing"

	"junctor/internal/search"
	"junctor/internal/search/searchtest"
	"junctor/internal/tool"
)

const ownSet = "testdata/own"

func load(t testing.TB, folder string) (*searchtest.Set, *search.Index) {
	t.Helper()
	set, err := searchtest.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	ix := search.New()
	set.Fill(ix)
	return set, ix
}

func names(t testing.TB, ix *search.Index, text string, limit int) []tool.Name {
	t.Helper()
	hits, err := ix.Search(search.Query{Text: text, Limit: limit})
	if err != nil {
		t.Fatalf("Search(%q): %v", text, err)
	}
	list := make([]tool.Name, len(hits))
	for i, h := range hits {
		list[i] = h.Name
	}
	return list
}

// big returns n tools on servers of at most thirty: those of the repository's
// set repeated, with additional words that differ.
func big(tb testing.TB, n int) *searchtest.Set {
	tb.Helper()
	own, err := searchtest.Load(ownSet)
	if err != nil {
		tb.Fatal(err)
	}
	set := &searchtest.Set{Queries: own.Queries}
	for i := range n {
		d := own.Docs[i%len(own.Docs)]
		round := i / len(own.Docs)
		d.Name.Server = fmt.Sprintf("%s-%d", d.Name.Server, i/30)
		d.Description = fmt.Sprintf("%s Part of the %s suite for %s.", d.Description, filler[round%len(filler)], filler[(i*7+round)%len(filler)])
		set.Docs = append(set.Docs, d)
	}
	return set
}

var filler = []string{
	"accounting", "aviation", "banking", "chemistry", "dairy", "education", "fishing", "gardening",
	"hospital", "insurance", "journalism", "kitchen", "logistics", "mining", "nursing", "optics",
	"printing", "quarry", "railway", "shipping", "textile", "university", "veterinary", "winery",
}
