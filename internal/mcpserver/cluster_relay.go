package mcpserver

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/tool"
)

// streamID returns the id of a stream, which contains the id of this process,
// so that other processes can find it.
func (s *Server) streamID(name string) string {
	if c := s.opts.Cluster; c != nil {
		return c.ID() + "." + name
	}
	return name
}

// streamOwner returns the other process that has a stream, or "" if this one or
// none has it.
func (s *Server) streamOwner(ctx context.Context, stream string) string {
	c := s.opts.Cluster
	if c == nil {
		return ""
	}
	node, _, ok := strings.Cut(stream, ".")
	if !ok || node == c.ID() || !c.Known(ctx, node) {
		return ""
	}
	return node
}

// streamRequest requests the events of a stream from another process.
type streamRequest struct {
	Session string `json:"session"`
	Caller  string `json:"caller"`
	Stream  string `json:"stream"`
	Number  int    `json:"number"`
}

// serveRemoteStream serves a GET with the stream of another process. If that
// process refuses, it reports false and writes nothing.
func (s *Server) serveRemoteStream(w http.ResponseWriter, r *http.Request, session *Session, node, stream string, number int) bool {
	wanted, err := json.Marshal(streamRequest{session.id, session.caller.View(), stream, number})
	if err != nil {
		return false
	}
	ctx := r.Context()
	l, err := s.opts.Cluster.Dial(ctx, node, s.streamKind(), wanted)
	if err != nil {
		return false
	}
	defer l.Close()
	res := &response{w: w, r: r, session: session}
	for {
		data, err := l.Receive(ctx)
		if err != nil {
			return res.begun
		}
		if !res.begun {
			startEvents(w)
			res.begun = true
		}
		if !s.flush(res, data) {
			return true
		}
	}
}

// sendStream sends a stream of this process to another one.
func (s *Server) sendStream(ctx context.Context, first []byte, l NodeConn) {
	var wanted streamRequest
	if json.Unmarshal(first, &wanted) != nil {
		return
	}
	session := s.sessions.get(wanted.Session, wanted.Caller)
	if session == nil {
		return
	}
	st := session.findStream(wanted.Stream)
	if st == nil {
		return
	}
	reader, ok := st.attach(wanted.Number)
	if !ok {
		return
	}
	session.enter()
	defer session.leave()
	r := (&http.Request{}).WithContext(ctx)
	s.writeStream(&response{w: &nodeWriter{conn: l, header: http.Header{}}, r: r, session: session, st: st, reader: reader, events: true})
}

// nodeWriter writes a response to another process.
type nodeWriter struct {
	conn   NodeConn
	header http.Header
}

func (w *nodeWriter) Header() http.Header { return w.header }
func (w *nodeWriter) WriteHeader(int)     {}
func (w *nodeWriter) Flush()              {}
func (w *nodeWriter) Write(data []byte) (int, error) {
	if err := w.conn.Send(data); err != nil {
		return 0, err
	}
	return len(data), nil
}

// parkedRetry is a request that continues a call parked in another process.
type parkedRetry struct {
	ID       string          `json:"id"`
	Method   string          `json:"method"`
	Params   json.RawMessage `json:"params"`
	Protocol string          `json:"protocol"`
	Client   json.RawMessage `json:"client,omitempty"`
	Caller   tool.Caller     `json:"caller"`
	State    string          `json:"state"`
}

// parkedAt returns the process where the call of a requestState is parked, or
// "" if the state does not belong to a process of the cluster.
func (s *Server) parkedAt(ctx context.Context, state string) string {
	c := s.opts.Cluster
	if c == nil {
		return ""
	}
	rest, ok := strings.CutPrefix(state, statePrefix)
	if !ok {
		return ""
	}
	node, _, ok := strings.Cut(rest, ".")
	if !ok || !c.Known(ctx, node) {
		return ""
	}
	return node
}

// errCallLost is the error for a retry whose call no longer exists.
var errCallLost = &mcp.Error{Code: mcp.CodeInvalidParams, Message: "the call that requestState continues was lost when its process ended; make the request again without it"}

// resumeAt forwards a retry to the process where its call is parked, and
// forwards its messages to out.
func (s *Server) resumeAt(life context.Context, node string, req *Request, state string, out outlet) {
	m, err := s.forwardRetry(life, node, parkedRetry{string(req.ID), req.Method, req.Params, req.Protocol, req.Client, req.Caller, state}, out)
	if err != nil {
		m = mcp.Message{ID: req.ID, Error: errCallLost}
	}
	out.answer(&m)
}

func (s *Server) forwardRetry(life context.Context, node string, r parkedRetry, out outlet) (mcp.Message, error) {
	first, err := json.Marshal(r)
	if err != nil {
		return mcp.Message{}, err
	}
	l, err := s.opts.Cluster.Dial(life, node, s.parkedKind(), first)
	if err != nil {
		return mcp.Message{}, err
	}
	defer l.Close()
	return ReceiveResponse(life, l, s.opts.Limits, func(m *mcp.Message) { out.put(m) })
}

// ReceiveResponse receives messages until a response, which it returns. It
// calls each with the messages before the response.
func ReceiveResponse(ctx context.Context, l NodeConn, limits mcp.Limits, each func(*mcp.Message)) (mcp.Message, error) {
	for {
		data, err := l.Receive(ctx)
		if err != nil {
			return mcp.Message{}, err
		}
		m, err := mcp.Decode(data, limits)
		if err != nil || m.IsResponse() {
			return m, err
		}
		each(&m)
	}
}

// resumeFor resumes a call that is parked in this process for a retry that
// another process received.
func (s *Server) resumeFor(ctx context.Context, first []byte, l NodeConn) {
	var r parkedRetry
	if json.Unmarshal(first, &r) != nil {
		return
	}
	req := &Request{ID: mcp.ID(r.ID), Method: r.Method, Params: r.Params, Protocol: r.Protocol, Client: r.Client, Caller: r.Caller}
	out := &nodeOutlet{conn: l, done: make(chan struct{})}
	s.resume(ctx, req, r.State, out)
	select {
	case <-out.done:
	case <-ctx.Done():
	}
}

// nodeOutlet sends the messages of a call to another process.
type nodeOutlet struct {
	conn NodeConn
	done chan struct{}
}

func (o *nodeOutlet) put(m *mcp.Message) bool { return o.conn.Send(mcp.AppendMessage(nil, m)) == nil }

func (o *nodeOutlet) answer(m *mcp.Message) {
	o.put(m)
	close(o.done)
}

// refuseUnshared responds to a request whose session could not be looked up.
func refuseUnshared(w http.ResponseWriter) {
	w.Header().Set("Retry-After", "2")
	refuse(w, http.StatusServiceUnavailable, "", &mcp.Error{
		Code: tool.Unavailable.JSONRPC(), Message: "the session cannot be looked up now; try again shortly",
	})
}

// lookupTimeout bounds how long a caller waits for the lookup of its session.
const lookupTimeout = 5 * time.Second
