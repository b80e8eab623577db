package nodes

import (
	"context"
	"errors"
	"io"
	"sync"
)

// maxWaiting bounds what waits to be received on one connection.
const maxWaiting = 64 << 20

var errQueueFull = errors.New("the receive queue of a node connection is full")

// Conn is a message connection between two nodes. Messages arrive once and in
// order.
type Conn struct {
	node   *Node
	to     string
	id     string
	ctx    context.Context
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	sent    int64 // frames, the opening one included
	got     int64
	queue   [][]byte
	bytes   int
	over    error // why nothing more comes; nil while it is open
	arrived chan struct{}
}

func newConn(n *Node, to, id string) *Conn {
	l := &Conn{node: n, to: to, id: id, arrived: make(chan struct{}, 1)}
	l.ctx, l.cancel = context.WithCancelCause(context.Background())
	return l
}

// Peer is the node at the other end.
func (l *Conn) Peer() string { return l.to }

// Done is closed when the connection is over.
func (l *Conn) Done() <-chan struct{} { return l.ctx.Done() }

// Send sends a message. It does not wait for the other side.
func (l *Conn) Send(data []byte) error {
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	l.post(frame{Type: frameData, data: data})
	return nil
}

// post numbers a frame and sends it; numbering and sending are one step.
func (l *Conn) post(f frame) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sent++
	f.Conn, f.N, f.From = l.id, l.sent, l.node.id
	l.node.send(l.to, f)
}

// Receive returns the next data of the other side: io.EOF when it has closed
// the connection, ErrUnavailable when it has died.
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
			if l.ctx.Err() == nil { // otherwise ctx may be done because the connection is
				return nil, context.Cause(ctx)
			}
		}
	}
}

// Close ends the connection; the other side still receives what was sent before.
func (l *Conn) Close() {
	if l.end(io.EOF) {
		l.post(frame{Type: frameClose})
	}
}

// end closes the connection with a reason, and reports whether it was open.
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

// take queues the data of a frame. A frame that came before is dropped;
// one that is missing ends the connection.
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
	if f.N != l.got+1 || l.bytes+len(f.data) > maxWaiting {
		l.mu.Unlock()
		if l.end(errQueueFull) {
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
