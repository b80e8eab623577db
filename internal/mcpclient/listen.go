package mcpclient

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// listener is the subscription stream that a client of the stateless era keeps
// open; in the handshake era servers send such notifications without one. It is
// guarded by Client.mu.
type listener struct {
	lists     json.RawMessage // the list_changed part of the filter, nil for none
	resources []string
	tasks     []*string // one entry per FollowTasks call and task, so that each call removes its own
	running   bool
	restart   context.CancelFunc // ends the open stream, so that a new one is opened
}

// maxSubscriptions bounds the resources, and the tasks, that one client
// follows.
const maxSubscriptions = 1024

// listen subscribes to the change notifications that the server supports. It
// does not wait.
func (c *Client) listen() {
	if !c.stateless.Load() || c.opts.OnNotification == nil {
		return
	}
	caps := c.info.Load().Capabilities
	var filter json.RawMessage
	for _, k := range [][2]string{{"tools", "toolsListChanged"}, {"prompts", "promptsListChanged"}, {"resources", "resourcesListChanged"}} {
		if string(rawjson.Field(caps, k[0], "listChanged")) == "true" {
			filter = rawjson.SetField(filter, json.RawMessage(`true`), k[1])
		}
	}
	c.relisten(func(l *listener) { l.lists = filter })
}

// relisten changes the subscription and opens or restarts its stream if
// necessary.
func (c *Client) relisten(change func(*listener)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	l := &c.listening
	before := l.filter()
	change(l)
	if l.restart != nil && !bytes.Equal(before, l.filter()) { // a new stream may miss something
		l.restart()
	}
	if !l.running && l.filter() != nil {
		l.running = true
		go c.keepListening()
	}
}

// filter returns the filter of the subscription, or nil if there is nothing to
// subscribe to.
func (l *listener) filter() json.RawMessage {
	filter := l.lists
	var tasks []string
	for _, id := range l.tasks {
		tasks = append(tasks, *id)
	}
	for _, part := range []struct {
		member string
		values []string
	}{{"resourceSubscriptions", l.resources}, {"taskIds", tasks}} {
		if len(part.values) == 0 {
			continue
		}
		list := []byte{'['}
		for i, value := range part.values {
			if slices.Contains(part.values[:i], value) {
				continue
			}
			if i > 0 {
				list = append(list, ',')
			}
			list = rawjson.AppendQuoted(list, value)
		}
		filter = rawjson.SetField(filter, append(list, ']'), part.member)
	}
	return filter
}

// FollowTasks subscribes to the states of tasks on a server of the stateless
// era until stop is called.
func (c *Client) FollowTasks(ids []string) (stop func()) {
	if !c.stateless.Load() || c.opts.OnNotification == nil {
		return func() {}
	}
	var own []*string
	c.relisten(func(l *listener) {
		for _, id := range ids[:min(len(ids), max(0, maxSubscriptions-len(l.tasks)))] {
			own = append(own, &id)
		}
		l.tasks = append(l.tasks, own...)
	})
	return func() {
		c.relisten(func(l *listener) {
			l.tasks = slices.DeleteFunc(l.tasks, func(id *string) bool { return slices.Contains(own, id) })
		})
	}
}

// keepListening keeps the stream open, and reopens it when it breaks.
func (c *Client) keepListening() {
	const minDelay, maxDelay = time.Second, 30 * time.Second
	wait := minDelay
	for {
		c.mu.Lock()
		filter := c.listening.filter()
		if filter == nil || c.ctx.Err() != nil {
			c.listening.running, c.listening.restart = false, nil
			c.mu.Unlock()
			return
		}
		ctx, cancel := context.WithCancel(c.ctx)
		c.listening.restart = cancel
		c.mu.Unlock()

		opened := time.Now()
		_, err := c.round(ctx, tool.Request{Method: mcp.MethodListen}, rawjson.SetField(nil, filter, "notifications"))
		restarted := ctx.Err() != nil
		cancel()
		if restarted {
			wait = minDelay
			continue
		}
		if e, ok := errors.AsType[*mcp.Error](err); ok && (e.Code == mcp.CodeMethodNotFound || e.Code == mcp.CodeInvalidParams || e.Code == mcp.CodeMissingCapability) {
			c.mu.Lock()
			if c.listening.tasks != nil { // the server may refuse only these
				c.listening.tasks = nil
			} else {
				c.listening.lists, c.listening.resources = nil, nil
			}
			c.mu.Unlock()
			c.log.Debug("the server has no such subscriptions", "err", err)
			continue
		}
		if time.Since(opened) > maxDelay {
			wait = minDelay
		}
		select {
		case <-time.After(wait):
			wait = min(2*wait, maxDelay)
		case <-c.ctx.Done():
		}
	}
}

// answerLocally answers the requests of the handshake era that do not exist in
// the stateless era, so that callers do not depend on the era of the server.
func (c *Client) answerLocally(r tool.Request) (result json.RawMessage, err error, ok bool) {
	empty := json.RawMessage(`{}`)
	switch r.Method {
	case mcp.MethodSetLevel:
		c.logLevel.Store(new(rawjson.FieldString(r.Params, "level")))
		return empty, nil, true
	case mcp.MethodSubscribe, mcp.MethodUnsubscribe:
		uri := rawjson.FieldString(r.Params, "uri")
		if uri == "" {
			return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "uri is missing"}, true
		}
		add := r.Method == mcp.MethodSubscribe
		var full error
		c.relisten(func(l *listener) {
			switch {
			case !add:
				l.resources = slices.DeleteFunc(l.resources, func(u string) bool { return u == uri })
			case slices.Contains(l.resources, uri):
			case len(l.resources) == maxSubscriptions:
				full = &mcp.Error{Code: mcp.CodeInternalError, Message: "too many resource subscriptions"}
			default:
				l.resources = append(l.resources, uri)
			}
		})
		if full != nil {
			return nil, full, true
		}
		return empty, nil, true
	}
	return nil, nil, false
}
