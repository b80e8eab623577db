package telemetry

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"sync/atomic"
)

// Ring keeps the latest of many things in memory and hands new ones to those
// who follow. Adding never blocks: who follows too slowly loses some, and is
// told how many.
type Ring[T any] struct {
	mu        sync.Mutex
	items     []T
	next      int // where the next goes once items is full
	size      int
	followers map[*follower[T]]struct{}
}

type follower[T any] struct {
	ch     chan T
	missed atomic.Int64
}

// NewRing makes a Ring of at most size things.
func NewRing[T any](size int) *Ring[T] {
	return &Ring[T]{size: max(1, size), followers: map[*follower[T]]struct{}{}}
}

// Add keeps one more thing, in place of the oldest when the ring is full.
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

// Latest returns the newest n things, oldest first; all when n is 0.
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

// Follow returns the newest n things (all when n is 0) and a channel of those
// that come after them, without a gap between, until ctx is done. missed
// returns how many the channel had no room for since it was last asked.
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

// LogEntry is one line of the log as the debug API shows it.
type LogEntry struct {
	Timestamp int64           `json:"timestamp"` // milliseconds since 1970
	Level     string          `json:"level"`     // TRACE, DEBUG, INFO, WARN, ERROR, FATAL
	Message   string          `json:"message"`
	Details   json.RawMessage `json:"details,omitempty"`
}

// recentHandler writes records into a ring. The attributes become details
// through slog's own JSON handler, so that they look as they do in the log.
type recentHandler struct {
	ring    *Ring[LogEntry]
	mu      *sync.Mutex
	buf     *bytes.Buffer
	details slog.Handler
}

func newRecentHandler(ring *Ring[LogEntry], level slog.Leveler) recentHandler {
	h := recentHandler{ring: ring, mu: &sync.Mutex{}, buf: &bytes.Buffer{}}
	h.details = slog.NewJSONHandler(h.buf, &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
			return slog.Attr{}
		}
		return a
	}})
	return h
}

func (h recentHandler) Enabled(ctx context.Context, l slog.Level) bool {
	return h.details.Enabled(ctx, l)
}

func (h recentHandler) Handle(ctx context.Context, rec slog.Record) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.buf.Reset()
	if err := h.details.Handle(ctx, rec); err != nil {
		return err
	}
	entry := LogEntry{Timestamp: rec.Time.UnixMilli(), Level: levelName(rec.Level), Message: rec.Message}
	if details := bytes.TrimSpace(h.buf.Bytes()); string(details) != "{}" {
		entry.Details = bytes.Clone(details)
	}
	h.ring.Add(entry)
	return nil
}

func (h recentHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	h.details = h.details.WithAttrs(attrs)
	return h
}

func (h recentHandler) WithGroup(name string) slog.Handler {
	h.details = h.details.WithGroup(name)
	return h
}
