package nodes

import (
	"context"
	"errors"
	"io"
	"sync"
)

// maxWaiting bounds the receive queue of a connection, in bytes.
const maxWaiting = 64 << 20

var (
	errQueueFull = errors.New("the receive queue of a node connection is full")
	errFrameLost = errors.New("a frame of a node connection was lost")
)

// Conn is a message connection between two nodes. Messages arrive exactly once
// and in order.
type Conn struct {
	node   *Node
	to     string
	id     string
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	sent    int64 // number of frames, including the opening one
	got     int64
	queue   [][]byte
	bytes   int
	over    error // the reason why it has ended; nil while it is open
	arrived chan struct{}
}

func newConn(n *Node, to, id string) *Conn {
	l := &Conn{node: n, to: to, id: id, arrived: make(chan struct{}, 1)}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	return l
}

// Peer returns the id of the node at the other end.
func (l *Conn) Peer() string { return l.to }

// Done returns a channel that is closed when the connection has ended.
func (l *Conn) Done() <-chan struct{} { return l.ctx.Done() }

// Send queues a message. It does not wait for the other side.
func (l *Conn) Send(data []byte) error {
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	l.post(frame{Type: frameData, data: data})
	return nil
}

// post numbers a frame and queues it. Both happen under l.mu, so that frames
// are queued in order.
func (l *Conn) post(f frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent++
	f.Conn, f.N, f.From = l.id, l.sent, l.node.id
	l.node.send(l.to, f)
}

// Receive returns the next message of the other side. The error is io.EOF if
// it has closed the connection and ErrUnavailable if it is dead.
func (l *Conn) Receive(ctx context.Context) ([]byte, error) {
	for {
		l.mu.Lock()
		if len(l.queue) > 0 {
			data := l.queue[0]
			l.queue = l.queue[1:]
			l.bytes -= len(data)
			l.mu.Unlock()
			return data, nil
		}
		over := l.over
		l.mu.Unlock()
		if over != nil {
			return nil, over
		}
		select {
		case <-l.arrived:
		case <-l.ctx.Done():
		case <-ctx.Done():
			if l.ctx.Err() == nil { // otherwise ctx may be done because the connection has ended
				return nil, context.Cause(ctx)
			}
		}
	}
}

// Close ends the connection. The other side still receives what was sent
// before.
func (l *Conn) Close() {
	if l.end(io.EOF) {
		l.post(frame{Type: frameClose})
	}
}

// end closes the connection with a reason and reports whether it was open.
func (l *Conn) end(why error) bool {
	l.mu.Lock()
	was := l.over == nil
	if was {
		l.over = why
	}
	l.mu.Unlock()
	l.cancel(why)
	l.node.mu.Lock()
	delete(l.node.conns, l.id)
	l.node.mu.Unlock()
	return was
}

// take queues the data of a received frame. A duplicate frame is dropped; a
// missing one ends the connection.
func (l *Conn) take(f frame) {
	l.mu.Lock()
	if f.N == lastFrame { // the other side has forgotten the connection
		l.mu.Unlock()
		l.end(ErrUnavailable)
		return
	}
	if f.N <= l.got || l.over != nil {
		l.mu.Unlock()
		return
	}
	var why error
	switch {
	case f.N != l.got+1:
		why = errFrameLost
	case l.bytes+len(f.data) > maxWaiting:
		why = errQueueFull
	}
	if why != nil {
		l.mu.Unlock()
		if l.end(why) {
			l.post(frame{Type: frameClose})
		}
		return
	}
	l.got = f.N
	if f.Type == frameData {
		l.queue = append(l.queue, f.data)
		l.bytes += len(f.data)
	}
	l.mu.Unlock()
	select {
	case l.arrived <- struct{}{}:
	default:
	}
	if f.Type == frameClose {
		l.end(io.EOF)
	}
}
