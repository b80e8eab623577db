package mcpclient

import (
	"context"
	"fmt"
	"slices"
	"time"

	"junctor/internal/tool"
)

// maxQueuedCalls bounds the queue of calls on a connection.
const maxQueuedCalls = 1024

// queuedCall is a call in the queue.
type queuedCall struct {
	cl   *pendingRequest
	turn chan struct{} // closed when the call is registered
}

// register adds a request to those in flight. If calls run one at a time, it
// waits until the calls before it have ended.
func (c *Client) register(ctx context.Context, cl *pendingRequest) error {
	c.mu.Lock()
	if !c.mustQueue(cl) {
		c.add(cl)
		c.mu.Unlock()
		return nil
	}
	if len(c.queue) >= maxQueuedCalls {
		c.mu.Unlock()
		return &tool.Error{Kind: tool.RateLimited, RetryAfter: time.Second, Msg: fmt.Sprintf("%d calls are queued on this connection, which runs one call at a time; try again later", maxQueuedCalls)}
	}
	q := &queuedCall{cl, make(chan struct{})}
	c.queue = append(c.queue, q)
	c.mu.Unlock()
	if queued := cl.ex.Queued; queued != nil {
		queued(true)
		defer queued(false)
	}
	var err error
	select {
	case <-q.turn:
		return nil
	case <-ctx.Done():
		err = c.callError(ctx, ctx.Err())
	case <-c.done:
		err = c.closedError(c.Err())
	}
	c.mu.Lock()
	i := slices.Index(c.queue, q)
	if i >= 0 {
		c.queue = slices.Delete(c.queue, i, i+1)
	}
	c.mu.Unlock()
	if i < 0 { // it was registered meanwhile
		c.unregister(cl)
	}
	return err
}

// mustQueue reports whether a call has to wait for others. c.mu is held.
func (c *Client) mustQueue(cl *pendingRequest) bool {
	if !c.oneAtATime || !causesMessages(cl.method) {
		return false
	}
	only, several := c.onlyInFlight()
	return only != nil || several || len(c.queue) > 0
}

// add adds a request to those in flight. c.mu is held.
func (c *Client) add(cl *pendingRequest) {
	c.calls[cl.id] = cl
	if cl.caller != "" && cl.caller != c.caller && causesMessages(cl.method) {
		c.severalCallers = c.severalCallers || c.caller != ""
		c.caller = cl.caller
	}
}

func (c *Client) unregister(cl *pendingRequest) {
	cl.finish()
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.calls, cl.id)
	for _, a := range c.serverRequests {
		if a.call == cl {
			a.cancel()
		}
	}
	if len(c.queue) > 0 {
		if only, several := c.onlyInFlight(); only == nil && !several {
			next := c.queue[0]
			c.queue = slices.Delete(c.queue, 0, 1)
			c.add(next.cl)
			close(next.turn)
		}
	}
	if cl.dropped > 0 {
		c.log.Warn("notifications dropped: the caller is too slow", "method", cl.method, "dropped", cl.dropped)
	}
}
