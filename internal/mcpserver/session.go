package mcpserver

import (
	"container/list"
	"context"
	"crypto/rand"
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// Session is one caller of the handshake era, from initialize to its end. It
// belongs to one byte stream, or is identified by its id over HTTP.
type Session struct {
	id           string // "" on a byte stream
	protocol     string
	caller       tool.Caller
	client       json.RawMessage
	capabilities json.RawMessage
	ctx          context.Context
	cancel       context.CancelCauseFunc
	standalone   outlet // for messages that belong to no call

	mu      sync.Mutex
	calls   map[mcp.ID]*call
	asked   map[mcp.ID]chan *mcp.Message
	asks    int64
	level   string
	uris    map[string]struct{}
	streams []*eventStream // that can be resumed, oldest first
	readers int            // open GET streams and requests
	used    time.Time
	timer   *time.Timer
	place   *list.Element

	credential tool.Credential // with which the session was last used over HTTP; nil if none is needed
	admitted   *tool.Caller    // the caller with the rights of that credential; nil means caller
	unbind     func()          // stops waiting for the end of the credential

	elsewhere func(*mcp.Message) bool // sends a message for the standalone stream to the process that reads it; nil without Cluster
	cluster   clusterState
}

// ID returns the id of a session over HTTP, or "" on a byte stream.
func (s *Session) ID() string { return s.id }

// OnEnd calls f, in its own goroutine, when the session has ended.
func (s *Session) OnEnd(f func()) { context.AfterFunc(s.ctx, f) }

// Notify sends the caller a notification that belongs to no request.
func (s *Session) Notify(method string, params json.RawMessage) {
	s.send(&mcp.Message{Method: method, Params: params})
}

// maxURIs bounds the resources that one session or subscription follows, and
// maxURIBytes the length of each URI that a session stores.
const (
	maxURIs     = 1000
	maxURIBytes = 8 << 10
)

// send sends a message on the session's standalone stream, unless it is a log
// message below the caller's level.
func (s *Session) send(m *mcp.Message) {
	if m.Method == mcp.MethodLogMessage {
		s.mu.Lock()
		level := s.level
		s.mu.Unlock()
		if mcp.LessSevere(rawjson.FieldString(m.Params, "level"), level) {
			return
		}
	}
	if s.elsewhere != nil && s.elsewhere(m) {
		return
	}
	s.standalone.put(m)
}

// applyRequest applies a successful request that changes the session: its log
// level or its subscriptions.
func (s *Session) applyRequest(method string, params json.RawMessage) {
	switch method {
	case mcp.MethodSetLevel, mcp.MethodSubscribe, mcp.MethodUnsubscribe:
	default:
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch method {
	case mcp.MethodSetLevel:
		if level := rawjson.FieldString(params, "level"); mcp.ValidLogLevel(level) {
			s.level = level
		}
	case mcp.MethodSubscribe:
		if s.uris == nil {
			s.uris = map[string]struct{}{}
		}
		if len(s.uris) < maxURIs {
			s.uris[rawjson.FieldString(params, "uri")] = struct{}{}
		}
	case mcp.MethodUnsubscribe:
		delete(s.uris, rawjson.FieldString(params, "uri"))
	}
}

func (s *Session) subscribed(uri string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return follows(s.uris, uri)
}

// follows reports whether uri is one of uris, or part of one of them.
func follows(uris map[string]struct{}, uri string) bool {
	if _, ok := uris[uri]; ok {
		return true
	}
	for whole := range uris {
		if rest, ok := strings.CutPrefix(uri, whole); ok && (strings.HasSuffix(whole, "/") || strings.HasPrefix(rest, "/")) {
			return true
		}
	}
	return false
}

// Subscriptions returns the resources that the session follows.
func (s *Session) Subscriptions() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	uris := make([]string, 0, len(s.uris))
	for uri := range s.uris {
		uris = append(uris, uri)
	}
	return uris
}

// LogLevel returns the lowest level of log messages that the caller requested,
// or "" if it requested none.
func (s *Session) LogLevel() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.level
}

// minLogLevel returns the least severe level of log messages that calls of the
// session forward. If the caller has set no level, all messages are forwarded.
func (s *Session) minLogLevel() string {
	if level := s.LogLevel(); level != "" {
		return level
	}
	return anyLevel
}

// admit registers a call under its id, so that it can be cancelled. It returns
// the error for the caller if the call is refused.
func (s *Session) admit(c *call, limit int) *mcp.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return admit(&s.calls, c.req.ID, c, limit)
}

func admit[T any](calls *map[mcp.ID]T, id mcp.ID, c T, limit int) *mcp.Error {
	if *calls == nil {
		*calls = map[mcp.ID]T{}
	}
	if _, twice := (*calls)[id]; twice {
		return &mcp.Error{Code: mcp.CodeInvalidRequest, Message: "a request with this id is still being answered; use another id"}
	}
	if len(*calls) >= limit {
		return &mcp.Error{Code: tool.RateLimited.JSONRPC(), Message: "too many requests in flight (" + strconv.Itoa(limit) + "); wait for answers"}
	}
	(*calls)[id] = c
	return nil
}

// release unregisters a call that has been answered.
func (s *Session) release(id mcp.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, id)
	if len(s.calls) == 0 {
		s.calls = nil // save memory in an idle session
	}
}

// cancelCall cancels the call that a notifications/cancelled names. If it is
// not known, it has been answered already or is executed by another process.
func (s *Session) cancelCall(params json.RawMessage) (known bool) {
	s.mu.Lock()
	c := s.calls[requestID(params)]
	s.mu.Unlock()
	if c != nil {
		c.cancel(errCancelledByCaller)
	}
	return c != nil
}

func requestID(params json.RawMessage) mcp.ID {
	raw := rawjson.Field(params, "requestId")
	if len(raw) == 0 {
		return ""
	}
	id, _ := mcp.CanonicalID(raw)
	return id
}

// expect registers a question to the caller and returns its id and the channel
// that receives the answer.
func (s *Session) expect(name func(int64) mcp.ID) (mcp.ID, <-chan *mcp.Message) {
	answer := make(chan *mcp.Message, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asks++
	id := name(s.asks)
	if s.asked == nil {
		s.asked = map[mcp.ID]chan *mcp.Message{}
	}
	s.asked[id] = answer
	return id, answer
}

func (s *Session) forget(id mcp.ID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if delete(s.asked, id); len(s.asked) == 0 {
		s.asked = nil
	}
}

// answered delivers a response to the request that waits for it. If no request
// of this process does, the response is late or belongs to another process.
func (s *Session) answered(m *mcp.Message) (expected bool) {
	s.mu.Lock()
	answer := s.asked[m.ID]
	delete(s.asked, m.ID)
	s.mu.Unlock()
	if answer != nil {
		answer <- m
	}
	return answer != nil
}

// idle reports whether the session has no readers and no calls in progress.
func (s *Session) idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readers == 0 && len(s.calls) == 0
}

// enter and leave count the HTTP requests that keep the session from expiring.
func (s *Session) enter() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readers++
}

func (s *Session) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readers--
	s.used = time.Now()
}

// open registers a new session over HTTP. It returns nil if there is no room.
func (s *Server) open(session *Session) *Session { return s.openAs(session, rand.Text()) }

// openAs is open for a session that has an id. If one with that id is
// registered already, openAs returns that one.
func (s *Server) openAs(session *Session, id string) *Session {
	session.id = id
	session.ctx, session.cancel = context.WithCancelCause(context.Background())
	session.used = time.Now()
	session.standalone = &eventStream{id: s.streamID(standaloneStream), keep: true, standing: true, wake: make(chan struct{}, 1), limit: standaloneLimit}
	if s.opts.Cluster != nil {
		session.elsewhere = func(m *mcp.Message) bool { return s.sendToStandalone(session, m) }
	}
	evicted, existing, ok := s.sessions.add(session)
	s.endAll(evicted)
	if existing != nil || !ok {
		session.cancel(errServerClosed)
		return existing
	}
	session.mu.Lock()
	session.timer = time.AfterFunc(s.opts.SessionIdle, func() { s.expire(session) })
	session.mu.Unlock()
	if s.closing() { // Close may have run before the session was registered
		s.end(session)
		return nil
	}
	return session
}

// expire ends a session that has been idle for SessionIdle, and otherwise
// resets its timer.
func (s *Server) expire(session *Session) {
	session.mu.Lock()
	wait := s.opts.SessionIdle - time.Since(session.used)
	if session.readers > 0 || len(session.calls) > 0 {
		wait = s.opts.SessionIdle
	}
	if wait > 0 {
		session.timer.Reset(wait)
		session.mu.Unlock()
		return
	}
	session.mu.Unlock()
	s.end(session)
}

// bind makes the session end with the credential of ctx instead of the one that
// it was last used with: the caller may have obtained a new one meanwhile.
func (s *Server) bind(ctx context.Context, session *Session) {
	c := tool.CredentialFrom(ctx)
	session.mu.Lock()
	defer session.mu.Unlock()
	if session.credential == c || session.ctx.Err() != nil {
		return
	}
	if session.unbind != nil {
		session.unbind()
	}
	admitted := tool.CallerFrom(ctx)
	session.credential, session.admitted = c, &admitted
	session.unbind = tool.OnCredentialEnd(ctx, func() {
		session.mu.Lock()
		current := session.credential == c
		session.mu.Unlock()
		if current {
			s.end(session)
		}
	})
}

// lastCaller returns the caller with the rights of the credential with which
// the session was last used.
func (s *Session) lastCaller() *tool.Caller {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.admitted != nil {
		return s.admitted
	}
	return &s.caller
}

func (s *Server) endAll(sessions []*Session) {
	for _, session := range sessions {
		s.end(session)
	}
}

// end closes a session and everything that belongs to it.
func (s *Server) end(session *Session) {
	s.sessions.remove(session)
	session.mu.Lock()
	if session.unbind != nil {
		session.unbind()
		session.unbind = nil
	}
	if session.timer != nil {
		session.timer.Stop()
	}
	streams := session.streams
	session.streams = nil
	session.mu.Unlock()
	session.cancel(errServerClosed)
	for _, st := range streams {
		st.end()
		st.forget()
	}
	if own, ok := session.standalone.(*eventStream); ok {
		own.end()
	}
}
