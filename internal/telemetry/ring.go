package telemetry

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
)

// Ring stores the latest items in memory and publishes new ones to followers.
// Add never blocks: a slow follower loses items, and missed counts them.
type Ring[T any] struct {
	mu        sync.Mutex
	items     []T
	next      int // index of the oldest item once items is full
	size      int
	followers map[*follower[T]]struct{}
}

type follower[T any] struct {
	ch     chan T
	missed atomic.Int64
}

// NewRing returns a Ring of at most size items.
func NewRing[T any](size int) *Ring[T] {
	return &Ring[T]{size: max(1, size), followers: map[*follower[T]]struct{}{}}
}

// Add adds an item. If the ring is full, it replaces the oldest.
func (r *Ring[T]) Add(item T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.items) < r.size {
		r.items = append(r.items, item)
	} else {
		r.items[r.next] = item
		r.next = (r.next + 1) % r.size
	}
	for f := range r.followers {
		select {
		case f.ch <- item:
		default:
			f.missed.Add(1)
		}
	}
}

// Latest returns the newest n items, oldest first, or all if n is 0.
func (r *Ring[T]) Latest(n int) []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.latest(n)
}

func (r *Ring[T]) latest(n int) []T {
	all := append(append(make([]T, 0, len(r.items)), r.items[r.next:]...), r.items[:r.next]...)
	if n > 0 && n < len(all) {
		return all[len(all)-n:]
	}
	return all
}

// Follow returns the newest n items (all if n is 0) and a channel of later
// items, without a gap in between, until ctx is done. missed returns how many
// items the channel had no room for since the last call of missed.
func (r *Ring[T]) Follow(ctx context.Context, n int) (latest []T, more <-chan T, missed func() int64) {
	f := &follower[T]{ch: make(chan T, 256)}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.followers[f] = struct{}{}
	context.AfterFunc(ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.followers, f)
	})
	return r.latest(n), f.ch, func() int64 { return f.missed.Swap(0) }
}

// LogEntry is one line of the gateway's log in the debug API.
type LogEntry struct {
	Timestamp int64           `json:"timestamp"` // Unix time in milliseconds
	Level     string          `json:"level"`     // TRACE, DEBUG, INFO, WARN, ERROR or FATAL
	Message   string          `json:"message"`
	Details   json.RawMessage `json:"details,omitempty"`
}
