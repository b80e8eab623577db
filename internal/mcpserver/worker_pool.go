package mcpserver

import "time"

// workerIdle is how long a goroutine waits for its next call.
const workerIdle = 5 * time.Second

// workerPool runs calls on goroutines that wait a while for the next one. The
// stack of a call grows deep; reusing grown stacks saves a good part of the cost.
type workerPool struct {
	next   chan func()
	closed <-chan struct{}
}

func newWorkerPool(closed <-chan struct{}) workerPool {
	return workerPool{next: make(chan func()), closed: closed}
}

// do executes f, at once, and does not wait for it.
func (c workerPool) do(f func()) {
	select {
	case c.next <- f: // someone is free
	default:
		go c.work(f)
	}
}

func (c workerPool) work(f func()) {
	idle := time.NewTimer(workerIdle)
	defer idle.Stop()
	for {
		f()
		idle.Reset(workerIdle)
		select {
		case f = <-c.next:
		case <-idle.C:
			return
		case <-c.closed:
			return
		}
	}
}
