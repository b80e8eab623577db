package store

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestDurationPercentiles checks that percentiles from buckets are within one
// per cent of the exact ones, whatever the distribution, and after a merge.
func TestDurationPercentiles(t *testing.T) {
	var all Durations
	var exact []int64
	for part := range 5 {
		var d Durations
		for range 10_000 {
			v := int64(rand.ExpFloat64() * float64([]int64{1, 80, 2_000, 3_000_000, 1 << 40}[part]))
			d.Add(v)
			exact = append(exact, v)
		}
		all.Merge(&d)
	}
	slices.Sort(exact)
	for _, p := range []float64{0, 1, 50, 95, 99, 100} {
		rank := max(0, int(p/100*float64(len(exact)))-1)
		want, got := exact[rank], all.Percentile(p).Microseconds()
		if diff := got - want; max(diff, -diff) > want/100+1 {
			t.Errorf("p%v = %d µs, want %d", p, got, want)
		}
	}
	if got := (&Durations{}).Percentile(50); got != 0 {
		t.Errorf("p50 of nothing = %v", got)
	}
	all.Add(-int64(time.Second)) // a clock that was set back
	if got := all.Percentile(0); got != 0 {
		t.Errorf("p0 = %v, want 0", got)
	}
}
