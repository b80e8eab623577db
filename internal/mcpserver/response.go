package mcpserver

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/tool"
)

// response is an HTTP response that a stream is written to. It is plain JSON if
// the stream ends within StreamAfter and has only responses, and an event
// stream otherwise.
type response struct {
	w       http.ResponseWriter
	r       *http.Request
	session *Session // nil in the stateless era
	st      *eventStream
	reader  int
	batch   bool // plain JSON is an array
	events  bool // it must be an event stream
	plain   bool // it must not be one
	begun   bool // it has become one
	ready   []event

	srv     *Server
	mu      sync.Mutex
	taken   bool     // one of the goroutines that may write it does
	late    bool     // it has waited for StreamAfter
	written chan any // receives what the early writer panicked with, or nil, when it is done; nil without early writer
}

// postCalls starts the requests of a POST of the handshake era and writes their
// messages to the response.
func (s *Server) postCalls(p *post, session *Session, requests []*mcp.Message) {
	s.answering.Add(1)
	defer s.answering.Add(-1)
	st := newEventStream(s.streamID(rand.Text()), true, len(requests)+len(p.broken))
	st.plain = !p.events
	st.answered = session.release
	var life context.Context
	life, st.stop = context.WithCancelCause(session.ctx)
	for _, broken := range p.broken {
		st.add(broken.Response(), true)
	}
	for _, m := range requests {
		c := s.newCall(p.r.Context(), life, session.request(m, p.r.Header, p.caller), st)
		c.exchange(session.capabilities)
		if !p.events {
			c.req.Exchange.Ask = nil // there is no stream to send a question on
		}
		if refused := session.admit(c, s.opts.MaxCalls); refused != nil {
			c.detach()
			c.cancel(nil)
			st.add(&mcp.Message{ID: m.ID, Error: refused}, true)
			continue
		}
		s.workers.do(c)
	}
	s.writeStream(&response{w: p.w, r: p.r, session: session, st: st, reader: firstReader, batch: p.batch, events: !p.json, plain: !p.events})
}

// writeStream writes a stream to a response until the stream ends, the caller
// disconnects, or another response takes over the stream. In the first two
// cases it then calls finishResponse.
func (s *Server) writeStream(res *response) {
	if lost := s.write(res); !lost {
		s.finishResponse(res)
	}
}

// runAndWrite runs a call on the goroutine of its request, in the context of
// the request, and then writes the response. If the call takes longer than
// StreamAfter, or sends something before its response, another goroutine writes
// meanwhile.
func (s *Server) runAndWrite(c *call, res *response) {
	res.st.early = res
	timer := time.AfterFunc(s.opts.StreamAfter, func() { res.writeEarly(true) })
	c.run()
	timer.Stop()
	res.mu.Lock()
	written := res.written
	res.taken = true
	res.mu.Unlock()
	switch {
	case written != nil:
		if p := <-written; p != nil {
			panic(p)
		}
	case disconnectCause(res.r.Context()) == tool.ErrCredentialEnded:
		refuseEnded(res)
	default:
		s.writeStream(res)
	}
}

// writeEarly starts to write the response while the call runs, once. late means
// that the call has taken StreamAfter.
func (res *response) writeEarly(late bool) {
	res.mu.Lock()
	defer res.mu.Unlock()
	if res.taken {
		return
	}
	res.taken, res.late, res.written = true, late, make(chan any, 1)
	go func() {
		defer func() { res.written <- recover() }()
		res.srv.writeStream(res)
	}()
}

func (s *Server) write(res *response) (lost bool) {
	wait := s.opts.StreamAfter
	if res.late {
		wait = 0
	}
	if res.events {
		wait = s.opts.KeepAlive
		if !s.begin(res, "") {
			return false
		}
	}
	var timer *time.Timer
	for {
		b := res.st.take(res.reader)
		if b.lost {
			return true
		}
		switch {
		case res.begun:
			if !s.writeEvents(res, b.events, b.number) {
				return false
			}
		case b.ended && onlyReplies(b.events):
			if len(res.ready) > 0 {
				b.events = append(res.ready, b.events...)
			}
			s.writePlain(res, b.events)
			if res.session == nil && res.r.ProtoMajor == 1 { // HTTP/2 may still write when Write has failed
				res.st.memory.Return()
			}
			return false
		default:
			first := b.number - len(res.ready)
			res.ready = append(res.ready, b.events...)
			if !res.plain && !onlyReplies(b.events) {
				if !s.begin(res, "") || !s.writeEvents(res, res.ready, first) {
					return false
				}
			}
		}
		if b.ended {
			return false
		}
		if timer == nil {
			timer = time.NewTimer(wait)
			defer timer.Stop()
		}
		select {
		case <-b.wake:
		case <-res.r.Context().Done():
			if !res.begun {
				refuseEnded(res)
			}
			return false
		case <-timer.C:
			if !s.keepAlive(res) {
				return false
			}
			timer.Reset(s.opts.KeepAlive)
		}
	}
}

func onlyReplies(events []event) bool {
	for _, e := range events {
		if !e.reply {
			return false
		}
	}
	return true
}

// keepAlive keeps a silent response alive: it writes a comment to an event
// stream, and turns a slow plain response into an event stream. For newer
// protocol versions the first event of that has an id from which to resume.
func (s *Server) keepAlive(res *response) bool {
	if res.begun {
		return s.flush(res, []byte(": \n\n"))
	}
	if res.plain {
		return true
	}
	prime := ""
	if res.session != nil && res.session.protocol >= mcp.Version20251125 {
		prime = eventID(res.st.id, 0)
	}
	return s.begin(res, prime) && s.writeEvents(res, res.ready, firstNumber)
}

// begin turns the response into an event stream.
func (s *Server) begin(res *response, prime string) bool {
	res.begun = true
	if res.session == nil { // the call must end even while a write blocks
		ctx := res.r.Context()
		context.AfterFunc(ctx, func() { res.st.stop(disconnectCause(ctx)) })
	}
	if res.session != nil && !res.st.standing && res.reader == firstReader { // a later reader found it in the session
		res.session.remember(res.st)
	}
	startEvents(res.w)
	first := []byte(": \n\n") // proxies forward the headers with the first byte
	if prime != "" {
		first = appendEvent(nil, prime, mcp.Encoded{})
	}
	return s.flush(res, first)
}

func startEvents(w http.ResponseWriter) {
	setEventHeaders(w.Header())
	w.WriteHeader(http.StatusOK)
}

func setEventHeaders(h http.Header) {
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	h.Set("X-Content-Type-Options", "nosniff")
}

func appendEvent(dst []byte, id string, data mcp.Encoded) []byte {
	if data.Size() > 0 {
		dst = append(dst, "event: message\n"...)
	}
	if id != "" {
		dst = append(append(append(dst, "id: "...), id...), '\n')
	}
	return append(data.AppendTo(append(dst, "data: "...)), "\n\n"...)
}

func (s *Server) writeEvents(res *response, events []event, number int) bool {
	if len(events) == 0 {
		return true
	}
	size := 0
	for _, e := range events {
		size += e.data.Size() + 64
	}
	out := make([]byte, 0, size)
	for i, e := range events {
		id := ""
		if res.st.keep {
			id = eventID(res.st.id, number+i)
		}
		out = appendEvent(out, id, e.data)
	}
	return s.flush(res, out)
}

// flush writes data with the deadline of Options.WriteTimeout.
func (s *Server) flush(res *response, data []byte) bool {
	rc := http.NewResponseController(res.w)
	_ = rc.SetWriteDeadline(time.Now().Add(s.opts.WriteTimeout)) // not every writer supports deadlines
	if _, err := res.w.Write(data); err != nil {
		return false
	}
	if err := rc.Flush(); err != nil {
		return false
	}
	_ = rc.SetWriteDeadline(time.Time{})
	return true
}

// serverBuffer is the size from which a body does not fit into the buffer of
// net/http's server, which otherwise adds the Content-Length itself.
const serverBuffer = 2 << 10

// disconnectCause returns why the request of ctx ended before its call.
func disconnectCause(ctx context.Context) error {
	if errors.Is(context.Cause(ctx), tool.ErrCredentialEnded) {
		return tool.ErrCredentialEnded
	}
	return errCallerLeft
}

// refuseEnded responds to a request whose credential ended before its call. It
// does nothing for a caller that has disconnected.
func refuseEnded(res *response) {
	if cause := disconnectCause(res.r.Context()); cause == tool.ErrCredentialEnded {
		res.w.Header().Set("WWW-Authenticate", "Bearer")
		refuse(res.w, http.StatusUnauthorized, "", mcp.ToolError(&tool.Error{Kind: tool.Unauthenticated, Msg: cause.Error()}))
	}
}

// writePlain writes responses as one JSON body.
func (s *Server) writePlain(res *response, events []event) {
	if len(events) == 0 { // the stream ended before there was a response
		refuse(res.w, http.StatusServiceUnavailable, "", &mcp.Error{Code: mcp.CodeInternalError, Message: "the session has ended"})
		return
	}
	status, body := events[0].status, events[0].data
	if res.batch {
		all := []byte{'['}
		for i, e := range events {
			if i > 0 {
				all = append(all, ',')
			}
			all = e.data.AppendTo(all)
		}
		status, body = http.StatusOK, mcp.Encoded{Head: append(all, ']')}
	}
	if body.Size() >= serverBuffer {
		res.w.Header()["Content-Length"] = []string{strconv.Itoa(body.Size())}
	}
	writeJSON(res.w, status, body.Head, body.Body, body.Tail)
}

// finishResponse handles a stream whose HTTP response has ended. A finished
// stream is kept for ResumeTimeout if its reader may have missed the end. The
// calls of a broken one are cancelled after ResumeTimeout unless the caller
// resumes it, or immediately if it cannot be resumed.
func (s *Server) finishResponse(res *response) {
	st, session := res.st, res.session
	if st.standing {
		return
	}
	if n := st.drops.Load(); n > 0 {
		s.log.WarnContext(res.r.Context(), "dropped notifications for a slow reader", "count", n)
	}
	replayable := session != nil && res.begun && st.keep
	switch {
	case st.finished():
		st.stop(nil)
		if replayable {
			s.keepFinished(session, st)
		}
	case replayable:
		st.detach(res.reader, s.opts.ResumeTimeout, func() {
			st.stop(errCallerLeft)
			session.forgetStream(st)
		}, func() {
			st.stop(nil)
			s.keepFinished(session, st)
		})
	default:
		st.stop(disconnectCause(res.r.Context()))
	}
}

// keepFinished keeps a finished stream in case its reader missed the end. If
// the server would keep more than replayBytes, it drops the stream instead, so
// that streams that are never resumed cannot exhaust the memory.
func (s *Server) keepFinished(session *Session, st *eventStream) {
	size := int64(st.size())
	release := func() { s.replay.Add(-size) }
	expire := func() { session.forgetStream(st) }
	if s.replay.Add(size) > replayBytes {
		release()
		expire()
		return
	}
	if !st.keepFor(s.opts.ResumeTimeout, expire, release) {
		release()
	}
}
