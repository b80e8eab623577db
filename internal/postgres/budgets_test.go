package postgres

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"junctor/internal/tool"
)

// TestBudgets checks that a budget grants no more than it holds and is refilled
// over time.
func TestBudgets(t *testing.T) {
	s, ctx := openAt(t, config(shared.Database(t))), t.Context()
	slow := tool.Rate{Calls: 10, Per: 1000 * time.Hour}
	take := func(name string, rate tool.Rate, want int) (int, time.Duration) {
		t.Helper()
		got, wait, err := s.TakeBudget(ctx, name, rate, want)
		if err != nil {
			t.Fatal(err)
		}
		return got, wait
	}
	for _, step := range []struct{ want, got int }{{4, 4}, {4, 4}, {4, 2}, {4, 0}} {
		got, wait := take("a", slow, step.want)
		if got != step.got || (wait > 0) != (got == 0) {
			t.Errorf("asked for %d: got %d, wait %v; want %d", step.want, got, wait, step.got)
		}
	}
	if _, wait := take("a", slow, 1); wait < 50*time.Hour || wait > 100*time.Hour {
		t.Errorf("the next call comes in %v, want up to 100 h", wait)
	}
	if got, _ := take("b", slow, 20); got != 10 {
		t.Errorf("another budget gave %d, want its 10", got)
	}
	for name, rate := range map[string]tool.Rate{"no rate": {}, "no time": {Calls: 5}} {
		if got, _ := take(name, rate, 1); got != 0 {
			t.Errorf("%s: got %d", name, got)
		}
	}
	quick := tool.Rate{Calls: 5, Per: 50 * time.Millisecond}
	take("c", quick, 5)
	for got := 0; got == 0; got, _ = take("c", quick, 1) { // bounded by the timeout of the test
		time.Sleep(5 * time.Millisecond)
	}
}

// TestBudgetOfSeveralNodes checks that several nodes together get no more than
// the budget holds.
func TestBudgetOfSeveralNodes(t *testing.T) {
	cfg, ctx := config(shared.Database(t)), t.Context()
	handles := []*Store{openAt(t, cfg), openAt(t, cfg)}
	var sum atomic.Int32
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			got, _, err := handles[i%2].TakeBudget(ctx, "a", tool.Rate{Calls: 50, Per: 1000 * time.Hour}, 7)
			if err != nil {
				t.Error(err)
			}
			sum.Add(int32(got))
		})
	}
	wg.Wait()
	if sum.Load() != 50 {
		t.Errorf("20 who asked for 7 each got %d together, want 50", sum.Load())
	}
}
