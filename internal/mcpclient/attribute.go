package mcpclient

import (
	"encoding/json"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
)

// Reasons for declining a request from the server that cannot be attributed to
// a call.
const (
	ambiguous = "several calls share this session, so it is not known whom to ask; from now on calls of this session run one at a time, " +
		"so call the tool again, or set sessionMode to perCaller for this server"
	afterCancelled = "a call of another caller was cancelled and may be the one that asks; call the tool again later, or set sessionMode to perCaller for this server"
	noTaskResult   = "no caller waits for the result of the task that it belongs to"
)

// cancelledGrace is how long a server may continue a cancelled call, and send
// requests for it.
const cancelledGrace = 10 * time.Minute

// attribute returns the call that a request from the server belongs to: by the
// stream that it arrived on, by the task or the progress token that it names,
// or because it is the only call in flight. If it returns no call, unattributed
// is the reason, or "" if no call is in flight.
//
// A question that could belong to several calls is declined, and from then on
// calls run one at a time.
func (c *Client) attribute(m *mcp.Message, origin *pendingRequest) (cl *pendingRequest, unattributed string) {
	if origin != nil {
		return origin, ""
	}
	meta := rawjson.Field(m.Params, "_meta")
	if task := rawjson.FieldString(meta, mcp.MetaRelatedTask, "taskId"); task != "" {
		if cl := c.resultOf(task); cl != nil {
			return cl, ""
		}
		return nil, noTaskResult
	}
	// A token equal to the id of the request itself does not name a call: it
	// requests progress of that request. The SDKs choose tokens like that.
	if token := rawjson.Field(meta, "progressToken"); !sameID(token, m.ID) {
		if cl := c.waitingID(token); cl != nil {
			return cl, ""
		}
	}
	c.mu.Lock()
	only, several := c.onlyInFlight()
	first := several && (m.Method == mcp.MethodElicit || m.Method == mcp.MethodSample) && !c.oneAtATime && c.anyCanBeAsked()
	c.oneAtATime = c.oneAtATime || first
	cancelled := only != nil && c.cancelledByOther(only.caller)
	c.mu.Unlock()
	if first {
		c.warn("the server asked a question during several calls, and does not say for which; its calls run one at a time from now on")
		if c.opts.OnOneAtATime != nil {
			c.opts.OnOneAtATime()
		}
	}
	switch {
	case several:
		return nil, ambiguous
	case cancelled:
		return nil, afterCancelled
	}
	return only, ""
}

// sameID reports whether a token is the id of a message.
func sameID(token json.RawMessage, id mcp.ID) bool {
	if len(token) == 0 {
		return false
	}
	own, ok := mcp.CanonicalID(token)
	return ok && own == id
}

// resultOf returns the request in flight that waits for the result of a task.
func (c *Client) resultOf(task string) *pendingRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cl := range c.calls {
		if cl.task == task {
			return cl
		}
	}
	return nil
}

// onlyCall returns the call in flight if there is only one that could have
// caused a message from the server. Requests that only read lists do not count.
func (c *Client) onlyCall() *pendingRequest {
	c.mu.Lock()
	defer c.mu.Unlock()
	only, _ := c.onlyInFlight()
	return only
}

// onlyInFlight is onlyCall with c.mu held; several reports whether there are
// more. Cancelled calls do not count.
func (c *Client) onlyInFlight() (only *pendingRequest, several bool) {
	for _, cl := range c.calls {
		if !causesMessages(cl.method) || cl.ctx.Err() != nil {
			continue
		}
		if only != nil {
			return nil, true
		}
		only = cl
	}
	return only, false
}

// causesMessages reports whether a request does more than read lists and state,
// so that requests and progress may belong to it. Methods that are not part of
// the protocol may do anything.
func causesMessages(method string) bool {
	switch method {
	case mcp.MethodInitialize, mcp.MethodDiscover, mcp.MethodPing, mcp.MethodListen, mcp.MethodSetLevel, mcp.MethodSubscribe, mcp.MethodUnsubscribe,
		mcp.MethodToolsList, mcp.MethodPromptsList, mcp.MethodResourcesList, mcp.MethodTemplatesList, mcp.MethodComplete,
		mcp.MethodTasksGet, mcp.MethodTasksUpdate, mcp.MethodTasksCancel, mcp.MethodTasksList:
		return false
	}
	return true
}

// anyCanBeAsked reports whether a call in flight has a user to ask. c.mu is held.
func (c *Client) anyCanBeAsked() bool {
	for _, cl := range c.calls {
		if cl.ex.Ask != nil {
			return true
		}
	}
	return false
}

// recordCancelled records the caller of a call that ended before the server
// responded, because the server may still send a request for it. c.mu is held.
func (c *Client) recordCancelled(cl *pendingRequest) {
	if cl.caller == "" || !causesMessages(cl.method) {
		return
	}
	now := time.Now()
	for caller, at := range c.cancelledAt {
		if now.Sub(at) > cancelledGrace {
			delete(c.cancelledAt, caller)
		}
	}
	if c.cancelledAt == nil {
		c.cancelledAt = map[string]time.Time{}
	}
	c.cancelledAt[cl.caller] = now
}

// cancelledByOther reports whether a call of anyone but the caller was cancelled
// recently. c.mu is held.
func (c *Client) cancelledByOther(caller string) bool {
	for _, cl := range c.calls {
		if cl.caller != "" && cl.caller != caller && causesMessages(cl.method) && cl.ctx.Err() != nil {
			return true
		}
	}
	for other, at := range c.cancelledAt {
		if other != caller && time.Since(at) <= cancelledGrace {
			return true
		}
	}
	return false
}
