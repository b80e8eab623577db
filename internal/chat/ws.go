package chat

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"
	"golang.org/x/time/rate"

	"junctor/internal/chat/wire"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
	"junctor/internal/wsconn"
)

// WebSocket close codes of the chat besides [wsconn.CredentialEnded];
// docs/chat.md explains them.
const (
	closeNoSession = websocket.StatusCode(4404)
	closeTooSlow   = websocket.StatusCode(4408)
	closeFlood     = websocket.StatusCode(4429)
	closeDeleted   = websocket.StatusCode(4410)
)

// maxIgnored is how many messages beyond the rate a client may send before
// the connection is closed.
const maxIgnored = 100

// writeTimeout bounds the time to write one message. A client that reads
// nothing for that long is disconnected.
const writeTimeout = 30 * time.Second

// minPongTimeout is the minimum time that a client has to answer a ping.
const minPongTimeout = 5 * time.Second

// closeGrace is the time for sending the reason before a slow client is
// disconnected.
const closeGrace = 5 * time.Second

// ServeWS serves /ws. The auth gate has already checked the caller and the
// origin.
func (h *Host) ServeWS(w http.ResponseWriter, r *http.Request) {
	cfg := h.config()
	h.mu.Lock()
	full := h.connections >= cfg.MaxConnections
	if !full {
		h.connections++
	}
	h.mu.Unlock()
	if full {
		w.Header().Set("Retry-After", "30")
		http.Error(w, "too many connections; try again later", http.StatusServiceUnavailable)
		return
	}
	defer func() {
		h.mu.Lock()
		h.connections--
		h.mu.Unlock()
	}()
	conn, err := wsconn.Accept(w, r)
	if err != nil {
		return // Accept has sent the response
	}
	defer conn.CloseNow()
	// A character may take six bytes in JSON, and three bytes of an attachment
	// take four. The connection rejects longer messages; shorter ones that
	// exceed the limit get an error.
	conn.SetReadLimit(int64(cfg.MaxMessageBytes)*6 + int64(cfg.MaxAttachmentBytes)*4/3 + 8192)

	c := &connection{host: h, conn: conn, caller: tool.CallerFrom(r.Context()),
		limit: rate.NewLimiter(rate.Limit(float64(cfg.MessagesPerMinute)/60), max(cfg.MessagesPerMinute/4, 5))}
	// The request's context ends with the gateway or with the caller's
	// credential. The client then gets a close frame instead of a broken
	// connection.
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	defer context.AfterFunc(r.Context(), func() {
		if context.Cause(r.Context()) == tool.ErrCredentialEnded {
			c.ended.Store(true)
			_ = conn.CloseEnded()
			cancel()
			return
		}
		_ = conn.Close(websocket.StatusServiceRestart, "the gateway is stopping; connect again with sessionId and after")
	})()
	c.serve(ctx, r)
}

// connection is one WebSocket.
type connection struct {
	host    *Host
	conn    *wsconn.Conn
	caller  tool.Caller
	session *Session
	watcher *Watcher
	limit   *rate.Limiter
	ignored int
	ended   atomic.Bool // the caller's credential has ended; messages are ignored until Close has closed the connection
}

func (c *connection) serve(ctx context.Context, r *http.Request) {
	q := r.URL.Query()
	after := int64(-1)
	if v := q.Get("after"); v != "" {
		if n, err := strconv.ParseInt(v, 10, 64); err == nil && n >= 0 {
			after = n
		}
	}
	session, err := c.host.Open(ctx, c.caller, q.Get("sessionId"))
	if err == nil {
		c.session = session
		c.watcher, err = session.Watch(ctx, c.caller, after)
	}
	if err != nil {
		c.refuse(ctx, q.Get("sessionId"), err)
		return
	}
	defer c.watcher.Close()
	// A client that does not read the close frame must not keep its connection.
	onDrop := func() { time.AfterFunc(closeGrace, func() { c.conn.CloseNow() }) }
	c.watcher.onDrop.Store(&onDrop)
	ctx = telemetry.WithSession(ctx, session.ID())
	c.host.Log.DebugContext(ctx, "connected", telemetry.KeyAction, "connect", "caller", c.caller.Name, "agent", tool.Shorten(r.UserAgent(), 120))
	defer c.host.Log.DebugContext(ctx, "disconnected", telemetry.KeyAction, "disconnect")

	ctx, cancel := context.WithCancel(ctx)
	written := make(chan struct{})
	go func() {
		defer close(written)
		c.write(ctx)
		if !c.ended.Load() { // otherwise the close frame may not have been written
			cancel()
		}
	}()
	c.read(ctx)
	cancel()
	<-written
}

// refuse sends the reason why there is no session and closes the connection.
func (c *connection) refuse(ctx context.Context, id string, err error) {
	e := tool.AsError(err)
	for _, m := range []wire.Outgoing{
		{Type: wire.TypeConnection, Payload: wire.ConnectionPayload{State: "error", Message: e.Msg, SessionID: tool.Shorten(id, 128)}},
		{Type: wire.TypeError, Payload: wire.ErrorPayload{Code: string(e.Kind), Message: e.Msg}},
	} {
		data, err := json.Marshal(m)
		if err != nil || c.send(ctx, data) != nil {
			return
		}
	}
	code := closeNoSession
	if e.Kind != tool.InvalidRequest {
		code = websocket.StatusTryAgainLater
	}
	c.conn.Close(code, tool.Shorten(e.Msg, 100))
}

func (c *connection) send(ctx context.Context, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return c.conn.Write(ctx, websocket.MessageText, data)
}

// write sends the session's messages and pings the client periodically.
func (c *connection) write(ctx context.Context) {
	w := c.watcher
	for _, data := range w.first {
		if c.send(ctx, data) != nil {
			return
		}
	}
	w.first = nil
	every := c.host.config().PingMs.Duration()
	ping := time.NewTimer(every)
	defer ping.Stop()
	answered := make(chan error, 1) // messages must not wait for a slow pong
	for {
		select {
		case data := <-w.queue:
			if c.ended.Load() || c.send(ctx, data) != nil {
				return
			}
		case <-w.done:
			c.end(ctx)
			return
		case <-ctx.Done():
			return
		case <-ping.C:
			go func() {
				pong, cancel := context.WithTimeout(ctx, max(every, minPongTimeout))
				defer cancel()
				answered <- c.conn.Ping(pong)
			}()
		case err := <-answered:
			if err != nil {
				if ctx.Err() == nil {
					c.host.Log.DebugContext(ctx, "client does not respond; closing its connection", telemetry.KeyAction, "heartbeat")
				}
				c.conn.CloseNow()
				return
			}
			ping.Reset(every)
		}
	}
}

// end closes a connection whose watcher has ended.
func (c *connection) end(ctx context.Context) {
	if ctx.Err() != nil {
		return
	}
	c.session.mu.Lock()
	deleted := c.session.deleted
	c.session.mu.Unlock()
	if deleted {
		c.conn.Close(closeDeleted, "the session was deleted")
		return
	}
	if !c.session.readableBy(&c.caller) {
		c.conn.Close(closeNoSession, noSession().Msg)
		return
	}
	c.host.Log.InfoContext(ctx, "client is too slow; its connection is closed", telemetry.KeyAction, "drop")
	c.conn.Close(closeTooSlow, "too slow; connect again with sessionId and after")
}

func (c *connection) read(ctx context.Context) {
	for {
		kind, reader, err := c.conn.Reader(ctx)
		if err != nil {
			return
		}
		data, err := io.ReadAll(reader)
		if err != nil {
			return
		}
		if c.ended.Load() {
			continue
		}
		if !c.limit.Allow() {
			if c.ignored++; c.ignored > maxIgnored {
				c.conn.Close(closeFlood, "too many messages")
				return
			}
			c.fail(&tool.Error{Kind: tool.RateLimited, Msg: "too many messages; wait a moment", RetryAfter: time.Second})
			continue
		}
		c.ignored = 0
		if kind != websocket.MessageText {
			c.fail(invalid("messages are JSON text, not binary"))
			continue
		}
		c.handle(ctx, data)
	}
}

func (c *connection) fail(err error) { c.failed(err, wire.ErrorPayload{}) }

// failed sends an error; about identifies the approval or question that it
// refers to.
func (c *connection) failed(err error, about wire.ErrorPayload) {
	e := tool.AsError(err)
	about.Code, about.Message, about.RetryAfter = string(e.Kind), e.Msg, e.RetryAfter.Milliseconds()
	c.watcher.Send(wire.TypeError, about)
}

// handle handles one message.
func (c *connection) handle(ctx context.Context, data []byte) {
	in, err := wire.Parse(data)
	if err == nil {
		err = c.session.checkReadable(ctx, &c.caller)
	}
	if err != nil {
		c.fail(err)
		return
	}
	switch m := in.(type) {
	case wire.SendMessage:
		if err := c.session.Post(ctx, c.caller, m); err != nil {
			c.fail(err)
		}
	case wire.SwitchMessage:
		if err := c.session.Switch(ctx, m.MessageID); err != nil {
			c.fail(err)
		}
	case wire.PreferMessage:
		if err := c.session.SetPreferences(ctx, c.caller, m.Preferences); err != nil {
			c.fail(err)
		}
	case wire.AbortMessage:
		if !c.session.Abort(ctx) {
			c.fail(&tool.Error{Kind: tool.InvalidRequest, Msg: "there is nothing to abort"})
		}
	case wire.DecideMessage:
		if !c.session.Decide(ctx, m.CallID, m.Decision) {
			c.failed(&tool.Error{Kind: wire.CodeNoApproval, Msg: "there is no longer an approval with this callId"}, wire.ErrorPayload{CallID: m.CallID})
		}
	case wire.AnswerMessage:
		if err := c.session.Answer(ctx, m.QuestionID, m.Answer); err != nil {
			c.failed(err, wire.ErrorPayload{QuestionID: m.QuestionID})
		}
	case wire.HistoryRequest:
		err := c.session.refresh(ctx)
		history := c.session.History()
		if err == nil { // another process may have written in the meantime
			err = c.session.checkReadable(ctx, &c.caller)
		}
		if err != nil {
			c.fail(err)
			return
		}
		c.watcher.Send(wire.TypeHistory, trimHistory(history, maxHistory))
	}
}
