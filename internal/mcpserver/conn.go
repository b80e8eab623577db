package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// ServeStream serves one caller on a pair of byte streams, as in MCP's stdio
// transport, until the input ends or ctx is done. Each message may belong to
// either era. The caller is taken from ctx. ServeStream returns an error if
// reading or sending fails.
func (s *Server) ServeStream(ctx context.Context, r io.Reader, w io.Writer) error {
	c := s.newConn(ctx)
	c.link = mcp.NewStream(r, w, mcp.StreamOptions{Limits: s.opts.Limits, OnDrop: c.handleInvalidLine})
	return s.serveConn(c)
}

// ServeLink is ServeStream for a connection that carries messages.
func (s *Server) ServeLink(ctx context.Context, link mcp.Link) error {
	c := s.newConn(ctx)
	c.link = link
	return s.serveConn(c)
}

// conn is one caller on a byte stream. In the handshake era it is one session.
type conn struct {
	srv    *Server
	link   mcp.Link
	ctx    context.Context
	cancel context.CancelCauseFunc
	caller tool.Caller
	out    *outbox
	calls  sync.WaitGroup

	mu      sync.Mutex
	active  map[mcp.ID]*connOutlet // of the requests that are neither answered nor cancelled
	handing int                    // responses that are being passed to out
	session *Session               // set by initialize
	ready   chan struct{}          // closed when initialize has been answered; nil before it was received
	closing bool                   // no more calls are started
}

func (s *Server) newConn(ctx context.Context) *conn {
	c := &conn{srv: s, caller: tool.CallerFrom(ctx)}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	return c
}

func (s *Server) serveConn(c *conn) error {
	defer c.cancel(errCallerLeft)
	c.out = newOutbox(c.link, s.opts.Limits.MaxBytes)
	if !s.conns.add(c) {
		return errServerClosed
	}
	defer s.conns.remove(c)
	hangUp := sync.OnceFunc(func() { _ = c.link.Close() })
	defer hangUp()
	// Receive and Send may block in a system call that closing does not
	// interrupt, as on a terminal or a full pipe; the program must not wait for
	// it to exit.
	read, sent := make(chan error, 1), make(chan error, 1)
	go func() { read <- c.read() }()
	go func() { sent <- c.out.run() }()
	var err error
	select {
	case err = <-read:
		if errors.Is(err, io.EOF) {
			err = nil
		}
	case err = <-sent: // the client does not read: stop
		sent <- nil
		c.cancel(errCallerLeft)
	case <-c.ctx.Done():
	}
	c.drain(s.opts.DrainTimeout)
	c.out.close()
	inOrder := context.Cause(c.ctx) == errDrained
	var rest time.Duration // for the caller to read what is left
	if inOrder {
		rest = s.opts.WriteTimeout
	}
	last := time.AfterFunc(rest, hangUp)
	defer last.Stop()
	var sendErr error
	select {
	case sendErr = <-sent:
	case <-time.After(rest + s.opts.DrainTimeout): // closing did not interrupt a write
		sendErr = errNotRead
	}
	if err == nil && inOrder {
		err = sendErr
	}
	return err
}

// read handles messages in the order in which they arrive, until the input
// ends.
func (c *conn) read() error {
	for {
		m, err := c.link.Receive()
		if err != nil {
			if broken, ok := errors.AsType[*mcp.DecodeError](err); ok {
				c.out.answer(broken.Response())
				continue
			}
			return err
		}
		c.srv.logReceived(c.ctx, &m)
		switch {
		case m.IsRequest():
			c.out.awaitReader(c.srv.opts.MaxCalls)
			if refused := c.request(&m); refused != nil {
				c.out.answer(&mcp.Message{ID: m.ID, Error: refused})
			}
		case m.IsResponse():
			if session := c.currentSession(); session != nil {
				session.answered(&m)
			}
		case m.Method == mcp.MethodCancelled:
			c.cancelCall(m.Params)
		default:
			if session := c.currentSession(); session != nil {
				c.srv.handler.Notified(c.ctx, session, m.Method, m.Params)
			}
		}
	}
}

// handleInvalidLine responds to a line that is not a message. Receive reports
// those that are too large.
func (c *conn) handleInvalidLine(d mcp.DroppedInput) {
	if !d.TooLarge {
		c.out.answer(&mcp.Message{Error: &mcp.Error{Code: mcp.CodeParseError, Message: "parse error: a line must contain one JSON-RPC message"}})
	}
}

// drain lets calls in flight finish when the input has ended, because a program
// may write its requests and close the pipe. After grace it cancels them.
func (c *conn) drain(grace time.Duration) {
	c.mu.Lock()
	c.closing = true
	for _, out := range c.active {
		if out.call != nil && out.listens {
			out.call.cancel(errCallerLeft)
		}
	}
	session := c.session
	c.mu.Unlock()
	done := make(chan struct{})
	go func() { c.calls.Wait(); close(done) }()
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	case <-c.ctx.Done():
	}
	c.cancel(errDrained)
	if session != nil {
		session.cancel(errCallerLeft)
	}
	timer.Reset(grace)
	select {
	case <-done:
	case <-timer.C: // do not wait for a handler that ignores its context
	}
}

func (c *conn) currentSession() *Session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

// request starts serving a request, or returns why it is refused.
func (c *conn) request(m *mcp.Message) *mcp.Error {
	if metaVersion(m) != "" {
		req, refused := c.srv.statelessRequest(m)
		if refused != nil {
			return refused
		}
		req.Caller = c.caller
		return c.launch(m, func(out *connOutlet) *call {
			if state := rawjson.FieldString(req.Params, "requestState"); c.srv.parked.owns(state) {
				c.srv.resume(out.life(), req, state, out)
				return nil
			}
			return c.srv.statelessCall(c.ctx, c.ctx, req, out)
		})
	}
	if m.Method == mcp.MethodInitialize {
		return c.initialize(m)
	}
	c.mu.Lock()
	ready := c.ready
	c.mu.Unlock()
	if ready == nil {
		if m.Method == mcp.MethodPing {
			c.out.answer(&mcp.Message{ID: m.ID, Result: json.RawMessage(`{}`)})
			return nil
		}
		return &mcp.Error{Code: mcp.CodeInvalidRequest,
			Message: "send initialize first, or name the protocol version in _meta (" + mcp.Version20260728 + ")"}
	}
	return c.launch(m, func(out *connOutlet) *call {
		session := c.awaitSession(ready)
		if session == nil {
			out.answer(&mcp.Message{ID: m.ID, Error: &mcp.Error{Code: mcp.CodeInvalidRequest, Message: "initialize failed; send it again"}})
			return nil
		}
		call := c.srv.newCall(c.ctx, c.ctx, session.request(m, nil, c.caller), out)
		call.exchange(session.capabilities)
		return call
	})
}

// awaitSession waits for an initialize in progress and returns its session, or
// nil if it failed.
func (c *conn) awaitSession(ready <-chan struct{}) *Session {
	select {
	case <-ready:
	case <-c.ctx.Done():
	}
	return c.currentSession()
}

func (c *conn) initialize(m *mcp.Message) *mcp.Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return nil
	}
	if c.ready != nil {
		return &mcp.Error{Code: mcp.CodeInvalidRequest, Message: "initialize has been sent already"}
	}
	ready := make(chan struct{})
	c.ready = ready
	c.handing++
	c.calls.Go(func() {
		defer c.handed()
		session := newSession(c.caller, m.Params)
		session.ctx, session.cancel = context.WithCancelCause(c.ctx)
		session.standalone = c.out
		req := session.request(m, nil, c.caller)
		result, err := c.srv.initialize(c.ctx, req)
		answer := &mcp.Message{ID: m.ID, Result: result}
		c.mu.Lock()
		if err != nil {
			answer.Result, answer.Error = nil, c.srv.errorFor(c.ctx, req, err)
			c.ready = nil // it may be retried
			session.cancel(nil)
		} else {
			c.session = session
		}
		c.mu.Unlock()
		c.out.answer(answer)
		close(ready)
	})
	return nil
}

// launch starts the call of a request on its own goroutine and registers its
// outlet under the request's id, so that it can be cancelled. It returns why
// the request is refused, or nil.
func (c *conn) launch(m *mcp.Message, begin func(*connOutlet) *call) *mcp.Error {
	id := m.ID
	out := &connOutlet{conn: c, id: id, listens: m.Method == mcp.MethodListen, end: func() {}}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return nil
	}
	if refused := admit(&c.active, id, out, c.srv.opts.MaxCalls); refused != nil {
		return refused
	}
	c.calls.Go(func() {
		call := begin(out)
		if call == nil {
			return
		}
		c.mu.Lock()
		if out.call = call; c.active[id] != out { // cancelled before it began
			call.cancel(errCancelledByCaller)
		}
		c.mu.Unlock()
		call.run()
	})
	return nil
}

// cancelCall stops a call; nothing more is sent for it.
func (c *conn) cancelCall(params json.RawMessage) {
	id := requestID(params)
	c.mu.Lock()
	defer c.mu.Unlock()
	if out := c.active[id]; out != nil {
		if out.call != nil {
			out.call.cancel(errCancelledByCaller)
		}
		out.end()
	}
	delete(c.active, id)
}

// handed records that a response was passed to out.
func (c *conn) handed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.handing--
}

// answering returns the number of requests whose responses have not been sent.
func (c *conn) answering() int {
	c.mu.Lock()
	n := c.handing
	for _, out := range c.active {
		if !out.listens {
			n++
		}
	}
	c.mu.Unlock()
	return n + c.out.answers()
}

// connOutlet is the outlet of one call on a shared stream. It drops everything
// after the call has been answered or cancelled, because another call may have
// its id by then.
type connOutlet struct {
	conn *conn
	id   mcp.ID
	call *call  // nil before it began; guarded by conn.mu
	end  func() // ends life; guarded by conn.mu

	listens bool // the call is a subscriptions/listen, which runs until it is ended
}

// life returns a context that is done when the request has been answered or
// cancelled. A retry needs it, because it continues a call that began with
// another request.
func (l *connOutlet) life() context.Context {
	ctx, cancel := context.WithCancel(l.conn.ctx)
	l.conn.mu.Lock()
	defer l.conn.mu.Unlock()
	if l.end = cancel; l.conn.active[l.id] != l { // cancelled before it began
		cancel()
	}
	return ctx
}

func (l *connOutlet) put(m *mcp.Message) bool {
	l.conn.mu.Lock()
	ok := l.conn.active[l.id] == l
	l.conn.mu.Unlock()
	return ok && l.conn.out.put(m)
}

func (l *connOutlet) answer(m *mcp.Message) {
	l.conn.mu.Lock()
	ok := l.conn.active[l.id] == l
	if ok {
		delete(l.conn.active, l.id)
		l.end()
		l.conn.handing++
	}
	l.conn.mu.Unlock()
	if ok {
		l.conn.out.answer(m)
		l.conn.handed()
	}
}

// connTable holds the open connections.
type connTable struct {
	mu     sync.Mutex
	conns  map[*conn]struct{}
	closed bool
}

func (t *connTable) add(c *conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	if t.conns == nil {
		t.conns = map[*conn]struct{}{}
	}
	t.conns[c] = struct{}{}
	return true
}

func (t *connTable) remove(c *conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.conns, c)
}

func (t *connTable) sessions() []*Session {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all []*Session
	for c := range t.conns {
		if s := c.currentSession(); s != nil {
			all = append(all, s)
		}
	}
	return all
}

func (t *connTable) answering() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for c := range t.conns {
		n += c.answering()
	}
	return n
}

func (t *connTable) closeAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	for c := range t.conns {
		c.cancel(errServerClosed)
	}
}
