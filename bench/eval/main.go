// Command eval measures how well tools are found, on labelled sets: with
// Junctor's ranking, plain BM25, and an index of the bleve library.
//
//	go -C bench run ./eval [-set folder]... [-json] [-fails] [-through program]
//
// Without -set it uses the repository's own set and, if they exist, those next
// to the repository. It prints recall, MRR and nDCG by kind of query, the
// latency (of the fastest of five runs of each query), the build time and the
// heap size of the index. With -through it also starts a gateway from that
// program and queries it over MCP.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"junctor/internal/search/searchtest"
	"junctor/internal/tool"
)

// ranker is anything that ranks tools.
type ranker interface {
	Search(text string, limit int) ([]tool.Name, error)
}

// rankerKind is a constructor of rankers.
type rankerKind struct {
	name  string
	build func(*searchtest.Set) (ranker, error)
}

// rankers are always measured. The first is Junctor's.
var rankers = []rankerKind{
	{"junctor", buildJunctor},
	{"bm25", buildBM25},
	{"bleve", buildBleve},
}

// runs is the number of runs of each query.
const runs = 5

// result is the result of one ranker on one set.
type result struct {
	Set       string                      `json:"set"`
	Tools     int                         `json:"tools"`
	Ranker    string                      `json:"ranker"`
	Scores    map[string]searchtest.Score `json:"scores"`
	BuildMS   float64                     `json:"buildMs"`
	P50US     float64                     `json:"p50us"`
	P99US     float64                     `json:"p99us"`
	HeapBytes int64                       `json:"heapBytes"`
}

func main() {
	err := run(os.Stdout, os.Args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		os.Exit(2)
	case err != nil:
		fmt.Fprintln(os.Stderr, "eval:", err)
		os.Exit(1)
	}
}

// defaultSets returns the sets that can be found from the folder of this
// module, bench/.
func defaultSets() []string {
	folders := []string{"../internal/search/testdata/own"}
	for _, f := range []string{"../../shared/search-eval/dev", "../../shared/search-eval/dev/mcpproxy45"} {
		if _, err := os.Stat(f); err == nil {
			folders = append(folders, f)
		}
	}
	return folders
}

func run(w io.Writer, args []string) error {
	var folders []string
	flags := flag.NewFlagSet("eval", flag.ContinueOnError)
	flags.Func("set", "folder with tools.jsonl and queries.jsonl; may be given again", func(s string) error {
		folders = append(folders, s)
		return nil
	})
	asJSON := flags.Bool("json", false, "print JSON")
	fails := flags.Bool("fails", false, "list the queries whose needs are not all within the first five results of Junctor")
	program := flags.String("through", "", "the junctor program: also ask it, over MCP, with the tools as upstreams")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if len(folders) == 0 {
		folders = defaultSets()
	}
	measured := rankers
	if *program != "" {
		measured = append(slices.Clip(rankers), rankerKind{"gateway", buildGateway(*program)})
	}
	var results []result
	for _, folder := range folders {
		set, err := searchtest.Load(folder)
		if err != nil {
			return fmt.Errorf("read the set: %w", err)
		}
		for i, r := range measured {
			m, err := measure(set, r.name, r.build, w, *fails && i == 0)
			if err != nil {
				return fmt.Errorf("%s on %s: %w", r.name, folder, err)
			}
			results = append(results, m)
		}
	}
	if *asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(results)
	}
	return table(w, results)
}

// measure builds one ranker and runs all queries.
func measure(set *searchtest.Set, name string, build func(*searchtest.Set) (ranker, error), w io.Writer, fails bool) (result, error) {
	before := heap()
	start := time.Now()
	r, err := build(set)
	if err != nil {
		return result{}, err
	}
	m := result{
		Set: set.Name, Tools: len(set.Docs), Ranker: name,
		BuildMS:   float64(time.Since(start).Microseconds()) / 1000,
		HeapBytes: heap() - before,
	}
	var failure error
	fastest := make(map[string]time.Duration) // of several runs, to reduce the effect of other work on the machine
	rank := func(text string) []tool.Name {
		start := time.Now()
		found, err := r.Search(text, searchtest.Depth)
		took := time.Since(start)
		if before, ok := fastest[text]; !ok || took < before {
			fastest[text] = took
		}
		if err != nil {
			failure = fmt.Errorf("query %q: %w", text, err)
		}
		return found
	}
	for range runs {
		m.Scores = searchtest.Measure(set, rank)
	}
	times := slices.Sorted(maps.Values(fastest))
	m.P50US = micros(times[len(times)/2])
	m.P99US = micros(times[len(times)*99/100])
	if fails {
		listFails(w, set, rank)
	}
	runtime.KeepAlive(r)
	if c, ok := r.(io.Closer); ok {
		return m, errors.Join(failure, c.Close())
	}
	return m, failure
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// heap returns the size of the live heap after a collection.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // the first collection only moves pooled memory to the victim caches
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func listFails(w io.Writer, set *searchtest.Set, rank func(string) []tool.Name) {
	for _, q := range set.Queries {
		found := rank(q.Text)
		for _, need := range q.Needs {
			met := slices.ContainsFunc(found[:min(5, len(found))], func(n tool.Name) bool { return slices.Contains(need, n) })
			if !met {
				fmt.Fprintf(w, "%s (%s) %q\n\twanted %v\n\tfound  %v\n", q.ID, q.Kind, q.Text, need, found[:min(5, len(found))])
			}
		}
	}
}

func table(w io.Writer, results []result) error {
	for i, r := range results {
		if i == 0 || results[i-1].Set != r.Set {
			fmt.Fprintf(w, "\n%s: %d tools, %d queries\n", r.Set, r.Tools, r.Scores[searchtest.All].Queries)
		}
		fmt.Fprintf(w, "\n%s: built in %.0f ms, %.1f MB kept, p50 %.0f µs, p99 %.0f µs\n",
			r.Ranker, r.BuildMS, float64(r.HeapBytes)/1e6, r.P50US, r.P99US)
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(tw, "kind\tqueries\trecall@1\trecall@5\trecall@10\tMRR\tnDCG@5\t")
		for _, kind := range slices.Sorted(maps.Keys(r.Scores)) {
			s := r.Scores[kind]
			fmt.Fprintf(tw, "%s\t%d\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t\n", kind, s.Queries, s.Recall1, s.Recall5, s.Recall10, s.MRR, s.NDCG5)
		}
		if err := tw.Flush(); err != nil {
			return err
		}
	}
	return nil
}
