package executor

import (
	"context"
	"sync"
	"time"
)

// lateContext is a context with a deadline whose timer is created when Done is
// first called. Most records are committed without waiting, and a timer for
// each would be more expensive than reading the clock. Its parent must never be
// cancelled.
type lateContext struct {
	context.Context
	deadline time.Time

	mu      sync.Mutex
	waiting context.Context // nil until Done is called or the deadline has passed
	cancel  context.CancelFunc
	stopped bool
}

// Deadline implements context.Context.
func (c *lateContext) Deadline() (time.Time, bool) { return c.deadline, true }

// Done implements context.Context.
func (c *lateContext) Done() <-chan struct{} { return c.inner().Done() }

// Err implements context.Context.
func (c *lateContext) Err() error {
	c.mu.Lock()
	waiting, stopped := c.waiting, c.stopped
	c.mu.Unlock()
	switch {
	case waiting != nil:
		return waiting.Err()
	case stopped:
		return context.Canceled
	case !time.Now().Before(c.deadline):
		return c.inner().Err() // so that Err and Done agree from now on
	}
	return nil
}

func (c *lateContext) inner() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting, c.cancel = context.WithDeadline(c.Context, c.deadline)
		if c.stopped {
			c.cancel()
		}
	}
	return c.waiting
}

// stop cancels the context and releases its timer.
func (c *lateContext) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
	if c.cancel != nil {
		c.cancel()
	}
}
