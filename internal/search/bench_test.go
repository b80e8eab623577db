package search_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"junctor/internal/search"
)

var sizes = []int{500, 5000, 50000}

// BenchmarkSearch runs the queries of the repository's set in turn, and reports
// the median and the 99th percentile in addition to the mean.
func BenchmarkSearch(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			set := big(b, n)
			ix := search.New()
			set.Fill(ix)
			ix.Len()
			var times []time.Duration
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				start := time.Now()
				if _, err := ix.Search(search.Query{Text: set.Queries[i%len(set.Queries)].Text}); err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(start))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Nanoseconds())/1e3, "p50-µs")
			b.ReportMetric(float64(times[len(times)*99/100].Nanoseconds())/1e3, "p99-µs")
		})
	}
}

// BenchmarkBuild fills an empty index and runs the first query.
func BenchmarkBuild(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			set := big(b, n)
			b.ReportAllocs()
			for b.Loop() {
				ix := search.New()
				set.Fill(ix)
				ix.Len()
			}
		})
	}
}

// BenchmarkUpdate replaces the tools of one upstream and runs one query.
func BenchmarkUpdate(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			set := big(b, n)
			ix := search.New()
			set.Fill(ix)
			one := set.Docs[:30]
			b.ReportAllocs()
			for b.Loop() {
				ix.Put("changing", one)
				ix.Len()
			}
		})
	}
}
