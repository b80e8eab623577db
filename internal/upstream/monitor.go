package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/tool"
)

// monitor watches a connection until it ends and returns the reason.
func (u *upstream) monitor(ctx context.Context, c *conn) error {
	every := childPingInterval
	if u.config().remote() {
		every = remotePingInterval
	}
	check := time.NewTicker(every)
	defer check.Stop()
	sweep := time.NewTicker(max(u.s.opts.SessionIdle/4, time.Second))
	defer sweep.Stop()
	var (
		due    <-chan time.Time // fires when the lists are to be read again; nil if not requested
		wait   = listChangedDelay
		listed time.Time
	)
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case <-c.client.Done():
			return c.ended()
		case <-sweep.C:
			u.sweep()
		case <-c.refresh:
			if due != nil {
				break // covered by the pending listing
			}
			// Some servers send list_changed whenever their lists are read.
			if time.Since(listed) > maxListChangedDelay {
				wait = listChangedDelay
			}
			due = time.After(wait)
			wait = min(2*wait, maxListChangedDelay)
		case <-due:
			due = nil
			u.relist(ctx, c)
			listed = time.Now()
		case <-c.suspect:
			err = u.pingServer(ctx, c)
		case <-check.C:
			// A busy program may be unable to answer, so only an idle
			// one is pinged.
			if c.idle() >= every/2 {
				err = u.pingServer(ctx, c)
			}
		}
		if err != nil {
			return err
		}
	}
}

// pingServer checks whether the server still answers.
func (u *upstream) pingServer(ctx context.Context, c *conn) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()
	method := mcp.MethodPing
	if c.client.Info().Stateless() {
		method = mcp.MethodDiscover
	}
	began := time.Now()
	_, err := c.client.Do(ctx, tool.Request{Method: method})
	if _, answered := errors.AsType[*mcp.Error](err); answered || err == nil {
		u.setLatency(time.Since(began))
		return nil
	}
	if c.shared && c.busy.Load() > 0 && c.client.Err() == nil {
		return nil // a call has started meanwhile and may keep the server busy
	}
	return err
}

// relist reads the upstream's lists again. If that fails, the previous lists
// stay valid; a lost connection is detected elsewhere.
func (u *upstream) relist(ctx context.Context, c *conn) {
	notified, before := c.toolsChanged.Swap(false), c.definitions
	set, err := u.list(ctx, c, u.config())
	if err != nil {
		if ctx.Err() == nil && c.client.Err() == nil {
			u.s.log.WarnContext(ctx, "cannot refresh the list of tools", "server", u.name, "err", err)
			signal(c.suspect)
		}
		return
	}
	u.publishTools(set)
	if notified && c.definitions == before {
		// The list is unchanged, so publishing it did not forward the
		// notification.
		u.s.opts.Sink.Notified(u.name, "", mcp.MethodToolsChanged, nil)
	}
	u.publishStatus()
	u.s.log.InfoContext(ctx, "list of tools refreshed", "server", u.name, "tools", len(set.Tools))
}

// notified handles a notification that belongs to no call. It runs on the
// goroutine that reads the connection.
func (u *upstream) notified(c *conn, method string, params json.RawMessage) {
	listed := c.caller == "" && !c.beside // the shared connection
	switch method {
	case mcp.MethodToolsChanged:
		if listed { // forwarded when the tools have been listed
			c.toolsChanged.Store(true)
			signal(c.refresh)
			return
		}
		if c.login != "" {
			u.personalChanged(c)
			return
		}
	case mcp.MethodPromptsChanged:
		if listed {
			signal(c.refresh)
		}
	}
	if c.beside && c.process == nil && strings.HasSuffix(method, "/list_changed") {
		return // the remote server also notifies the shared connection
	}
	if caller, ok := u.recipient(c, method, params); ok {
		u.s.opts.Sink.Notified(u.name, caller, method, params)
	}
}
