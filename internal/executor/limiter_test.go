package executor

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/setting"
	"junctor/internal/tool"
)

// budget is one limit that several limiters share.
type budget struct {
	mu    sync.Mutex
	left  int
	asked int
	err   error
}

func (b *budget) TakeBudget(_ context.Context, _ string, _ tool.Rate, want int) (int, time.Duration, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked++
	got := min(want, b.left)
	b.left -= got
	if got == 0 {
		return 0, time.Minute, b.err
	}
	return got, 0, b.err
}

// TestSharedLimit: the limit applies to all processes together, and each takes
// it in shares.
func TestSharedLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &budget{left: 1000}
		nodes := []*limiter{{budgets: b}, {budgets: b}, {budgets: b}}
		caller := &tool.Caller{ID: "key:x", Rate: tool.Rate{Calls: 1000, Per: time.Minute}}
		served := 0
		for i := range 3000 {
			if nodes[i%3].allow(caller, tool.Name{}, LimitConfig{}) == nil {
				served++
			}
		}
		if served != 1000 || b.asked > 30 {
			t.Errorf("%d served of 1000, asked %d times", served, b.asked)
		}
		err := nodes[0].allow(caller, tool.Name{}, LimitConfig{})
		if e := tool.AsError(err); e.Kind != tool.RateLimited || e.RetryAfter != time.Minute {
			t.Errorf("over the limit: %v", err)
		}
		// The rest of a share expires.
		b.left = 100
		time.Sleep(time.Minute)
		if err := nodes[0].allow(caller, tool.Name{}, LimitConfig{}); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		asked := b.asked
		if err := nodes[0].allow(caller, tool.Name{}, LimitConfig{}); err != nil || b.asked == asked {
			t.Errorf("a share outlived its time: %v", err)
		}
	})
}

// TestRefusedCallReturnsOtherLimit: a call that one limit refuses does not
// count against the other.
func TestRefusedCallReturnsOtherLimit(t *testing.T) {
	caller := &tool.Caller{ID: "x", Rate: tool.Rate{Calls: 2, Per: time.Hour}}
	tight := LimitConfig{ToolRate: &setting.Rate{Calls: 1, PerMs: 3_600_000}}
	name := tool.Name{Server: "a", Tool: "b"}
	own, shared := &limiter{}, &limiter{budgets: &budget{left: 3}}
	for what, l := range map[string]*limiter{"own": own, "shared": shared} {
		if err := l.allow(caller, name, tight); err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	for range 5 {
		if own.allow(caller, name, tight) == nil {
			t.Error("the tool's limit does not hold")
		}
	}
	if err := own.allow(caller, tool.Name{Server: "a", Tool: "c"}, tight); err != nil {
		t.Errorf("what was refused was counted: %v", err)
	}
}

// TestSharedLimitWithoutStore: while the store is unavailable each process
// applies the limit on its own.
func TestSharedLimitWithoutStore(t *testing.T) {
	l := &limiter{budgets: &budget{err: errors.New("away")}}
	caller := &tool.Caller{ID: "x", Rate: tool.Rate{Calls: 3, Per: time.Hour}}
	served := 0
	for range 10 {
		if l.allow(caller, tool.Name{}, LimitConfig{}) == nil {
			served++
		}
	}
	if served != 3 {
		t.Errorf("%d served of 3", served)
	}
}

// hangingBudget never answers.
type hangingBudget struct{ asked atomic.Int64 }

func (b *hangingBudget) TakeBudget(ctx context.Context, _ string, _ tool.Rate, _ int) (int, time.Duration, error) {
	b.asked.Add(1)
	<-ctx.Done()
	return 0, 0, ctx.Err()
}

// TestCallsDoNotQueueBehindHangingStore: calls of one key do not queue behind a
// store that hangs. Concurrent calls wait for one query, then the store is not
// queried for a while and the limit applies in this process.
func TestCallsDoNotQueueBehindHangingStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &hangingBudget{}
		l := &limiter{budgets: b, timeout: 2 * time.Second}
		caller := &tool.Caller{ID: "a", Rate: tool.Rate{Calls: 20, Per: time.Hour}}
		begun := time.Now()
		var refused atomic.Int64
		var wg sync.WaitGroup
		for range 30 {
			wg.Go(func() {
				if l.allow(caller, tool.Name{}, LimitConfig{}) != nil {
					refused.Add(1)
				}
			})
		}
		wg.Wait()
		if took := time.Since(begun); took != 2*time.Second || b.asked.Load() != 1 || refused.Load() != 10 {
			t.Errorf("30 calls took %v and asked %d times, %d were refused; want one timeout, one query, ten over the limit", took, b.asked.Load(), refused.Load())
		}
		begun = time.Now()
		for range 5 {
			_ = l.allow(caller, tool.Name{}, LimitConfig{})
		}
		if took := time.Since(begun); took != 0 {
			t.Errorf("the next calls took %v, want no waiting", took)
		}
		time.Sleep(budgetRetryDelay)
		_ = l.allow(caller, tool.Name{}, LimitConfig{})
		if b.asked.Load() != 2 {
			t.Errorf("asked %d times, want again after a while", b.asked.Load())
		}
	})
}

// limitedProfile is a profile with a rate.
type limitedProfile struct {
	tool.UnknownProfile
	rate tool.Rate
}

func (p limitedProfile) Settings() tool.ProfileSettings {
	return tool.ProfileSettings{Rate: p.rate, Ask: true}
}

// TestProfileLimitsEachCaller: the rate of a profile applies in addition to the
// caller's own, separately for each caller and only with the profile.
func TestProfileLimitsEachCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l limiter
		p := tool.Profiles{limitedProfile{"p", tool.Rate{Calls: 2, Per: time.Minute}}}
		ann := tool.Caller{ID: "ann", Rate: tool.Rate{Calls: 4, Per: time.Minute}}
		narrowed, bob := ann, tool.Caller{ID: "bob", Profiles: p}
		narrowed.Profiles = p
		for i, tt := range []struct {
			caller *tool.Caller
			ok     bool
		}{{&narrowed, true}, {&narrowed, true}, {&narrowed, false}, {&bob, true}, {&ann, true}, {&ann, true}, {&ann, false}, {&narrowed, false}} {
			if err := l.allow(tt.caller, tool.Name{}, LimitConfig{}); (err == nil) != tt.ok {
				t.Errorf("call %d by %s: %v", i, tt.caller.View(), err)
			}
		}
	})
}
