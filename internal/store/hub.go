package store

import (
	"context"
	"sync"
)

// Hub delivers announcements to the watchers in this process. The zero Hub is
// ready to use. Engines embed it and add the announcements of other processes.
type Hub struct {
	mu       sync.Mutex
	watchers map[string]map[chan struct{}]struct{}
}

// Watch implements [Changes] for announcements in this process.
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

// Wake signals the watchers of a topic. A watcher that has not yet received the
// last signal gets no second one.
func (h *Hub) Wake(topic string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ch := range h.watchers[topic] {
		signal(ch)
	}
}

// WakeAll signals every watcher: anything may have changed.
func (h *Hub) WakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, watchers := range h.watchers {
		for ch := range watchers {
			signal(ch)
		}
	}
}

// Watched reports whether there are watchers.
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
