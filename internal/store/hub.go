package store

import (
	"context"
	"sync"
)

// Hub fans announcements out to the watchers of this process. The zero Hub is
// ready. Engines embed it and add what other processes announce.
type Hub struct {
	mu       sync.Mutex
	watchers map[string]map[chan struct{}]struct{}
}

// Watch implements the half of [Changes] that concerns this process.
func (h *Hub) Watch(ctx context.Context, topic string) <-chan struct{} {
	ch := make(chan struct{}, 1)
	h.mu.Lock()
	if h.watchers == nil {
		h.watchers = map[string]map[chan struct{}]struct{}{}
	}
	if h.watchers[topic] == nil {
		h.watchers[topic] = map[chan struct{}]struct{}{}
	}
	h.watchers[topic][ch] = struct{}{}
	h.mu.Unlock()
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watchers[topic], ch)
		if len(h.watchers[topic]) == 0 {
			delete(h.watchers, topic)
		}
	})
	return ch
}

// Wake signals the watchers of a topic. A watcher that has not taken the last
// signal yet gets no second one.
func (h *Hub) Wake(topic string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ch := range h.watchers[topic] {
		signal(ch)
	}
}

// WakeAll signals every watcher: something changed, or may have.
func (h *Hub) WakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, watchers := range h.watchers {
		for ch := range watchers {
			signal(ch)
		}
	}
}

// Watched reports whether anyone watches anything.
func (h *Hub) Watched() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.watchers) > 0
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}
