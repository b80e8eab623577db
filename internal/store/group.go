package store

import (
	"context"
	"slices"
	"sync"
)

// Group lets concurrent writers share one commit. A writer that arrives while
// no commit is running becomes the leader: it commits all waiting items,
// including its own, together. Writers that arrive meanwhile wait for the next
// commit. A single writer therefore never waits, and concurrent ones share
// commits, without a background goroutine.
type Group[T any] struct {
	work func(batch []*T)
	size int

	mu     sync.Mutex
	queue  []*member[T]
	batch  []*member[T] // the leader's
	items  []*T         // the leader's
	led    bool         // someone is leading
	closed bool
	idle   *sync.Cond // signalled when there is no leader
	pool   sync.Pool
}

type member[T any] struct {
	item   *T
	wake   chan bool // true: lead; false: done
	queued bool      // still waiting; may withdraw
}

// NewGroup returns a Group that calls work with at most size items at a time.
// work stores the outcome of each item in the item; it must not panic.
func NewGroup[T any](size int, work func(batch []*T)) *Group[T] {
	g := &Group[T]{work: work, size: size}
	g.idle = sync.NewCond(&g.mu)
	g.pool.New = func() any { return &member[T]{wake: make(chan bool, 1)} }
	return g
}

// Do returns nil after work has processed item. If ctx is done before that
// begins, Do withdraws the item and returns the error of ctx. Work in progress
// is not abandoned, because it finishes soon.
func (g *Group[T]) Do(ctx context.Context, item *T) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	m := g.pool.Get().(*member[T])
	m.item, m.queued = item, true
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return ErrClosed
	}
	g.queue = append(g.queue, m)
	lead := !g.led
	g.led = true
	g.mu.Unlock()

	if !lead {
		select {
		case lead = <-m.wake:
		case <-ctx.Done():
			if g.withdraw(m) {
				return ctx.Err()
			}
			lead = <-m.wake
		}
	}
	if lead {
		g.lead()
		<-m.wake // its own: it was the first of the batch
	}
	m.item = nil
	g.pool.Put(m)
	return nil
}

// Waiting returns the number of queued items.
func (g *Group[T]) Waiting() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.queue)
}

// Close rejects new items and waits for those in progress or queued. It reports
// whether the group was open.
func (g *Group[T]) Close() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	was := !g.closed
	g.closed = true
	for g.led {
		g.idle.Wait()
	}
	return was
}

// withdraw removes an item that is not being processed.
func (g *Group[T]) withdraw(m *member[T]) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !m.queued {
		return false
	}
	g.queue = slices.DeleteFunc(g.queue, func(q *member[T]) bool { return q == m })
	return true
}

// lead processes one batch and then makes the next waiting writer the leader,
// so that no writer works for others for longer than one commit.
func (g *Group[T]) lead() {
	g.mu.Lock()
	n := min(len(g.queue), g.size)
	g.batch = append(g.batch[:0], g.queue[:n]...)
	g.queue = append(g.queue[:0], g.queue[n:]...)
	g.items = g.items[:0]
	for _, m := range g.batch {
		m.queued = false
		g.items = append(g.items, m.item)
	}
	g.mu.Unlock()

	g.work(g.items)

	g.mu.Lock()
	defer g.mu.Unlock()
	clear(g.items)
	for i, m := range g.batch {
		g.batch[i] = nil
		m.wake <- false
	}
	if len(g.queue) == 0 {
		g.led = false
		g.idle.Broadcast()
		return
	}
	g.queue[0].queued = false // the leader must not withdraw: the others wait for it
	g.queue[0].wake <- true
}
