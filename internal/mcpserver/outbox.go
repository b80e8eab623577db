package mcpserver

import (
	"bytes"
	"sync"

	"junctor/internal/mcp"
)

// outbox is the bounded send queue of a connection, drained by one goroutine.
type outbox struct {
	link mcp.Link
	max  int // bytes

	mu      sync.Mutex
	room    *sync.Cond
	queue   []*mcp.Message
	bytes   int
	blocked int  // responses that wait for room
	sending bool // a response is being sent
	closed  bool
	wake    chan struct{}
}

// outboxMessages bounds the notifications that are queued for a slow reader.
const outboxMessages = 1024

func newOutbox(link mcp.Link, max int) *outbox {
	o := &outbox{link: link, max: max, wake: make(chan struct{}, 1)}
	o.room = sync.NewCond(&o.mu)
	return o
}

func sizeOf(m *mcp.Message) int {
	n := len(m.ID) + len(m.Method) + len(m.Params) + len(m.Result) + 64
	if m.Error != nil {
		n += len(m.Error.Message) + len(m.Error.Data)
	}
	return n
}

// put queues a notification or a question, or drops it if the reader is too
// slow.
func (o *outbox) put(m *mcp.Message) (taken bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || !o.fits(m) {
		return false
	}
	if m.ID == "" && m.Params == nil && o.waiting(m) {
		return true // a list_changed that is already queued is not repeated
	}
	o.add(m)
	return true
}

// fits reports whether a notification or a question may be queued. Only
// questions count towards the limit of questions, because a call waits for each
// of them.
func (o *outbox) fits(m *mcp.Message) bool {
	if m.ID == "" {
		return len(o.queue) < outboxMessages && o.bytes+sizeOf(m) <= o.max
	}
	size := 0
	for _, other := range o.queue {
		if other.IsRequest() {
			size += sizeOf(other)
		}
	}
	return size == 0 || size+sizeOf(m) <= o.max
}

func (o *outbox) waiting(m *mcp.Message) bool {
	for _, other := range o.queue {
		if other.Method == m.Method && other.ID == "" && bytes.Equal(other.Params, m.Params) {
			return true
		}
	}
	return false
}

// answer queues a response. It waits for room, which blocks only its own call.
func (o *outbox) answer(m *mcp.Message) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.closed && len(o.queue) > 0 && o.bytes+sizeOf(m) > o.max {
		o.blocked++
		o.room.Wait()
		o.blocked--
	}
	if !o.closed {
		o.add(m)
	}
}

// answers returns the number of responses that are queued or being sent.
func (o *outbox) answers() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := 0
	if o.sending {
		n++
	}
	for _, m := range o.queue {
		if m.IsResponse() {
			n++
		}
	}
	return n
}

// awaitReader waits while max or more responses wait for room, so that a caller
// that does not read cannot send requests without bound.
func (o *outbox) awaitReader(max int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !o.closed && o.blocked >= max {
		o.room.Wait()
	}
}

func (o *outbox) add(m *mcp.Message) {
	o.queue = append(o.queue, m)
	o.bytes += sizeOf(m)
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// run sends queued messages until the outbox is closed and empty, or a send
// fails.
func (o *outbox) run() error {
	for {
		o.mu.Lock()
		if len(o.queue) == 0 {
			closed := o.closed
			o.queue = nil
			o.mu.Unlock()
			if closed {
				return nil
			}
			<-o.wake
			continue
		}
		m := o.queue[0]
		o.queue[0] = nil
		o.queue = o.queue[1:]
		o.sending = m.IsResponse()
		o.mu.Unlock()
		err := o.link.Send(m)
		o.mu.Lock()
		o.sending = false
		o.bytes -= sizeOf(m)
		o.room.Broadcast()
		if err != nil {
			o.closed, o.queue = true, nil
			o.mu.Unlock()
			return err
		}
		o.mu.Unlock()
	}
}

func (o *outbox) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.room.Broadcast()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}
