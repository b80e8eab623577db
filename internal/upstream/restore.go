package upstream

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"

	"junctor/internal/mcp"
	"junctor/internal/mcpclient"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// A server keeps subscriptions and the log level with its session, and loses
// them when it ends. Clients of the gateway do not notice that, so a new session
// gets what they set in the last one.

// restore resends the subscriptions and the log level to the new session of the
// connection, in the background. It is called before callers can use the
// session; what they set afterwards reaches it directly.
func (u *upstream) restore(c *conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended || u.runCtx == nil || !c.made.Load() || c.sharedState.empty() {
		return
	}
	ctx := u.runCtx
	uris := c.sharedState.uris()
	u.work.Go(func() { c.sharedState.restore(ctx, c.client, uris, u.s.log.With("server", u.name)) })
}

func (s *sharedState) empty() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.subscribers) == 0 && len(s.levels) == 0
}

// uris returns the resources with subscribers.
func (s *sharedState) uris() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.subscribers))
}

// restore sends the log level and the subscriptions.
func (s *sharedState) restore(ctx context.Context, client *mcpclient.Client, uris []string, log *slog.Logger) {
	if err := s.restoreLevel(ctx, client); err != nil && ctx.Err() == nil && client.Err() == nil {
		log.WarnContext(ctx, "cannot restore the log level", "err", err)
	}
	failed, reason := 0, error(nil)
	for _, uri := range uris {
		if err := s.resubscribe(ctx, client, uri); err != nil {
			failed, reason = failed+1, err
		}
		if ctx.Err() != nil || client.Err() != nil {
			return // the next session gets them
		}
	}
	if failed > 0 {
		log.WarnContext(ctx, "cannot restore the resource subscriptions", "resources", failed, "err", reason)
	}
}

// restoreLevel sets the most verbose level of all callers.
func (s *sharedState) restoreLevel(ctx context.Context, client *mcpclient.Client) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	select {
	case s.setting <- struct{}{}:
		defer func() { <-s.setting }()
	case <-ctx.Done():
		return ctx.Err()
	}
	s.mu.Lock()
	s.sent = ""
	lowest := s.lowestLevel()
	s.mu.Unlock()
	if lowest == "" || client.Info().Stateless() { // each request carries its level
		return nil
	}
	_, err := client.Do(ctx, tool.Request{Method: mcp.MethodSetLevel, Params: rawjson.SetField(nil, json.RawMessage(`"`+lowest+`"`), "level")})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.sent = lowest
	s.mu.Unlock()
	return nil
}

// resubscribe subscribes to a resource again, unless all callers have
// unsubscribed meanwhile.
func (s *sharedState) resubscribe(ctx context.Context, client *mcpclient.Client, uri string) error {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	unlock, err := s.changing.Lock(ctx, uri)
	if err != nil {
		return err
	}
	defer unlock()
	s.mu.Lock()
	wanted := len(s.subscribers[uri]) > 0
	s.mu.Unlock()
	if !wanted {
		return nil
	}
	_, err = client.Do(ctx, tool.Request{Method: mcp.MethodSubscribe, Params: rawjson.SetField(nil, rawjson.AppendQuoted(nil, uri), "uri")})
	return err
}

// unsubscribeExtra unsubscribes the caller on all connections other than c:
// other clients of the caller may have subscribed on another kind of
// connection.
func (u *upstream) unsubscribeExtra(ctx context.Context, c *conn, r tool.Request) {
	var others []*conn
	u.mu.Lock()
	if u.conn != nil {
		others = append(others, u.conn)
	}
	for _, s := range u.sessions {
		if s.conn != nil {
			others = append(others, s.conn)
		}
	}
	u.mu.Unlock()
	for _, other := range others {
		if other == c || !other.sharedState.has(rawjson.FieldString(r.Params, "uri"), r.Caller) {
			continue
		}
		if _, err := other.sharedState.unsubscribe(ctx, other.client, r); err != nil {
			u.s.log.DebugContext(ctx, "unsubscribe", "server", u.name, "err", err)
		}
	}
}

func (s *sharedState) has(uri, caller string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.subscribers[uri][caller]
	return ok
}
