package executor

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"junctor/internal/tool"
)

// maxLimiters is the number of buckets above which those with a full local
// limiter are removed. A bucket that is only local loses nothing by that; one
// with a share loses the rest of the share.
const maxLimiters = 10_000

// Budgets stores rate limits that several processes share. Each process takes a
// number of calls in advance and spends them locally.
type Budgets interface {
	// TakeBudget takes up to want calls from the budget with that name. If
	// there are none left, it returns how long to wait.
	TakeBudget(ctx context.Context, name string, rate tool.Rate, want int) (got int, wait time.Duration, err error)
}

const (
	// A process takes 1/sharePart of a limit in advance, but at most maxShare
	// calls, so that a few processes cannot hold back much of the limit.
	sharePart = 20
	maxShare  = 100
	// budgetRetryDelay is how long the store is not queried after a failed
	// query. Meanwhile each process applies the limit on its own.
	budgetRetryDelay = time.Second
)

// limiter has a token bucket for each caller and tool that has a limit and,
// with Budgets, this process's share of the limit that all processes have in
// common.
type limiter struct {
	budgets Budgets       // nil if limits are not shared with other processes
	timeout time.Duration // bounds how long a call waits for its share

	mu      sync.Mutex
	buckets map[string]*bucket
}

// bucket counts the calls of one caller or tool.
type bucket struct {
	own *rate.Limiter // applies if the limit is not shared or the store is unavailable

	mu      sync.Mutex    // never held during a query
	share   int           // calls taken in advance
	until   time.Time     // when the remaining ones expire
	empty   time.Time     // until when the shared budget is exhausted
	local   time.Time     // until when the store is not queried, because a query failed
	pending chan struct{} // closed when the query in progress has finished; nil if there is none
}

// allow takes one token of every limit that applies to the call: those of the
// caller, its profiles and the tool. If one has none, the others get theirs
// back, and the error contains the time until the next token. A forwarded
// request has no tool.
func (l *limiter) allow(caller *tool.Caller, n tool.Name, cfg LimitConfig) error {
	now := time.Now()
	var taken []func()
	take := func(key, who string, calls int, per time.Duration) error {
		if calls <= 0 || per <= 0 {
			return nil
		}
		wait, giveBack := l.take(key, tool.Rate{Calls: calls, Per: per}, now)
		if wait > 0 {
			for _, back := range taken {
				back()
			}
			return &tool.Error{
				Kind:       tool.RateLimited,
				Msg:        fmt.Sprintf("too many calls %s: %d in %s are allowed; try again in %s", who, calls, per, max(wait.Round(time.Second), time.Second)),
				RetryAfter: wait,
			}
		}
		taken = append(taken, giveBack)
		return nil
	}
	if r := caller.Rate; r.Calls > 0 {
		if err := take("key "+caller.ID, "by this key", r.Calls, r.Per); err != nil {
			return err
		}
	}
	for _, p := range caller.Profiles {
		if r := p.Settings().Rate; r.Calls > 0 {
			if err := take("profile "+p.Name()+" "+caller.ID, "with the profile "+p.Name(), r.Calls, r.Per); err != nil {
				return err
			}
		}
	}
	if r := cfg.CallerRate; r != nil {
		if err := take("caller "+caller.ID, "by this caller", r.Calls, r.Per()); err != nil {
			return err
		}
	}
	if r := cfg.ToolRate; r != nil && n.Tool != "" {
		return take("tool "+n.String(), "of "+n.String(), r.Calls, r.Per())
	}
	return nil
}

// take takes one call from the budget. It returns how long to wait if there is
// none, otherwise a function that undoes it.
func (l *limiter) take(key string, r tool.Rate, now time.Time) (wait time.Duration, giveBack func()) {
	b := l.bucket(key, r.Calls, r.Per)
	if l.budgets != nil {
		wait, shared := b.spend(l, key, r, now)
		if shared {
			return wait, b.refund
		}
		// The store is unavailable, so the limit applies to each process.
	}
	res := b.own.ReserveN(now, 1)
	if wait := res.DelayFrom(now); wait > 0 {
		res.CancelAt(now)
		return wait, nil
	}
	return 0, func() { res.CancelAt(now) }
}

// spend takes one call of the share, or returns how long to wait. If the share
// is used up, one call requests a new one and concurrent calls wait for it. ok
// is false if the store is unavailable.
func (b *bucket) spend(l *limiter, key string, r tool.Rate, now time.Time) (wait time.Duration, ok bool) {
	for {
		b.mu.Lock()
		switch {
		case b.share > 0 && now.Before(b.until):
			b.share--
			b.mu.Unlock()
			return 0, true
		case now.Before(b.empty):
			wait = b.empty.Sub(now)
			b.mu.Unlock()
			return wait, true
		case now.Before(b.local):
			b.mu.Unlock()
			return 0, false
		}
		pending := b.pending
		if pending == nil {
			b.pending = make(chan struct{})
		}
		b.mu.Unlock()
		if pending == nil {
			b.refill(l, key, r, now)
		} else {
			<-pending // the query has a timeout
		}
	}
}

// refill requests a new share from the store and records the result.
func (b *bucket) refill(l *limiter, key string, r tool.Rate, now time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), cmp.Or(l.timeout, budgetRetryDelay))
	defer cancel()
	got, wait, err := l.budgets.TakeBudget(ctx, key, r, min(maxShare, max(1, r.Calls/sharePart)))
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case err != nil:
		b.local = time.Now().Add(budgetRetryDelay)
	case got == 0:
		b.share, b.empty = 0, now.Add(max(wait, 1))
	default:
		b.share, b.until = got, now.Add(r.Per)
	}
	close(b.pending)
	b.pending = nil
}

func (b *bucket) refund() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.share++
}

func (l *limiter) bucket(key string, calls int, per time.Duration) *bucket {
	every := rate.Every(per / time.Duration(calls))
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[key]
	if b == nil || b.own.Burst() != calls || b.own.Limit() != every {
		if l.buckets == nil {
			l.buckets = map[string]*bucket{}
		}
		if len(l.buckets) >= maxLimiters {
			for k, idle := range l.buckets {
				if idle.own.Tokens() >= float64(idle.own.Burst()) {
					delete(l.buckets, k)
				}
			}
		}
		b = &bucket{own: rate.NewLimiter(every, calls)}
		l.buckets[key] = b
	}
	return b
}
