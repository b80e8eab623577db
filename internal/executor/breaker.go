package executor

import (
	"slices"
	"sync"
	"time"

	"junctor/internal/tool"
)

// State is the state of a tool's circuit breaker.
type State string

// The states of a circuit.
const (
	Closed   State = "closed"    // calls go through
	Open     State = "open"      // calls are refused until the cool-down ends
	HalfOpen State = "half-open" // the cool-down has ended; one trial is admitted or in progress
)

// Stats are the statistics of the calls of a tool.
type Stats struct {
	Calls       int           `json:"calls"`
	Successes   int           `json:"successes"`
	Failures    int           `json:"failures"`
	LastFailure time.Time     `json:"lastFailure,omitzero"`
	LastUse     time.Time     `json:"lastUse,omitzero"`
	MeanLatency time.Duration `json:"meanLatencyNs"` // in nanoseconds; recent calls count most
	Circuit     State         `json:"circuit"`
}

// smoothing is the weight of the newest call in the mean latency.
const smoothing = 0.2

// breaker is the circuit breaker and the call statistics of one tool.
//
// A failure counts while it is inside the window, and each success removes the
// oldest one. When the count reaches the threshold the circuit opens. After the
// cool-down it admits one trial call, whose outcome closes or reopens it. Each
// of these changes begins a generation, and a call affects only the generation
// in which it was admitted: a late result of an older call is counted in the
// statistics but does not change the circuit.
type breaker struct {
	mu       sync.Mutex
	stats    Stats
	failures []time.Time // inside the window, oldest first
	opened   time.Time   // zero when closed
	trial    bool        // the one trial is in progress

	generation int
}

// permit is the admission of one call, to be passed to done when the call ends.
type permit struct {
	generation int
	trial      bool
}

// refuses returns for how long a call would be refused, or 0 if it would be
// admitted. While a trial is in progress the time is unknown, and refuses
// returns one second.
func (b *breaker) refuses(cfg CircuitConfig, now time.Time) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.wait(cfg, now)
}

func (b *breaker) wait(cfg CircuitConfig, now time.Time) time.Duration {
	if b.opened.IsZero() {
		return 0
	}
	if left := cfg.CoolDownMs.Duration() - now.Sub(b.opened); left > 0 {
		return left
	}
	if b.trial {
		return time.Second
	}
	return 0
}

// admit admits a call, or returns how long to wait before the next attempt.
func (b *breaker) admit(cfg CircuitConfig, now time.Time) (p permit, wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if wait := b.wait(cfg, now); wait > 0 {
		return permit{}, wait
	}
	b.trial = !b.opened.IsZero()
	return permit{b.generation, b.trial}, 0
}

// change opens the circuit, or closes it when opened is zero. The caller holds
// b.mu.
func (b *breaker) change(opened time.Time) {
	b.opened, b.failures, b.trial = opened, nil, false
	b.generation++
}

// outcome is the effect of an admitted call on the circuit.
type outcome int

const (
	succeeded    outcome = iota // the upstream responded
	reported                    // the tool ran and reported an error; its upstream is healthy
	failed                      // the upstream failed
	inconclusive                // the call ended for another reason, such as cancellation
)

// done records the outcome of an admitted call and reports whether it opened or
// closed the circuit.
func (b *breaker) done(cfg CircuitConfig, p permit, how outcome, now time.Time, took time.Duration) (changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	wasOpen := !b.opened.IsZero()
	defer func() { changed = wasOpen != !b.opened.IsZero() }()
	current := p.generation == b.generation
	if current && p.trial {
		b.trial = false
	}
	if how == inconclusive {
		return false
	}
	b.stats.Calls++
	b.stats.LastUse = now
	if b.stats.MeanLatency == 0 {
		b.stats.MeanLatency = took
	} else {
		b.stats.MeanLatency += time.Duration(smoothing * float64(took-b.stats.MeanLatency))
	}
	b.expire(cfg, now)
	switch how {
	case succeeded:
		b.stats.Successes++
	default:
		b.stats.Failures++
		b.stats.LastFailure = now
	}
	switch {
	case !current:
	case how != failed && p.trial:
		b.change(time.Time{})
	case how != failed:
		if len(b.failures) > 0 {
			b.failures = b.failures[1:]
		}
	default:
		b.failures = append(b.failures, now)
		if p.trial || len(b.failures) >= cfg.Threshold {
			b.change(now)
		}
	}
	return false
}

func (b *breaker) expire(cfg CircuitConfig, now time.Time) {
	b.failures = slices.DeleteFunc(b.failures, func(t time.Time) bool { return now.Sub(t) > cfg.WindowMs.Duration() })
}

func (b *breaker) snapshot(cfg CircuitConfig, now time.Time) Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.stats
	switch {
	case b.opened.IsZero():
		s.Circuit = Closed
	case b.trial || now.Sub(b.opened) >= cfg.CoolDownMs.Duration():
		s.Circuit = HalfOpen
	default:
		s.Circuit = Open
	}
	return s
}

// breakers holds one breaker for each tool that has been called.
type breakers struct{ byName sync.Map } // tool.Name → *breaker

func (b *breakers) get(n tool.Name) *breaker {
	if got, ok := b.byName.Load(n); ok {
		return got.(*breaker)
	}
	got, _ := b.byName.LoadOrStore(n, &breaker{})
	return got.(*breaker)
}

func (b *breakers) peek(n tool.Name) *breaker {
	if got, ok := b.byName.Load(n); ok {
		return got.(*breaker)
	}
	return nil
}
