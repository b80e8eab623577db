package executor

import (
	"fmt"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"junctor/internal/tool"
)

// maxLimiters bounds how many callers and tools are counted at once. When
// there are more, those that have been idle long enough to be full again are
// forgotten, which changes nothing for them.
const maxLimiters = 10_000

// limiter holds a token bucket for each caller and tool that has a limit.
type limiter struct {
	mu      sync.Mutex
	buckets map[string]*rate.Limiter
}

// allow takes one token of the caller's and one of the tool's, or says when
// the next one comes. A forwarded request has no tool.
func (l *limiter) allow(caller *tool.Caller, n tool.Name, cfg LimitConfig) error {
	now := time.Now()
	var taken []*rate.Reservation
	take := func(key, who string, calls int, per time.Duration) error {
		if calls <= 0 || per <= 0 {
			return nil
		}
		r := l.bucket(key, calls, per).ReserveN(now, 1)
		if wait := r.DelayFrom(now); wait > 0 {
			r.CancelAt(now)
			for _, t := range taken {
				t.CancelAt(now)
			}
			return &tool.Error{
				Kind:       tool.RateLimited,
				Msg:        fmt.Sprintf("too many calls %s: %d in %s are allowed; try again in %s", who, calls, per, max(wait.Round(time.Second), time.Second)),
				RetryAfter: wait,
			}
		}
		taken = append(taken, r)
		return nil
	}
	if err := take("key "+caller.ID, "by this key", caller.Rate.Calls, caller.Rate.Per); err != nil {
		return err
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

func (l *limiter) bucket(key string, calls int, per time.Duration) *rate.Limiter {
	every := rate.Every(per / time.Duration(calls))
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[key]
	if b == nil || b.Burst() != calls || b.Limit() != every {
		if l.buckets == nil {
			l.buckets = map[string]*rate.Limiter{}
		}
		if len(l.buckets) >= maxLimiters {
			for k, idle := range l.buckets {
				if idle.Tokens() >= float64(idle.Burst()) {
					delete(l.buckets, k)
				}
			}
		}
		b = rate.NewLimiter(every, calls)
		l.buckets[key] = b
	}
	return b
}
