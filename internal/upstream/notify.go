package upstream

import (
	"context"
	"encoding/json"

	"junctor/internal/mcpclient"
	"junctor/internal/tool"
)

// Info returns the server information of the upstream as seen by the caller,
// and false if it is not connected.
func (s *Supervisor) Info(server, caller string) (mcpclient.ServerInfo, bool) {
	u := s.find(server)
	if u == nil {
		return mcpclient.ServerInfo{}, false
	}
	if u.config().PersonalLogins() {
		return u.personalInfo(caller)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.owner != "" && u.remote != nil {
		return *u.remote, true
	}
	if u.conn == nil {
		return mcpclient.ServerInfo{}, false
	}
	return u.conn.client.Info(), true
}

// Notify sends a notification to the upstream, on the caller's own session if
// callers have separate ones.
func (s *Supervisor) Notify(ctx context.Context, server, caller, method string, params json.RawMessage) error {
	u := s.find(server)
	if u == nil {
		return notFound(server)
	}
	if u.elsewhere() != "" {
		return movedError(server) // notifications are not forwarded to the owner
	}
	c, err := u.ready(ctx, tool.Request{Method: method, Caller: caller})
	if err != nil {
		return err
	}
	defer c.leave()
	return c.client.Notify(ctx, method, params)
}
