package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync/atomic"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/tool"
)

// maxSendQueue bounds the messages that are queued for a server that reads
// slowly.
const maxSendQueue = 64

// linkWire is a connection that all calls share: a child's pipes, a pipe in the
// process, or the legacy SSE transport. One goroutine reads. A caller writes
// its message itself if that cannot block and no other message is queued;
// everything else is queued for a goroutine that writes, so that no caller
// blocks in a write because the server does not read.
type linkWire struct {
	c      *Client
	link   mcp.Link
	stream *mcp.Stream // link if it is a Stream, otherwise nil
	out    chan mcp.Message
	idle   chan struct{} // closed when the writer is done

	writing chan struct{} // full during a write; a channel, because a write may take arbitrarily long
	queued  atomic.Int64  // messages that are queued or being written by the writer
}

func openLink(c *Client, link mcp.Link) error {
	w := &linkWire{c: c, link: link, out: make(chan mcp.Message, maxSendQueue), idle: make(chan struct{}), writing: make(chan struct{}, 1)}
	w.stream, _ = link.(*mcp.Stream)
	c.wire = w
	go w.read()
	go w.write()
	return nil
}

// OverLink makes a Transport of a Link.
func OverLink(l mcp.Link) Transport { return linkTransport{l} }

type linkTransport struct{ link mcp.Link }

func (t linkTransport) open(_ context.Context, c *Client) error {
	if s, ok := t.link.(*mcp.Stream); ok {
		s.Repair()
	}
	return openLink(c, t.link)
}

func (w *linkWire) read() {
	for {
		m, err := w.link.Receive()
		if err != nil {
			if broken, ok := errors.AsType[*mcp.DecodeError](err); ok {
				if w.stream != nil {
					w.stream.ReportDropped(broken) // a stray line that began like a message
				}
				w.c.handleDecodeError(broken)
				continue
			}
			w.c.end(linkEnded(err))
			return
		}
		w.c.handle(&m, nil)
	}
}

func linkEnded(err error) error {
	if _, ok := errors.AsType[*tool.Error](err); ok {
		return err
	}
	msg := "the connection to the server was lost"
	if errors.Is(err, io.EOF) {
		msg = "the server closed the connection"
	}
	return &tool.Error{Kind: tool.UpstreamFailed, Msg: msg, Err: err}
}

func sendFailed(err error) error {
	if h, ok := errors.AsType[*HTTPError](err); ok {
		return h.toolError()
	}
	return &tool.Error{Kind: tool.UpstreamFailed, Msg: "the server accepts no more messages", Err: err}
}

// maxWriteBatch bounds the queued messages that are sent with one write.
const maxWriteBatch = 16

func (w *linkWire) write() {
	defer close(w.idle)
	together := make([]*mcp.Message, 0, maxWriteBatch)
	for {
		select {
		case m := <-w.out:
			together = w.appendQueued(append(together[:0], &m))
			if err := w.sendAll(together); err != nil {
				w.endAfterRead(err)
				return
			}
		case <-w.c.done:
			// Messages queued before the end, such as cancellations, are still
			// sent.
			for together = w.appendQueued(together[:0]); len(together) > 0; together = w.appendQueued(together[:0]) {
				if w.sendAll(together) != nil {
					return
				}
			}
			return
		}
	}
}

// appendQueued appends the messages that are queued already, so that they are
// sent with one write.
func (w *linkWire) appendQueued(messages []*mcp.Message) []*mcp.Message {
	for len(messages) < maxWriteBatch {
		select {
		case m := <-w.out:
			messages = append(messages, &m)
		default:
			return messages
		}
	}
	return messages
}

func (w *linkWire) sendAll(messages []*mcp.Message) error {
	w.writing <- struct{}{}
	defer func() { <-w.writing }()
	defer w.queued.Add(-int64(len(messages)))
	if w.stream != nil {
		return w.stream.SendAll(messages...)
	}
	for _, m := range messages {
		if err := w.link.Send(m); err != nil && !w.failRefusedCall(m, err) {
			return err
		}
	}
	return nil
}

// failRefusedCall fails the call of a message that the server refused over HTTP,
// and reports whether the connection can still be used. A refusal concerns the
// one message, such as its size, unless the session is lost or was never
// complete.
func (w *linkWire) failRefusedCall(m *mcp.Message, err error) bool {
	h, ok := errors.AsType[*HTTPError](err)
	if !ok || h.Status == http.StatusNotFound || h.Status == http.StatusGone || m.Method == mcp.MethodInitialized {
		return false
	}
	if !m.IsRequest() {
		w.c.warn("cannot send a message to the server", "method", m.Method, "err", err)
	} else if cl := w.c.waiting(m); cl != nil {
		cl.fail(h)
	}
	return true
}

func (w *linkWire) do(ctx context.Context, cl *pendingRequest, m *mcp.Message) (mcp.Message, error) {
	if err := w.send(ctx, m); err != nil {
		return mcp.Message{}, err
	}
	for {
		select {
		case <-cl.wake:
			if answer, err, ok := cl.drain(); ok {
				return answer, err
			}
			if err := w.c.Err(); err != nil {
				return w.takeLateResponse(cl, err)
			}
		case <-ctx.Done():
			if answer, err, ok := cl.drain(); ok { // the response has arrived: nothing to cancel
				return answer, err
			}
			cl.finish()
			w.cancel(ctx, cl)
			return mcp.Message{}, ctx.Err()
		case <-w.c.done:
			return w.takeLateResponse(cl, w.c.err)
		}
	}
}

// takeLateResponse returns a response that arrived just before the connection
// ended, otherwise err.
func (w *linkWire) takeLateResponse(cl *pendingRequest, err error) (mcp.Message, error) {
	if answer, failed, ok := cl.drain(); ok {
		return answer, failed
	}
	return mcp.Message{}, err
}

// cancel sends a cancellation of a call to the server. An initialize request
// must not be cancelled.
func (w *linkWire) cancel(ctx context.Context, cl *pendingRequest) {
	if cl.method != mcp.MethodInitialize {
		w.respond(cancelMessage(ctx, cl))
	}
}

func cancelMessage(ctx context.Context, cl *pendingRequest) *mcp.Message {
	reason := "the caller cancelled the request"
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		reason = "the request timed out"
	}
	params := fmt.Appendf(nil, `{"requestId":%s,"reason":%q}`, cl.idText, reason)
	return &mcp.Message{Method: mcp.MethodCancelled, Params: json.RawMessage(params)}
}

func (w *linkWire) send(ctx context.Context, m *mcp.Message) error {
	if sent, err := w.trySend(m); sent || err != nil {
		return err
	}
	w.queued.Add(1)
	select {
	case w.out <- *m:
		return nil
	case <-ctx.Done():
		w.queued.Add(-1)
		return ctx.Err()
	case <-w.c.done:
		w.queued.Add(-1)
		return w.c.err
	}
}

// trySend writes a message on the caller's goroutine, unless others are queued
// or the pipe is full. It never blocks.
func (w *linkWire) trySend(m *mcp.Message) (sent bool, err error) {
	if w.stream == nil || w.queued.Load() > 0 {
		return false, nil
	}
	select {
	case w.writing <- struct{}{}:
	default:
		return false, nil
	}
	if w.queued.Load() > 0 || w.c.Err() != nil {
		<-w.writing
		return false, nil
	}
	sent, finish, err := w.stream.TrySend(m)
	if finish != nil { // the pipe is full
		go func() {
			defer func() { <-w.writing }()
			if err := finish(); err != nil {
				w.endAfterRead(err)
			}
		}()
		return true, nil
	}
	<-w.writing
	if err != nil {
		w.endAfterRead(err)
		return false, w.c.Err()
	}
	return sent, nil
}

// endAfterRead ends the connection after a failed write. A program that no
// longer accepts input has usually exited. Its last output, which may include
// responses, is read first, and the reader reports the end.
func (w *linkWire) endAfterRead(err error) {
	if w.stream != nil {
		t := time.NewTimer(flushTimeout)
		defer t.Stop()
		select {
		case <-w.c.done:
			return
		case <-t.C:
		}
	}
	w.c.end(sendFailed(err))
}

func (w *linkWire) respond(m *mcp.Message) {
	w.queued.Add(1)
	select {
	case w.out <- *m:
	default:
		w.queued.Add(-1)
		w.c.warn("message to the server dropped: the server is not reading", "method", m.Method)
	}
}

func (w *linkWire) ready(string) {}

func (w *linkWire) authorizing() bool { return false }

// close waits up to flushTimeout for the writer, which may be blocked because
// the server does not read.
func (w *linkWire) close() error {
	t := time.NewTimer(flushTimeout)
	defer t.Stop()
	select {
	case <-w.idle:
	case <-t.C:
	}
	return w.link.Close()
}

// flushTimeout bounds the time that a closing connection takes to flush its
// queue, and to read what the server wrote before it closed its input.
const flushTimeout = time.Second
