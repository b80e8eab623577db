package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"junctor/internal/mcpclient"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// session is a connection in addition to the shared one: for a single caller,
// or of another kind.
type session struct {
	kind connKind
	made chan struct{} // closed when conn or err is set
	conn *conn
	err  error
	used time.Time // guarded by upstream.mu
}

// ended reports whether the connection was lost. upstream.mu is held.
func (s *session) ended() bool { return s.conn != nil && s.conn.client.Err() != nil }

// session returns the additional connection of kind k, and makes it if there is
// none. The caller must call leave on it.
func (u *upstream) session(ctx context.Context, k connKind) (*conn, error) {
	key := k.key()
	for {
		s, err := u.sessionOf(key, k)
		if err != nil {
			return nil, err
		}
		select {
		case <-s.made:
		case <-ctx.Done():
			return nil, waitError(ctx, fmt.Sprintf("the session with %s was not established in time", u.name))
		}
		if s.err != nil {
			return nil, s.err
		}
		u.mu.Lock()
		if u.sessions[key] == s && !s.ended() {
			s.conn.enter()
			u.mu.Unlock()
			return s.conn, nil
		}
		u.mu.Unlock()
	}
}

// sessionOf returns the session for key, or starts to make it. Making it is
// independent of the call that first needed it, because others may wait for it
// too.
func (u *upstream) sessionOf(key string, k connKind) (*session, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.ended || u.runCtx == nil {
		return nil, &tool.Error{Kind: tool.Unavailable, Msg: fmt.Sprintf("%s is being stopped", u.name), Err: tool.ErrDown}
	}
	s := u.sessions[key]
	if s != nil && !s.ended() {
		s.used = time.Now()
		return s, nil
	}
	if s != nil {
		k.sharedState = s.conn.sharedState
		delete(u.sessions, key)
		u.work.Go(s.conn.close)
	}
	if k.login != "" {
		u.closeSessionsOf(k.caller, k.login)
	}
	if err := u.evictSession(k); err != nil {
		return nil, err
	}
	s = &session{kind: k, made: make(chan struct{}), used: time.Now()}
	u.sessions[key] = s
	cfg, runCtx := u.cfg, u.runCtx
	u.work.Go(func() { u.makeSession(runCtx, s, key, cfg, k) })
	return s, nil
}

// makeSession makes the connection of s. An error is returned to the calls that
// wait for s; the next call tries again.
func (u *upstream) makeSession(ctx context.Context, s *session, key string, cfg Config, k connKind) {
	c, err := u.dial(ctx, cfg.withStartLimit(), k)
	if err == nil && k.login != "" {
		if _, err = u.listPersonal(ctx, c, time.Now().Add(-personalListTTL)); err != nil {
			c.close()
			c = nil
		}
	}
	u.mu.Lock()
	s.conn = c
	if err != nil {
		f := tool.Error(*explain(cfg, err))
		f.Msg = fmt.Sprintf("%s: no session for this caller: %s", u.name, f.Msg)
		s.err = &f
		if u.sessions[key] == s {
			delete(u.sessions, key)
		}
	}
	stray := u.sessions[key] != s // the session was removed meanwhile
	u.mu.Unlock()
	if c != nil && !stray {
		u.restore(c)
	}
	close(s.made)
	if h, ok := errors.AsType[*handshakeError](err); ok && h.conn != nil {
		h.conn.close()
	} else if stray && c != nil {
		c.close()
	}
}

// maxPerCaller bounds the sessions of one caller, so that it cannot use up the
// limit for all. A caller has a session for each set of capabilities that its
// clients declare.
const maxPerCaller = 4

// These bound the connections, and so the processes, with capabilities chosen
// by callers, because callers can declare arbitrary ones. Requests over the
// limit use the shared connection.
const (
	maxExtended   = 8
	maxExtendedBy = 2 // of them that one caller chose
)

// evictSession makes room for one more session by closing the least recently
// used idle one. A caller that has reached its own limit loses one of its own.
// A session with capabilities chosen by a caller only replaces another such
// session that keeps no state. u.mu is held.
func (u *upstream) evictSession(k connKind) error {
	extended, chosen, own := k.extendedBy != "", 0, 0
	mine := func(s *session) bool { return s.kind.caller == k.caller && s.kind.extendedBy == k.extendedBy }
	for _, s := range u.sessions {
		if s.kind.extendedBy != "" {
			chosen++
		}
		if mine(s) {
			own++
		}
	}
	over := extended && own >= maxExtendedBy || k.caller != "" && own >= maxPerCaller
	if len(u.sessions) < u.s.opts.MaxSessions && !over && (!extended || chosen < maxExtended) {
		return nil
	}
	oldest := ""
	for key, s := range u.sessions {
		if s.conn == nil || over && !mine(s) || extended && (s.kind.extendedBy == "" || s.conn.keepsState()) {
			continue
		}
		if s.conn.busy.Load() == 0 && (oldest == "" || s.used.Before(u.sessions[oldest].used)) {
			oldest = key
		}
	}
	if oldest == "" && over {
		return &tool.Error{
			Kind: tool.RateLimited, RetryAfter: time.Second,
			Msg: fmt.Sprintf("this caller has %d connections of its own to %s, which is the maximum", own, u.name),
		}
	}
	if oldest == "" {
		return &tool.Error{
			Kind: tool.RateLimited, RetryAfter: time.Second,
			Msg: fmt.Sprintf("%d callers have a session with %s and are using it; try again later", len(u.sessions), u.name),
		}
	}
	u.sessions[oldest].conn.evicted.Store(true)
	u.work.Go(u.sessions[oldest].conn.close)
	delete(u.sessions, oldest)
	return nil
}

// sweep closes idle sessions and removes lost ones. Lost sessions with
// subscriptions are made again, because their callers may only be waiting for
// notifications.
func (u *upstream) sweep() {
	var old []*conn
	var again []connKind
	u.mu.Lock()
	for key, s := range u.sessions {
		switch {
		case s.conn == nil, !s.ended() && (s.conn.idle() < u.s.opts.SessionIdle || s.conn.keepsState()):
			continue
		case s.ended() && s.kind.login == "" && s.conn.sharedState.hasSubscribers(): // a personal login may have changed
			again = append(again, s.kind)
			continue
		}
		delete(u.sessions, key)
		old = append(old, s.conn)
	}
	u.mu.Unlock()
	for _, c := range old {
		u.close(c)
	}
	for _, k := range again {
		if _, err := u.sessionOf(k.key(), k); err != nil {
			u.s.log.Debug("cannot re-establish a session", "server", u.name, "err", err)
		}
	}
}

// keepsState reports whether callers would lose state if the connection was
// closed while idle: subscriptions, followed tasks, or the memory of a program
// that they share.
func (c *conn) keepsState() bool {
	return c.sharedState.hasSubscribers() || c.followers.Load() > 0 || c.beside && c.process != nil
}

// closeSessions closes all sessions and prevents new ones.
func (u *upstream) closeSessions() {
	u.mu.Lock()
	u.ended = true
	var all []*conn
	for key, s := range u.sessions {
		delete(u.sessions, key)
		if s.conn != nil {
			all = append(all, s.conn)
		}
	}
	u.mu.Unlock()
	for _, c := range all {
		u.close(c)
	}
}

// commonCapabilities returns the capabilities that both this program and the
// caller support, and the extensions of this program, which supports them for
// every caller.
func commonCapabilities(ours mcpclient.Capabilities, ex tool.Exchange) mcpclient.Capabilities {
	if ex.Ask == nil {
		return mcpclient.Capabilities{Extensions: ours.Extensions}
	}
	has := func(path ...string) bool {
		raw := rawjson.Field(ex.Capabilities, path...)
		return len(raw) > 0 && raw[0] == '{'
	}
	elicitation := rawjson.Field(ex.Capabilities, "elicitation")
	form := has("elicitation", "form") || has("elicitation") && !hasField(elicitation, "url")
	return mcpclient.Capabilities{
		Sampling:        ours.Sampling && has("sampling"),
		SamplingTools:   ours.SamplingTools && has("sampling", "tools"),
		ElicitationForm: ours.ElicitationForm && form,
		ElicitationURL:  ours.ElicitationURL && has("elicitation", "url"),
		Roots:           ours.Roots && has("roots"),
		Extensions:      ours.Extensions,
	}
}

func hasField(object json.RawMessage, key string) bool { return rawjson.Field(object, key) != nil }
