package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// handle handles one message from the server. origin is the call on whose own
// stream it arrived, or nil on a connection that calls share. It is called by
// one goroutine per stream and does not block for long.
func (c *Client) handle(m *mcp.Message, origin *pendingRequest) {
	if !m.IsResponse() { // a response is logged by the call that waits for it
		c.logMessage("received", m)
	}
	if m.Repaired && !m.IsResponse() { // a response is logged by the call that waits for it
		c.repaired(m.Method)
	}
	switch {
	case m.Deep && m.IsRequest():
		c.respond(m.ID, nil, &mcp.Error{Code: mcp.CodeInvalidRequest, Message: mcp.DepthMessage(c.opts.Limits.MaxDepth)})
	case m.Deep && m.IsNotification():
		c.warn("notification of the server dropped: "+mcp.DepthMessage(c.opts.Limits.MaxDepth), "method", m.Method)
	case m.IsResponse():
		if cl := c.waiting(m); cl != nil {
			cl.resolve(*m)
		} else {
			c.log.Debug("response without a pending request", "id", string(m.ID))
		}
	case m.IsRequest():
		c.handleRequest(m, origin)
	default:
		c.handleNotification(m, origin)
	}
}

// handleDecodeError handles a message that could not be decoded.
func (c *Client) handleDecodeError(err *mcp.DecodeError) {
	c.warn("message of the server dropped", "err", err.Msg, "id", string(err.ID))
	if id := err.ResponseID(); id != "" {
		if cl := c.waiting(&mcp.Message{ID: id}); cl != nil {
			cl.fail(err)
		}
	}
}

// waiting returns the pending call that a response belongs to. It accepts ids
// that were returned as strings. A response without an id belongs to the call
// if there is only one: servers respond like that if they could not read the
// request.
func (c *Client) waiting(m *mcp.Message) *pendingRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.ID == "" {
		if len(c.calls) == 1 {
			for _, cl := range c.calls {
				return cl
			}
		}
		return nil
	}
	id, err := strconv.ParseInt(strings.Trim(string(m.ID), `"`), 10, 64)
	if err != nil {
		return nil
	}
	return c.calls[id]
}

func (c *Client) handleNotification(m *mcp.Message, origin *pendingRequest) {
	switch m.Method {
	case mcp.MethodProgress:
		token := rawjson.Field(m.Params, "progressToken")
		cl := c.waitingID(token)
		if cl == nil {
			if origin == nil {
				return // the call has ended
			}
			cl = origin
		}
		// A caller without a token did not request progress, but the call's
		// timeouts need it.
		params := rawjson.DeleteField(m.Params, "progressToken")
		if cl.token != nil {
			params = rawjson.SetField(m.Params, cl.token, "progressToken")
		}
		cl.notify(m.Method, params)
	case mcp.MethodCancelled:
		c.cancelled(m.Params)
	case mcp.MethodLogMessage:
		if origin == nil && !c.hadSeveralCallers() { // otherwise it may belong to a call that has ended
			origin = c.onlyCall()
		}
		if origin != nil { // even if the caller ignores it: it must not reach others
			origin.notify(m.Method, m.Params)
			return
		}
		c.handleUnsolicited(m)
	case mcp.MethodSubscriptionsAcknowledged:
	case mcp.MethodToolsChanged, mcp.MethodPromptsChanged, mcp.MethodResourcesChanged,
		mcp.MethodResourceUpdated, "notifications/roots/list_changed", mcp.MethodTasks, mcp.MethodTasksStatus:
		if m.Method == mcp.MethodToolsChanged {
			c.fetchedSchemas.Clear()
		}
		c.handleUnsolicited(m)
	case "notifications/elicitation/complete":
		if origin == nil {
			origin = c.onlyCall()
		}
		if origin != nil {
			origin.notify(m.Method, m.Params)
		}
		c.handleUnsolicited(m) // the call that it concerns may have ended
	default:
		if origin != nil {
			origin.notify(m.Method, m.Params)
			return
		}
		c.handleUnsolicited(m)
	}
}

func (c *Client) handleUnsolicited(m *mcp.Message) {
	if c.opts.OnNotification != nil {
		c.opts.OnNotification(m.Method, m.Params)
	}
}

func (c *Client) waitingID(raw json.RawMessage) *pendingRequest {
	if len(raw) == 0 {
		return nil
	}
	return c.waiting(&mcp.Message{ID: mcp.ID(raw)})
}

// hadSeveralCallers reports whether calls of several callers were made on the
// connection. A log message may then concern a call that has ended, while the
// only call in flight belongs to another caller.
func (c *Client) hadSeveralCallers() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.severalCallers
}

// serverRequest is a request from the server that is in progress.
type serverRequest struct {
	call   *pendingRequest
	cancel context.CancelFunc
}

// NoUserToAsk is the error of a server's request during a call whose caller cannot
// be asked.
const NoUserToAsk = "declined: no user to ask"

// maxServerRequests bounds the concurrent requests from one server. A request
// counts until the server has accepted the response.
const maxServerRequests = 64

// responseTimeout bounds how long a server may take to accept a response.
const responseTimeout = time.Minute

// handleRequest forwards a request from the server to the caller of the call
// that it belongs to, and declines one that belongs to no call.
func (c *Client) handleRequest(m *mcp.Message, origin *pendingRequest) {
	if m.Method == mcp.MethodPing {
		c.respond(m.ID, json.RawMessage(`{}`), nil)
		return
	}
	cl, unattributed := c.attribute(m, origin)
	switch {
	case cl != nil && cl.ex.Ask != nil && c.opts.Capabilities.allow(m.Method):
	case !isClientMethod(m.Method):
		c.respond(m.ID, nil, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "method not found: " + m.Method})
		return
	case unattributed != "":
		c.respond(m.ID, nil, &mcp.Error{Code: mcp.CodeInvalidRequest, Message: "declined: " + unattributed})
		return
	default:
		c.respond(m.ID, nil, &mcp.Error{Code: mcp.CodeInvalidRequest, Message: NoUserToAsk})
		return
	}
	ctx, cancel := context.WithCancel(cl.ctx)
	r := &serverRequest{call: cl, cancel: cancel}
	if !c.addServerRequest(m.ID, r) {
		cancel()
		c.respond(m.ID, nil, &mcp.Error{Code: mcp.CodeInternalError, Message: "too many requests are waiting for an answer"})
		return
	}
	id, method, params := m.ID, m.Method, m.Params
	go func() {
		defer c.releaseServerRequest()
		defer cancel()
		result, err := cl.ex.Ask(ctx, method, params)
		if !c.removeServerRequest(id, r) || ctx.Err() != nil && err != nil {
			return // the server cancelled its request, or the call has ended
		}
		c.answer(id, result, err)
	}()
}

// isClientMethod reports whether MCP defines the method as a request from a
// server to a client.
func isClientMethod(method string) bool {
	switch method {
	case mcp.MethodSample, mcp.MethodElicit, mcp.MethodRootsList:
		return true
	}
	return false
}

// addServerRequest registers a request of the server. If it reports true,
// releaseServerRequest must follow.
func (c *Client) addServerRequest(id mcp.ID, r *serverRequest) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, twice := c.serverRequests[id]; twice || c.openServerRequests >= maxServerRequests {
		return false
	}
	c.serverRequests[id] = r
	c.openServerRequests++
	return true
}

// removeServerRequest removes a request of the server and reports whether it
// was still open. It is called before the response is sent, because some
// servers reuse the id as soon as they have received the response.
func (c *Client) removeServerRequest(id mcp.ID, r *serverRequest) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.serverRequests[id] != r { // cancelled, and its id may have been reused
		return false
	}
	delete(c.serverRequests, id)
	return true
}

// releaseServerRequest makes room for another request of the server.
func (c *Client) releaseServerRequest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.openServerRequests--
}

// cancelled handles notifications/cancelled: the server cancels one of its own
// requests, or ends a subscription.
func (c *Client) cancelled(params json.RawMessage) {
	raw := rawjson.Field(params, "requestId")
	if len(raw) == 0 {
		return
	}
	id, ok := mcp.CanonicalID(raw)
	if !ok {
		return
	}
	c.mu.Lock()
	r := c.serverRequests[id]
	delete(c.serverRequests, id)
	c.mu.Unlock()
	if r != nil {
		r.cancel()
		return
	}
	if cl := c.waitingID(raw); cl != nil && cl.method == mcp.MethodListen {
		cl.resolve(mcp.Message{ID: cl.idText, Result: json.RawMessage(`{}`)})
	}
}

// respond answers a request of the server from the goroutine that reads.
func (c *Client) respond(id mcp.ID, result json.RawMessage, err *mcp.Error) {
	m := &mcp.Message{ID: id, Result: result, Error: err}
	c.logMessage("sent", m)
	c.wire.respond(m)
}

// answer answers a request of the server from a goroutine that may block.
func (c *Client) answer(id mcp.ID, result json.RawMessage, err error) {
	m := mcp.Message{ID: id, Result: result}
	if err != nil {
		m.Result, m.Error = nil, asRPCError(err)
	}
	c.logMessage("sent", &m)
	ctx, cancel := context.WithTimeout(c.ctx, responseTimeout)
	defer cancel()
	if err := c.wire.send(ctx, &m); err != nil && c.Err() == nil {
		c.warn("cannot send a response to the server", "err", err)
	}
}

// asRPCError converts an error into one that can be sent to the server.
func asRPCError(err error) *mcp.Error {
	if e, ok := errors.AsType[*mcp.Error](err); ok {
		return e
	}
	e := tool.AsError(err)
	return &mcp.Error{Code: e.Kind.JSONRPC(), Message: e.Msg}
}
