package mcpserver

import "time"

// workerIdle is the minimum time that a goroutine waits for its next call.
const workerIdle = 5 * time.Second

// workerPool runs calls on goroutines that wait for the next call before they
// exit. The stack of a call grows large; reusing grown stacks saves a good part
// of the cost.
type workerPool struct {
	next   chan *call
	closed <-chan struct{}
}

func newWorkerPool(closed <-chan struct{}) workerPool {
	return workerPool{next: make(chan *call), closed: closed}
}

// do starts c immediately and does not wait for it.
func (p workerPool) do(c *call) {
	select {
	case p.next <- c: // a worker is idle
	default:
		go p.work(c)
	}
}

func (p workerPool) work(c *call) {
	idle := time.NewTicker(workerIdle) // a timer would have to be reset for every call
	defer idle.Stop()
	for used := true; ; {
		if c != nil {
			c.run()
			used = true
		}
		select {
		case c = <-p.next:
		case <-idle.C:
			if !used {
				return
			}
			c, used = nil, false
		case <-p.closed:
			return
		}
	}
}
