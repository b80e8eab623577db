package nodes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"junctor/internal/store"
)

// The types of frames.
const (
	frameMessage = "message" // for the subscribers of a kind; does not open a connection
	frameOpen    = "open"
	frameData    = "data"
	frameClose   = "close"
)

// frame is one message: a JSON header on one line, followed by the data.
type frame struct {
	Type string `json:"t"`
	From string `json:"f"`
	Conn string `json:"l,omitempty"`
	N    int64  `json:"n,omitempty"`
	Kind string `json:"k,omitempty"`
	data []byte
}

func (f frame) encode() []byte {
	head, err := json.Marshal(f)
	if err != nil { // plain fields always marshal
		return nil
	}
	return append(append(head, '\n'), f.data...)
}

func decode(message []byte) (frame, error) {
	head, data, ok := bytes.Cut(message, []byte{'\n'})
	var f frame
	if !ok {
		return f, errors.New("a message without a header")
	}
	if err := json.Unmarshal(head, &f); err != nil {
		return f, err
	}
	f.data = data
	return f, nil
}

// outbox is the send queue for one node. One goroutine at a time sends its
// frames in batches.
type outbox struct {
	frames  [][]byte
	bytes   int
	sending bool
}

// Limits of a batch and of an outbox.
const (
	batchFrames = 128
	batchBytes  = 4 << 20
	queueBytes  = 256 << 20

	shutdownTimeout = 2 * time.Second
)

// send queues a frame for another node.
func (n *Node) send(to string, f frame) {
	message := f.encode()
	n.mu.Lock()
	defer n.mu.Unlock()
	o := n.out[to]
	if o == nil {
		o = &outbox{}
	}
	if n.closed || o.bytes+len(message) > queueBytes {
		return // its connection will notice the gap and end
	}
	n.out[to] = o
	o.frames = append(o.frames, message)
	o.bytes += len(message)
	if !o.sending {
		o.sending = true
		n.sending.Go(func() { n.flush(to, o) })
	}
}

// flush sends the frames queued for a node until the queue is empty.
func (n *Node) flush(to string, o *outbox) {
	for {
		n.mu.Lock()
		if len(o.frames) == 0 {
			o.sending = false
			delete(n.out, to)
			n.mu.Unlock()
			return
		}
		k, size := 0, 0
		for k < min(len(o.frames), batchFrames) && (k == 0 || size+len(o.frames[k]) <= batchBytes) {
			size += len(o.frames[k])
			k++
		}
		batch := o.frames[:k:k]
		o.frames = o.frames[k:]
		o.bytes -= size
		n.mu.Unlock()
		if err := n.deliver(to, batch); err != nil {
			n.log.Warn("cannot send a message to another node", "node", to, "err", err)
			n.closeConns(func(l *Conn) bool { return l.to == to }, fmt.Errorf("store the message: %w", ErrUnavailable))
		}
		n.wakeReader()
	}
}

// deliver sends messages to another node and retries until sendTimeout.
func (n *Node) deliver(to string, batch [][]byte) (err error) {
	ctx, cancel := context.WithTimeout(context.Background(), sendTimeout)
	defer cancel()
	n.mu.Lock()
	life := n.ctx
	n.mu.Unlock()
	if life != nil { // a node that stops has less time for its last messages
		defer context.AfterFunc(life, func() { time.AfterFunc(shutdownTimeout, cancel) })()
	}
	for {
		if err = n.opts.Store.SendMessages(ctx, to, batch...); err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(retryDelay):
		}
	}
}

// wakeReader makes the reader poll the queue soon, because the response to a
// sent message may arrive quickly.
func (n *Node) wakeReader() {
	select {
	case n.readNow <- struct{}{}:
	default:
	}
}

// read receives the messages of the queue until ctx is done.
func (n *Node) read(ctx context.Context) {
	announced := n.opts.Store.Watch(ctx, store.TopicNodeMessages(n.id))
	var done []int64     // received messages, to be removed from the queue
	var active time.Time // when a message was last sent or received
	wait := pollMin
	for {
		messages, err := n.opts.Store.TakeMessages(ctx, n.id, done)
		if err != nil && ctx.Err() == nil {
			n.log.DebugContext(ctx, "cannot read the message queue", "err", err)
		}
		if err == nil {
			done = done[:0]
		}
		for _, l := range messages {
			f, err := decode(l.Data)
			if err != nil {
				n.log.WarnContext(ctx, "cannot decode a message", "err", err)
			} else {
				n.dispatch(ctx, f)
			}
			done = append(done, l.Seq)
		}
		if len(messages) > 0 {
			active, wait = time.Now(), pollMin
			continue // remove them and check for more
		}
		var soon <-chan time.Time
		if time.Since(active) < pollDuration {
			soon = time.After(wait)
			wait = min(2*wait, pollMax)
		}
		select {
		case <-ctx.Done():
			return
		case <-announced:
		case <-n.readNow:
			active, wait = time.Now(), pollMin
		case <-soon:
		}
	}
}

// dispatch passes a frame to its receiver.
func (n *Node) dispatch(ctx context.Context, f frame) {
	n.mu.Lock()
	n.seen[f.From] = time.Now()
	l, subscriber, handle := n.conns[f.Conn], n.subscribers[f.Kind], n.handlers[f.Kind]
	if f.Type == frameOpen && l == nil {
		if _, twice := n.opened[f.Conn]; twice { // a duplicate of a connection that has ended
			n.mu.Unlock()
			return
		}
		n.opened[f.Conn] = time.Now()
		l = newConn(n, f.From, f.Conn)
		l.got = f.N
		if handle != nil {
			n.conns[l.id] = l
			n.mu.Unlock()
			go n.serve(ctx, handle, f.data, l)
			return
		}
	}
	n.mu.Unlock()
	switch {
	case f.Type == frameMessage:
		if subscriber != nil {
			subscriber(f.From, f.data)
		}
	case f.Type == frameOpen && handle == nil: // no handler for this kind
		l.post(frame{Type: frameClose})
	case l != nil:
		l.take(f)
	case f.Type == frameData: // the sender does not know yet that the connection has ended
		n.send(f.From, frame{Type: frameClose, From: n.id, Conn: f.Conn, N: lastFrame})
	}
}

// lastFrame is the number of the close frame for an unknown connection.
const lastFrame = -1

// serve runs a handler and closes the connection when it returns.
func (n *Node) serve(ctx context.Context, h Handler, first []byte, l *Conn) {
	defer l.Close()
	defer func() {
		if p := recover(); p != nil {
			n.log.Error("the handler of a node connection panicked", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(l.ctx, cancel)
	defer stop()
	h(ctx, first, l)
}
