//go:build !race

// This test ranks hundreds of queries on one goroutine. The race detector would
// find nothing, but make it ten times slower. make test runs it without the
// detector, in the suite quality.

package agentify

import (
	"os"
	"testing"

	"junctor/internal/catalog"
	"junctor/internal/listing"
	"junctor/internal/llm/llmtest"
	"junctor/internal/search"
	"junctor/internal/search/searchtest"
	"junctor/internal/tool"
)

// TestCandidatesContainTheRightTool measures, without a model, how often the
// tool that a query needs is among the tools that are declared to the model,
// and how often among these and the listed ones. docs/agentify.md has the
// figures.
func TestCandidatesContainTheRightTool(t *testing.T) {
	for _, set := range []struct {
		folder       string
		whole, named float64 // minimum shares
	}{
		{"../search/testdata/own", 0.96, 0.98},
		{"../../../shared/search-eval/dev", 0.94, 0.97},
		{"../../../shared/search-eval/dev/mcpproxy45", 0.99, 0.99},
	} {
		t.Run(set.folder, func(t *testing.T) {
			if _, err := os.Stat(set.folder); err != nil {
				t.Skip("the set is not there")
			}
			s, err := searchtest.Load(set.folder)
			if err != nil {
				t.Fatal(err)
			}
			r := &fixture{t: t, catalog: catalog.New(nil, nil), index: search.New(), llm: llmtest.New(noScript)}
			s.Fill(r.index)
			byServer := map[string][]tool.Definition{}
			for _, d := range s.Docs {
				byServer[d.Name.Server] = append(byServer[d.Name.Server], tool.Definition{Name: d.Name, Description: d.Description, InputSchema: d.InputSchema})
			}
			for server, defs := range byServer {
				r.catalog.Put(catalog.Server{Name: server}, defs)
			}
			f := &Face{opts: Options{Tools: listing.New(listing.Options{Catalog: r.catalog, Search: r.index})}}
			var whole, named float64
			for _, q := range s.Queries {
				offered, further, err := f.candidates(r.catalog.Snapshot(), &tool.Local, Task{Query: q.Text}, maxDeclared)
				if err != nil {
					t.Fatal(err)
				}
				if len(offered) > maxCandidates || len(further) > maxFurther {
					t.Fatalf("%d and %d candidates", len(offered), len(further))
				}
				whole += share(q.Needs, offered)
				named += share(q.Needs, append(offered, further...))
			}
			n := float64(len(s.Queries))
			t.Logf("%d tools, %d queries: %.3f among %d handed over, %.3f with the %d named", len(s.Docs), len(s.Queries), whole/n, maxCandidates, named/n, maxFurther)
			if whole/n < set.whole || named/n < set.named {
				t.Errorf("want at least %.3f and %.3f", set.whole, set.named)
			}
		})
	}
}

// share returns the fraction of the needs that the candidates meet.
func share(needs [][]tool.Name, candidates []Candidate) float64 {
	there := map[tool.Name]bool{}
	for _, c := range candidates {
		there[c.Name] = true
	}
	met := 0
	for _, need := range needs {
		for _, n := range need {
			if there[n] {
				met++
				break
			}
		}
	}
	return float64(met) / float64(len(needs))
}
