package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// outlet receives the messages of a call for its caller: notifications and
// requests, and finally one response. It keeps their order. put never blocks
// for long; it reports false if it dropped the message, because the caller does
// not read or has disconnected. answer may wait until there is room.
type outlet interface {
	put(m *mcp.Message) (taken bool)
	answer(m *mcp.Message)
}

var (
	errCancelledByCaller = errors.New("cancelled by the caller")
	errCallerLeft        = errors.New("the caller disconnected")
	errServerClosed      = errors.New("the server is shutting down")
	errDrained           = errors.New("the stream has ended")
	errNotRead           = errors.New("the client is not reading its messages")
)

// call is one request that a Handler is serving. In the stateless era it can
// outlive the request that started it: while it is parked it has no outlet.
type call struct {
	srv    *Server
	req    *Request
	level  string // the lowest log level that a caller of the stateless era requested; "" for no messages
	ctx    context.Context
	end    context.CancelCauseFunc // of ctx
	forget func()                  // stops waiting for the end of the credential; nil if ctx does not end with it

	mu            sync.Mutex
	out           outlet
	id            mcp.ID          // of the request that waits for the response
	token         json.RawMessage // progress token of that request
	detachRequest func() bool     // makes the call independent of the transport's request; nil if the outlet's reader stops it
	park          parkedState
}

// newCall prepares a call. Its context has the values of ctx, but it is
// cancelled when life is done or the caller's credential ends, instead of with
// the request. If life is nil, the reader of the outlet stops the call when the
// request ends, which in turn ends with the credential. A parked call ends only
// with its credential.
func (s *Server) newCall(ctx, life context.Context, req *Request, out outlet) *call {
	c := &call{srv: s, req: req, id: req.ID, out: out}
	c.ctx, c.end = context.WithCancelCause(context.WithoutCancel(ctx))
	if life != nil {
		c.endWithCredential()
		c.detachRequest = context.AfterFunc(life, func() { c.cancel(errCallerLeft) })
	}
	c.token = req.paramFields().ProgressToken
	return c
}

// endWithCredential makes the call end when its caller's credential does.
func (c *call) endWithCredential() {
	if c.forget == nil {
		c.forget = tool.OnCredentialEnd(c.ctx, func() { c.end(tool.ErrCredentialEnded) })
	}
}

// cancel ends the context of the call.
func (c *call) cancel(cause error) {
	c.end(cause)
	if c.forget != nil {
		c.forget()
	}
}

// leave cancels the call if the request of out still waits for it.
func (c *call) leave(out outlet, cause error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.out == out {
		c.cancel(cause)
	}
}

// detach makes the call independent of the transport's request. c.mu is held.
func (c *call) detach() {
	if c.detachRequest != nil {
		c.detachRequest()
	}
}

// exchange sets the Exchange that the Handler uses to reach the caller.
func (c *call) exchange(capabilities json.RawMessage) {
	c.req.Exchange = tool.Exchange{
		Notify:       c.notify,
		Capabilities: capabilities,
		Protocol:     c.req.Protocol,
		PassInput:    c.req.Stateless(),
	}
	if asksAnything(capabilities) {
		c.req.Exchange.Ask = c.askSession
		if c.req.Stateless() {
			c.req.Exchange.Ask = c.askParked
		}
	}
}

// run has the Handler serve the call and sends the response.
func (c *call) run() {
	result, err := c.serve()
	c.finish(result, err)
}

func (c *call) serve() (result json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	return c.srv.serve(c.ctx, c)
}

// finish sends the response, or stores it for the retry of a parked call.
func (c *call) finish(result json.RawMessage, err error) {
	m := &mcp.Message{Result: result}
	if err != nil {
		m.Result, m.Error = nil, c.srv.errorFor(c.ctx, c.req, err)
	}
	if c.req.Stateless() {
		c.makeStateless(m)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.out == nil {
		m.MergePrefix()
		c.park.done = m
		return
	}
	c.detach()
	c.cancel(nil)
	m.ID = c.id
	c.srv.logSent(c.ctx, m)
	st, ok := c.out.(*eventStream)
	if !ok {
		m.MergePrefix() // other outlets forward the message as it is
	} else if c.req.lends { // the stream has only this response
		st.memory = &c.req.memory
	}
	c.out.answer(m)
}

// notify forwards a notification of the call, or stores it while the call is
// parked.
func (c *call) notify(method string, params json.RawMessage) {
	if method == mcp.MethodLogMessage && !c.wantsLog(params) {
		return
	}
	m := &mcp.Message{Method: method, Params: params}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.out == nil {
		if len(c.park.held) < maxParkedNotifications {
			c.park.held = append(c.park.held, m)
		}
		return
	}
	m = c.setProgressToken(m)
	c.srv.logSent(c.ctx, m)
	c.out.put(m)
}

// setProgressToken sets the progress token of the current request in a
// notification. The retry of a parked call may have another token than the first
// request.
func (c *call) setProgressToken(m *mcp.Message) *mcp.Message {
	if m.Method != mcp.MethodProgress || c.id == c.req.ID || len(c.token) == 0 {
		return m
	}
	return &mcp.Message{Method: m.Method, Params: rawjson.SetField(m.Params, c.token, "progressToken")}
}

func (c *call) wantsLog(params json.RawMessage) bool {
	minLevel := c.level
	if session := c.req.Session; session != nil {
		minLevel = session.minLogLevel()
	}
	if minLevel == "" || minLevel == anyLevel {
		return minLevel == anyLevel
	}
	return !mcp.LessSevere(rawjson.FieldString(params, "level"), minLevel)
}

const anyLevel = "*"

// askSession sends a request to a caller of the handshake era, on the stream of
// the call itself, and waits for the response.
func (c *call) askSession(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if err := mayAsk(c.req.Exchange.Capabilities, method, params); err != nil {
		return nil, err
	}
	id, answer := c.req.Session.expect(c.srv.questionID)
	defer c.req.Session.forget(id)
	question := &mcp.Message{ID: id, Method: method, Params: params}
	c.srv.logSent(c.ctx, question)
	c.mu.Lock()
	taken := c.out.put(question)
	c.mu.Unlock()
	if !taken {
		return nil, cmp.Or(context.Cause(c.ctx), error(&mcp.Error{Code: tool.RateLimited.JSONRPC(), Message: errNotRead.Error()}))
	}
	select {
	case m := <-answer:
		if m.Error != nil {
			return nil, m.Error
		}
		return m.Result, nil
	case <-c.ctx.Done():
		return nil, context.Cause(c.ctx)
	case <-ctx.Done():
		c.mu.Lock()
		c.out.put(&mcp.Message{Method: mcp.MethodCancelled, Params: json.RawMessage(`{"requestId":` + string(id) + `}`)})
		c.mu.Unlock()
		return nil, context.Cause(ctx)
	}
}

// asksAnything reports whether a caller with these capabilities can be asked
// anything.
func asksAnything(capabilities json.RawMessage) bool {
	for key := range rawjson.Members(capabilities) {
		if key == "elicitation" || key == "sampling" || key == "roots" {
			return true
		}
	}
	return false
}

// mayAsk returns an error for the asking side if the caller did not declare
// that it supports the request.
func mayAsk(capabilities json.RawMessage, method string, params json.RawMessage) error {
	var need string
	switch method {
	case mcp.MethodElicit:
		need = "elicitation"
	case mcp.MethodSample:
		need = "sampling"
	case mcp.MethodRootsList:
		need = "roots"
	default:
		return &mcp.Error{Code: mcp.CodeMethodNotFound, Message: fmt.Sprintf("the client cannot be asked %s", method)}
	}
	declared := rawjson.Field(capabilities, need)
	if declared == nil {
		return &mcp.Error{Code: mcp.CodeMethodNotFound, Message: fmt.Sprintf("the client does not support %s", need)}
	}
	if need == "elicitation" && rawjson.FieldString(params, "mode") == "url" && rawjson.Field(declared, "url") == nil {
		return &mcp.Error{Code: mcp.CodeInvalidParams, Message: "the client does not support elicitation by URL"}
	}
	return nil
}

// serve answers requests about the protocol itself and passes others to the
// handler.
func (s *Server) serve(ctx context.Context, c *call) (json.RawMessage, error) {
	r := c.req
	if r.Stateless() {
		switch r.Method {
		case mcp.MethodDiscover:
			return s.discover(ctx, r)
		case mcp.MethodListen:
			return s.listen(ctx, c)
		case mcp.MethodInitialize, mcp.MethodPing, mcp.MethodSetLevel, mcp.MethodSubscribe, mcp.MethodUnsubscribe:
			return nil, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: fmt.Sprintf("%s is not part of protocol version %s", r.Method, r.Protocol)}
		}
		return s.handler.Serve(ctx, r)
	}
	switch r.Method {
	case mcp.MethodPing:
		return json.RawMessage(`{}`), nil
	case mcp.MethodDiscover, mcp.MethodListen:
		return nil, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: fmt.Sprintf("%s needs protocol version %s", r.Method, mcp.Version20260728)}
	case mcp.MethodSubscribe:
		if len(r.paramFields().URI) > maxURIBytes {
			return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: fmt.Sprintf("uri is too long (over %d bytes)", maxURIBytes)}
		}
	}
	result, err := s.handler.Serve(ctx, r)
	if err == nil && r.Session != nil {
		r.Session.applyRequest(r.Method, r.Params)
		s.publishChange(r.Session, r.Method, r.Params)
	}
	return result, err
}

// errorFor converts a Handler's error into one that the caller may see.
func (s *Server) errorFor(ctx context.Context, r *Request, err error) *mcp.Error {
	var ours *mcp.Error
	if errors.As(err, &ours) {
		return ours
	}
	var known *tool.Error
	if !errors.As(err, &known) {
		if ctx.Err() != nil {
			return &mcp.Error{Code: tool.Canceled.JSONRPC(), Message: "request cancelled"}
		}
		s.log.ErrorContext(ctx, "request failed", "method", r.Method, "err", err)
	}
	return mcp.ToolError(tool.AsError(err))
}
