package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// maxQueued bounds the notifications of one call that are queued for a slow
// caller. The oldest are dropped, so that one caller does not block a shared
// connection.
const maxQueued = 1024

// pendingRequest is a request that awaits its response.
type pendingRequest struct {
	id     int64
	idText mcp.ID
	method string
	task   string          // whose result it waits for; "" for none
	caller string          // its id; "" for the gateway itself
	ctx    context.Context // the caller's; requests of the server for the call use it too
	ex     tool.Exchange
	token  json.RawMessage // the progress token that the caller sent; nil for none
	inline bool            // notifications are delivered by the goroutine that reads them, not queued
	sent   mcp.Message     // the request

	mu      sync.Mutex
	queue   []notification
	answer  mcp.Message
	failed  error // in place of an answer
	got     bool  // answer or failed is set
	over    bool  // nothing may be delivered to the caller any more
	dropped int

	wake chan struct{} // has room for one: there is something to drain
}

type notification struct {
	method string
	params json.RawMessage
}

// signal wakes the goroutine that waits for the call.
func (cl *pendingRequest) signal() {
	select {
	case cl.wake <- struct{}{}:
	default:
	}
}

// notify delivers a notification to the caller: directly if the call reads its
// own stream, otherwise through the queue that the call drains. It drops
// notifications that arrive after the response.
func (cl *pendingRequest) notify(method string, params json.RawMessage) {
	if cl.ex.Notify == nil {
		return
	}
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.over || cl.got {
		return
	}
	if cl.inline {
		cl.ex.Notify(method, params)
		return
	}
	if len(cl.queue) == maxQueued {
		copy(cl.queue, cl.queue[1:])
		cl.queue = cl.queue[:maxQueued-1]
		cl.dropped++
	}
	cl.queue = append(cl.queue, notification{method, params})
	cl.signal()
}

// resolve delivers the response.
func (cl *pendingRequest) resolve(m mcp.Message) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.got || cl.over {
		return
	}
	cl.answer, cl.got = m, true
	cl.signal()
}

// fail delivers an error in place of the response.
func (cl *pendingRequest) fail(err error) {
	cl.mu.Lock()
	defer cl.mu.Unlock()
	if cl.got || cl.over {
		return
	}
	cl.failed, cl.got = err, true
	cl.signal()
}

// drain delivers the queued notifications. If the call has its response or an
// error, drain returns it and reports true.
func (cl *pendingRequest) drain() (mcp.Message, error, bool) {
	for {
		cl.mu.Lock()
		queue := cl.queue
		cl.queue = nil
		answer, failed, got := cl.answer, cl.failed, cl.got
		cl.mu.Unlock()
		if len(queue) == 0 {
			return answer, failed, got
		}
		for _, n := range queue {
			cl.ex.Notify(n.method, n.params)
		}
	}
}

// finish discards everything that may still arrive for the call.
func (cl *pendingRequest) finish() {
	cl.mu.Lock()
	cl.over = true
	cl.queue = nil
	cl.mu.Unlock()
}

// Do sends a request and returns the bytes of its result. What the server sends
// for the call goes to the request's Exchange, in order and before Do returns.
// An error response of the server is a *mcp.Error; any other error is a
// *tool.Error. When ctx is done, the request is cancelled at the server.
func (c *Client) Do(ctx context.Context, r tool.Request) (json.RawMessage, error) {
	if c.opts.RequestTimeout > 0 {
		if _, ok := ctx.Deadline(); !ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, c.opts.RequestTimeout)
			defer cancel()
		}
	}
	if r.Params != nil && (len(r.Params) == 0 || rawjson.SkipSpace(r.Params, 0) == len(r.Params)) {
		r.Params = nil
	}
	if c.stateless.Load() {
		if result, err, ok := c.answerLocally(r); ok {
			return result, err
		}
	} else if r.Params != nil {
		r.Params = c.withoutMeta(ctx, r.Params)
	}
	result, err := c.round(ctx, r, r.Params)
	if err != nil || !c.stateless.Load() || r.Exchange.PassInput {
		return result, err
	}
	return c.resolveInput(ctx, r, result)
}

// round sends one request and returns the result. It adds what the era requires
// in the request.
func (c *Client) round(ctx context.Context, r tool.Request, params json.RawMessage) (json.RawMessage, error) {
	if !c.stateless.Load() {
		return c.request(ctx, r, params)
	}
	params = c.addMeta(params, c.protocol(), r.Method, &r.Exchange)
	result, err := c.request(ctx, r, params)
	if e, ok := errors.AsType[*mcp.Error](err); ok && e.Code == mcp.CodeHeaderMismatch && r.Method == mcp.MethodToolsCall && c.inline {
		// The tool requires arguments as headers, and its schema was not known
		// or is stale.
		if c.fetchSchema(ctx, rawjson.FieldString(params, "name")) {
			return c.request(ctx, r, params)
		}
	}
	return result, err
}

// request sends one request without additions and returns the result.
func (c *Client) request(ctx context.Context, r tool.Request, params json.RawMessage) (json.RawMessage, error) {
	if err := c.Err(); err != nil {
		return nil, c.closedError(err)
	}
	if err := ctx.Err(); err != nil {
		return nil, c.callError(ctx, err)
	}
	cl := &pendingRequest{id: c.nextID.Add(1), method: r.Method, caller: r.Caller, ctx: ctx, ex: r.Exchange, inline: c.inline, wake: make(chan struct{}, 1)}
	cl.idText = mcp.NumberID(cl.id)
	params, cl.token = mapToken(params, cl.id, r.Exchange.Notify != nil && causesMessages(r.Method))
	if r.Method == mcp.MethodTasksResult {
		cl.task = rawjson.FieldString(params, "taskId")
	}
	if err := c.register(ctx, cl); err != nil {
		return nil, err
	}
	defer c.unregister(cl)
	cl.sent = mcp.Message{ID: cl.idText, Method: r.Method, Params: params}
	c.logMessage("sent", &cl.sent)
	m, err := c.wire.do(ctx, cl, &cl.sent)
	if err != nil {
		if ctx.Err() != nil {
			c.mu.Lock()
			c.recordCancelled(cl)
			c.mu.Unlock()
		}
		return nil, c.callError(ctx, err)
	}
	c.logMessage("received", &m)
	if m.Repaired {
		c.repaired(r.Method)
		if r.Exchange.Repaired != nil {
			r.Exchange.Repaired()
		}
	}
	if m.Deep && r.Method != mcp.MethodToolsList { // for tools/list, the caller drops only the tools concerned
		return nil, c.callError(ctx, &mcp.DecodeError{Code: mcp.CodeInvalidRequest, Msg: mcp.DepthMessage(c.opts.Limits.MaxDepth)})
	}
	if m.Error != nil {
		return nil, m.Error
	}
	return m.Result, nil
}

// repaired logs that a message of the server was not UTF-8.
func (c *Client) repaired(method string) {
	c.warn("message of the server is not valid UTF-8; the invalid bytes were replaced by U+FFFD", "method", method)
}

// mapToken replaces the caller's progress token by one that is unique on the
// connection, the number of the request. A request without one gets one if
// progress is observed, because progress shows that the server is still
// working.
func mapToken(params json.RawMessage, id int64, listens bool) (mapped, token json.RawMessage) {
	m, ok := rawjson.Find(params, "_meta")
	meta := params[m.Start:m.End]
	if ok && rawjson.IsObject(meta) { // the common case: one pass over each, and one copy
		open := m.Start + 1
		t, has := rawjson.Find(meta, "progressToken")
		switch {
		case has:
			token = meta[t.Start:t.End:t.End]
			out := append(make([]byte, 0, len(params)+20), params[:m.Start+t.Start]...)
			return append(strconv.AppendInt(out, id, 10), params[m.Start+t.End:]...), token
		case !listens:
			return params, nil
		}
		out := append(make([]byte, 0, len(params)+40), params[:open]...)
		out = strconv.AppendInt(append(out, `"progressToken":`...), id, 10)
		if next := rawjson.SkipSpace(params, open); params[next] != '}' {
			out = append(out, ',')
		}
		return append(out, params[open:]...), nil
	}
	if !listens {
		return params, nil
	}
	if i := rawjson.SkipSpace(params, 0); i < len(params) && params[i] != '{' { // positional params have no room for it
		return params, nil
	}
	return rawjson.SetField(params, strconv.AppendInt(nil, id, 10), "_meta", "progressToken"), nil
}

// callError converts an error of the transport into the error that callers see.
func (c *Client) callError(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*tool.Error](err); ok {
		return err
	}
	if _, ok := errors.AsType[*mcp.Error](err); ok {
		return err
	}
	if cause := ctx.Err(); cause != nil {
		if errors.Is(cause, context.DeadlineExceeded) {
			return &tool.Error{Kind: tool.Timeout, Msg: "the server did not answer in time", Err: cause}
		}
		return &tool.Error{Kind: tool.Canceled, Msg: "the call was cancelled", Err: cause}
	}
	if h, ok := errors.AsType[*HTTPError](err); ok {
		return h.toolError()
	}
	if d, ok := errors.AsType[*mcp.DecodeError](err); ok {
		if d.TooLarge {
			return &tool.Error{Kind: tool.UpstreamFailed, Msg: "the server's answer is too large: " + d.Msg, Err: err}
		}
		return &tool.Error{Kind: tool.UpstreamFailed, Msg: "the server's answer is not a JSON-RPC message: " + d.Msg, Err: err}
	}
	if cause := c.Err(); cause != nil {
		return c.closedError(cause)
	}
	return &tool.Error{Kind: tool.UpstreamFailed, Msg: "the connection to the server failed", Err: err}
}

// closedError returns the error of calls on a connection that has ended.
func (c *Client) closedError(cause error) error {
	if e, ok := errors.AsType[*tool.Error](cause); ok {
		return e
	}
	return &tool.Error{Kind: tool.UpstreamFailed, Msg: "the connection to the server has ended", Err: fmt.Errorf("%w: %w", mcp.ErrClosed, cause)}
}
