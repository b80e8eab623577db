package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"

	"junctor/internal/mcp"
	"junctor/internal/tool"
)

// The HTTP headers of the protocol.
const (
	headerSession   = "Mcp-Session-Id"
	headerProtocol  = "Mcp-Protocol-Version"
	headerMethod    = "Mcp-Method"
	headerName      = "Mcp-Name"
	headerLastEvent = "Last-Event-ID"
)

// handshakeVersions are the versions of the handshake era, the newest first.
var handshakeVersions = []string{mcp.Version20251125, mcp.Version20250618, mcp.Version20250326, mcp.Version20241105}

// serverVersions are all versions that a Server supports, the newest first.
var serverVersions = append([]string{mcp.Version20260728}, handshakeVersions...)

// ServeHTTP serves the streamable HTTP transport on one URL for both eras, and
// the legacy SSE transport of 2024-11-05. The caller is taken from the
// request's context: authentication and the checks of Host and Origin must have
// been done before.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.closing() {
		refuse(w, http.StatusServiceUnavailable, "", &mcp.Error{Code: tool.Unavailable.JSONRPC(), Message: "the server is shutting down"})
		return
	}
	switch r.Method {
	case http.MethodPost:
		s.servePost(w, r)
	case http.MethodGet, http.MethodDelete:
		if r.Header.Get(headerProtocol) >= mcp.Version20260728 {
			w.Header().Set("Allow", http.MethodPost)
			refuse(w, http.StatusMethodNotAllowed, "", &mcp.Error{Code: mcp.CodeInvalidRequest, Message: "protocol version " + mcp.Version20260728 + " uses only POST; subscriptions/listen opens a stream"})
			return
		}
		switch {
		case r.Method == http.MethodDelete:
			s.serveDelete(w, r)
		case asksForSSE(r):
			s.serveSSE(w, r)
		default:
			s.serveGet(w, r)
		}
	default:
		w.Header().Set("Allow", "POST, GET, DELETE")
		refuse(w, http.StatusMethodNotAllowed, "", &mcp.Error{Code: mcp.CodeInvalidRequest, Message: "use POST, GET or DELETE"})
	}
}

// refuse responds to an HTTP request with a JSON-RPC error.
func refuse(w http.ResponseWriter, status int, id mcp.ID, e *mcp.Error) {
	writeJSON(w, status, mcp.AppendMessage(nil, &mcp.Message{ID: id, Error: e}))
}

// reject is refuse for a request that is malformed or has no valid session. It
// also reports the request to Options.Rejected.
func (s *Server) reject(w http.ResponseWriter, r *http.Request, status int, id mcp.ID, e *mcp.Error) {
	s.rejected(r, status, e)
	refuse(w, status, id, e)
}

func (s *Server) rejected(r *http.Request, status int, e *mcp.Error) {
	if s.opts.Rejected != nil {
		s.opts.Rejected(r, status, e)
	}
}

// Values of headers that every JSON response has. They must not be modified.
var typeJSON, noStore, noSniff = []string{"application/json"}, []string{"no-store"}, []string{"nosniff"}

func writeJSON(w http.ResponseWriter, status int, body ...[]byte) {
	h := w.Header()
	h["Content-Type"], h["Cache-Control"], h["X-Content-Type-Options"] = typeJSON, noStore, noSniff
	w.WriteHeader(status)
	for _, part := range body {
		if len(part) > 0 {
			_, _ = w.Write(part) // the caller may have disconnected
		}
	}
}

// post is one HTTP POST and its messages.
type post struct {
	w        http.ResponseWriter
	r        *http.Request
	caller   tool.Caller
	messages []mcp.Message
	room     [1]mcp.Message // backs messages in the common case
	broken   []*mcp.DecodeError
	batch    bool
	events   bool // the caller accepts an event stream
	json     bool // the caller accepts plain JSON
}

func (s *Server) servePost(w http.ResponseWriter, r *http.Request) {
	p, ok := s.readPost(w, r)
	if !ok {
		return
	}
	if r.URL.RawQuery != "" && r.Header.Get(headerSession) == "" {
		if id := r.URL.Query().Get(sseParam); id != "" {
			s.postSSE(p, id)
			return
		}
	}
	for i := range p.messages {
		s.logReceived(r.Context(), &p.messages[i])
	}
	if !p.batch && len(p.broken) > 0 {
		status := http.StatusBadRequest
		if p.broken[0].TooLarge {
			status = http.StatusRequestEntityTooLarge
		}
		m := p.broken[0].Response()
		s.reject(w, r, status, m.ID, m.Error)
		return
	}
	version := r.Header.Get(headerProtocol)
	if !p.batch && (version >= mcp.Version20260728 || metaVersion(&p.messages[0]) != "") {
		s.postStateless(p, &p.messages[0])
		return
	}
	if version != "" && !slices.Contains(handshakeVersions, version) {
		var id mcp.ID
		if len(p.messages) > 0 {
			id = p.messages[0].ID
		}
		s.reject(w, r, http.StatusBadRequest, id, unsupported(version))
		return
	}
	s.postHandshake(p)
}

// readPost reads the messages of a POST. If the request is invalid it responds
// with an error and reports false.
func (s *Server) readPost(w http.ResponseWriter, r *http.Request) (*post, bool) {
	if !isJSONBody(r.Header.Get("Content-Type")) {
		s.reject(w, r, http.StatusUnsupportedMediaType, "", &mcp.Error{Code: mcp.CodeInvalidRequest, Message: "Content-Type must be application/json"})
		return nil, false
	}
	p := &post{w: w, r: r, caller: tool.CallerFrom(r.Context())}
	p.messages = p.room[:0]
	p.json, p.events = accepts(r.Header.Values("Accept"))
	if !p.json && !p.events {
		s.reject(w, r, http.StatusNotAcceptable, "", &mcp.Error{Code: mcp.CodeInvalidRequest, Message: "Accept must include application/json and text/event-stream"})
		return nil, false
	}
	limited := r.Body
	if limit := int64(s.opts.Limits.MaxBytes); r.ContentLength <= 0 || r.ContentLength > limit { // otherwise ContentLength bounds it
		limited = http.MaxBytesReader(w, r.Body, limit)
	}
	body, err := mcp.ReadAll(limited, r.ContentLength, nil)
	if err != nil {
		if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
			s.reject(w, r, http.StatusRequestEntityTooLarge, "", &mcp.Error{Code: tool.TooLarge.JSONRPC(), Message: fmt.Sprintf("the request body is over the limit of %d bytes", large.Limit)})
			return nil, false
		}
		s.reject(w, r, http.StatusBadRequest, "", &mcp.Error{Code: mcp.CodeParseError, Message: "the request body could not be read completely"})
		return nil, false
	}
	p.batch = mcp.DecodeEach(body, s.opts.Limits, func(m mcp.Message, err error) {
		if broken, ok := errors.AsType[*mcp.DecodeError](err); ok {
			p.broken = append(p.broken, broken)
			return
		}
		p.messages = append(p.messages, m)
	})
	return p, true
}

// isJSONBody reports whether a content type is JSON. It ignores parameters.
func isJSONBody(contentType string) bool {
	if contentType == "application/json" { // the common case
		return true
	}
	media, _, err := mime.ParseMediaType(contentType)
	return err == nil && media == "application/json"
}

// accepts reports whether an Accept header allows plain JSON and event streams.
// Without the header both are allowed.
func accepts(values []string) (plain, events bool) {
	if len(values) == 0 || len(values) == 1 && values[0] == "application/json, text/event-stream" { // what MCP requires of clients
		return true, true
	}
	for _, value := range values {
		for part := range strings.SplitSeq(value, ",") {
			media, _, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(media)) {
			case "application/json", "application/*":
				plain = true
			case "text/event-stream", "text/*":
				events = true
			case "*/*":
				plain, events = true, true
			}
		}
	}
	return plain, events
}

func unsupported(version string) *mcp.Error {
	data, _ := json.Marshal(struct {
		Supported []string `json:"supported"`
		Requested string   `json:"requested"`
	}{serverVersions, version})
	return &mcp.Error{Code: mcp.CodeUnsupportedProtocol, Message: "unsupported protocol version", Data: data}
}

// postHandshake serves a POST of the handshake era.
func (s *Server) postHandshake(p *post) {
	for _, m := range p.messages {
		if m.Method == mcp.MethodInitialize {
			if p.batch || !m.IsRequest() {
				refuse(p.w, http.StatusBadRequest, m.ID, &mcp.Error{Code: mcp.CodeInvalidRequest, Message: "initialize must be sent as a single request"})
				return
			}
			s.postInitialize(p, &m)
			return
		}
	}
	session := s.sessionOf(p.w, p.r, p.caller)
	if session == nil {
		return
	}
	if p.batch && session.protocol > mcp.Version20250326 {
		refuse(p.w, http.StatusBadRequest, "", &mcp.Error{Code: mcp.CodeInvalidRequest, Message: "protocol version " + session.protocol + " does not support batches; send one message per request"})
		return
	}
	session.enter()
	defer session.leave()
	var requests []*mcp.Message
	for i := range p.messages {
		switch m := &p.messages[i]; {
		case m.IsRequest():
			requests = append(requests, m)
		case m.IsResponse():
			if !session.answered(m) {
				s.answerElsewhere(session, m)
			}
		default:
			s.notified(p.r.Context(), session, m)
		}
	}
	if len(requests) == 0 && len(p.broken) == 0 {
		p.w.WriteHeader(http.StatusAccepted)
		return
	}
	if len(p.broken) > 0 {
		s.rejected(p.r, http.StatusBadRequest, p.broken[0].Response().Error)
	}
	s.postCalls(p, session, requests)
}

// notified handles a notification of a session.
func (s *Server) notified(ctx context.Context, session *Session, m *mcp.Message) {
	switch m.Method {
	case mcp.MethodCancelled:
		if !session.cancelCall(m.Params) && s.opts.Cluster != nil {
			s.publish("", clusterMessage{Session: session.id, What: clusterCancel, Params: m.Params})
		}
	default:
		s.handler.Notified(ctx, session, m.Method, m.Params)
	}
}

// sessionOf returns the session of the request. If it has no valid one,
// sessionOf responds with an error and returns nil.
func (s *Server) sessionOf(w http.ResponseWriter, r *http.Request, caller tool.Caller) *Session {
	id := r.Header.Get(headerSession)
	if id == "" {
		s.reject(w, r, http.StatusBadRequest, "", &mcp.Error{Code: mcp.CodeInvalidRequest, Message: "no " + headerSession + " header; send initialize first, or speak protocol version " + mcp.Version20260728})
		return nil
	}
	session := s.sessions.get(id, caller.View())
	if session == nil {
		var err error
		ctx, cancel := context.WithTimeout(r.Context(), lookupTimeout)
		defer cancel()
		if session, err = s.loadSession(ctx, id, caller); err != nil {
			refuseUnshared(w)
			return nil
		}
	} else {
		s.checkRecord(session)
	}
	if session == nil {
		s.reject(w, r, http.StatusNotFound, "", &mcp.Error{Code: mcp.CodeInvalidRequest, Message: "no such session, or it has expired; send initialize again"})
		return nil
	}
	s.bind(r.Context(), session)
	return session
}

// postInitialize opens a session.
func (s *Server) postInitialize(p *post, m *mcp.Message) {
	session := newSession(p.caller, m.Params)
	req := session.request(m, p.r.Header, p.caller)
	ctx, cancel := context.WithCancelCause(p.r.Context())
	defer cancel(nil)
	result, err := s.initialize(ctx, req)
	if err != nil {
		writeJSON(p.w, http.StatusOK, mcp.AppendMessage(nil, &mcp.Message{ID: m.ID, Error: s.errorFor(ctx, req, err)}))
		return
	}
	if s.open(session) == nil {
		p.w.Header().Set("Retry-After", "5")
		refuse(p.w, http.StatusServiceUnavailable, m.ID, &mcp.Error{Code: tool.RateLimited.JSONRPC(), Message: "too many sessions; try again shortly"})
		return
	}
	s.bind(ctx, session)
	if refused := s.share(ctx, session); refused != nil {
		s.end(session)
		writeJSON(p.w, http.StatusOK, mcp.AppendMessage(nil, &mcp.Message{ID: m.ID, Error: refused}))
		return
	}
	p.w.Header().Set(headerSession, session.id)
	answer := mcp.AppendMessage(nil, &mcp.Message{ID: m.ID, Result: result})
	if p.json {
		writeJSON(p.w, http.StatusOK, answer)
		return
	}
	startEvents(p.w)
	_, _ = p.w.Write(appendEvent(nil, "", mcp.Encoded{Head: answer}))
}

func (s *Server) serveDelete(w http.ResponseWriter, r *http.Request) {
	if session := s.sessionOf(w, r, tool.CallerFrom(r.Context())); session != nil {
		if err := s.endEverywhere(r.Context(), session); err != nil {
			refuseUnshared(w)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	}
}

// serveGet opens the session's standalone stream, or resumes a broken stream.
func (s *Server) serveGet(w http.ResponseWriter, r *http.Request) {
	if _, events := accepts(r.Header.Values("Accept")); !events {
		refuse(w, http.StatusNotAcceptable, "", &mcp.Error{Code: mcp.CodeInvalidRequest, Message: "Accept must include text/event-stream"})
		return
	}
	session := s.sessionOf(w, r, tool.CallerFrom(r.Context()))
	if session == nil {
		return
	}
	session.enter()
	defer session.leave()
	id, number, replay := s.streamID(standaloneStream), 0, false
	if last := r.Header.Get(headerLastEvent); last != "" {
		var ok bool
		if id, number, ok = parseEventID(last); !ok {
			refuse(w, http.StatusBadRequest, "", &mcp.Error{Code: mcp.CodeInvalidRequest, Message: "Last-Event-ID is not valid"})
			return
		}
		replay = true
		if node := s.streamOwner(r.Context(), id); node != "" {
			if s.serveRemoteStream(w, r, session, node, id, number) {
				return
			}
			if strings.HasSuffix(id, "."+standaloneStream) { // the kept events are lost, but new ones can be delivered
				id, number, replay = s.streamID(standaloneStream), 0, false
			}
		}
	}
	st := session.findStream(id)
	if st == nil {
		refuse(w, http.StatusBadRequest, "", &mcp.Error{Code: mcp.CodeInvalidRequest, Message: "the stream of this Last-Event-ID has ended; its answer is no longer available"})
		return
	}
	if !replay {
		number = st.lastWritten()
	}
	if st.standing {
		s.claimStream(session)
	}
	reader, ok := st.attach(number)
	if !ok {
		refuse(w, http.StatusBadRequest, "", &mcp.Error{Code: mcp.CodeInvalidRequest, Message: "the events after this Last-Event-ID are no longer available"})
		return
	}
	res := &response{w: w, r: r, session: session, st: st, reader: reader, events: true}
	if !st.standing || !s.hijackStream(res) {
		s.writeStream(res)
	}
}
