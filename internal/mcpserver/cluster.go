package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"sync"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// Cluster connects the Servers of several processes, so that a caller may use
// any of them: it stores their sessions where all can read them, and transports
// messages and connections between the processes. A Server without one serves
// its own sessions only, at no cost.
type Cluster interface {
	// ID returns the id of this process, which consists of letters and digits
	// only. Known reports whether a process with the id runs or ran recently.
	ID() string
	Known(ctx context.Context, id string) bool

	// Session returns the record that PutSession stored; nil if there is none.
	// PutSession creates the record if fresh is set. Otherwise it replaces the
	// record and extends its ttl, and fails with ErrNoSession if there is none.
	Session(ctx context.Context, id string) ([]byte, error)
	PutSession(ctx context.Context, id string, record []byte, ttl time.Duration, fresh bool) error
	DropSession(ctx context.Context, id string) error

	// Publish sends a message to a process, or to all others if to is empty.
	// Subscribe sets the function that receives the messages of a kind; nil
	// unsubscribes.
	Publish(to, kind string, data []byte)
	Subscribe(kind string, f func(from string, data []byte))

	// Dial opens a connection to a process. Handle sets the function that
	// serves the connections of a kind; nil refuses them.
	Dial(ctx context.Context, to, kind string, first []byte) (NodeConn, error)
	Handle(kind string, h func(ctx context.Context, first []byte, l NodeConn))
}

// NodeConn is a message connection between two processes. Messages arrive
// exactly once and in order. Receive fails when the connection is closed.
type NodeConn interface {
	Send(data []byte) error
	Receive(ctx context.Context) ([]byte, error)
	Close()
}

// ErrNoSession means that a session has ended.
var ErrNoSession = errors.New("no such session")

// errLargeClient refuses a session that would have to store too much.
var errLargeClient = &mcp.Error{Code: mcp.CodeInvalidParams, Message: "clientInfo and capabilities are too large (over " + strconv.Itoa(maxRecord) + " bytes)"}

const (
	// maxRecord bounds the record of a session, and what every session stores
	// of its initialize.
	maxRecord = 64 << 10
	// recordCheckInterval is how long a session that was found is assumed to exist.
	// Then its record is read again, because the message about its end may have
	// been lost.
	recordCheckInterval = 5 * time.Second
	// clusterTimeout bounds background accesses to the cluster.
	clusterTimeout = 10 * time.Second
)

// sessionRecord is the data of a session that all processes share.
type sessionRecord struct {
	View         string          `json:"view"`
	Protocol     string          `json:"protocol"`
	Caller       string          `json:"caller"`
	Client       json.RawMessage `json:"client,omitempty"`
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
	Level        string          `json:"level,omitempty"`
	URIs         []string        `json:"uris,omitempty"`
	Reader       string          `json:"reader,omitempty"` // the process where its standalone stream is read
}

// clusterState is the state of a session's record as known to this process. It
// is guarded by Session.mu.
type clusterState struct {
	reader  string     // the process where the session's standalone stream is read
	shared  bool       // there is a record, so other processes can find the session
	written time.Time  // when the record was last written
	dirty   bool       // the session has changed since
	checked time.Time  // when the record was last known to exist
	writing sync.Mutex // held while the record is written, so that the newest is written last
}

// clusterMessage is a message between processes about a session.
type clusterMessage struct {
	Session string          `json:"s"`
	What    string          `json:"w"`
	Method  string          `json:"m,omitempty"`
	Params  json.RawMessage `json:"p,omitempty"`
	Message json.RawMessage `json:"msg,omitempty"`
}

// The kinds of cluster messages.
const (
	clusterEnd    = "end"    // the session has ended
	clusterLearn  = "learn"  // a request changed the state of the session
	clusterReader = "reader" // the standalone stream is now read in the sender's process
	clusterOwn    = "own"    // a message for the standalone stream
	clusterAnswer = "answer" // the response to a question that the receiver asked
	clusterCancel = "cancel" // the caller cancels a call
)

func (s *Server) messageKind() string { return "mcp/" + s.opts.View }
func (s *Server) streamKind() string  { return "mcp/" + s.opts.View + "/stream" }
func (s *Server) parkedKind() string  { return "mcp/" + s.opts.View + "/parked" }

// joinCluster subscribes to the messages of other processes; leaveCluster ends
// that.
func (s *Server) joinCluster() {
	if c := s.opts.Cluster; c != nil {
		c.Subscribe(s.messageKind(), s.onClusterMessage)
		c.Handle(s.streamKind(), s.sendStream)
		c.Handle(s.parkedKind(), s.resumeFor)
	}
}

func (s *Server) leaveCluster() {
	if c := s.opts.Cluster; c != nil {
		c.Subscribe(s.messageKind(), nil)
		c.Handle(s.streamKind(), nil)
		c.Handle(s.parkedKind(), nil)
	}
}

// publish sends a message about a session to one process, or to all others.
func (s *Server) publish(to string, msg clusterMessage) {
	data, err := rawjson.Marshal(msg)
	if err == nil {
		s.opts.Cluster.Publish(to, s.messageKind(), data)
	}
}

// onClusterMessage handles a message of another process. It ignores sessions
// that were not used in this process.
func (s *Server) onClusterMessage(from string, data []byte) {
	var msg clusterMessage
	if json.Unmarshal(data, &msg) != nil {
		return
	}
	session := s.sessions.find(msg.Session)
	if session == nil {
		return
	}
	switch msg.What {
	case clusterEnd:
		s.end(session)
	case clusterLearn:
		session.applyRequest(msg.Method, msg.Params)
	case clusterReader:
		session.setStreamNode(from)
	case clusterOwn:
		session.standalone.put(&mcp.Message{Method: msg.Method, Params: msg.Params})
	case clusterAnswer:
		if m, err := mcp.Decode(msg.Message, s.opts.Limits); err == nil {
			session.answered(&m)
		}
	case clusterCancel:
		session.cancelCall(msg.Params)
	}
}

// record encodes the session for other processes; nil if that is too large.
func (s *Server) record(session *Session) []byte {
	session.mu.Lock()
	r := sessionRecord{
		View: s.opts.View, Protocol: session.protocol, Caller: session.caller.View(), Client: session.client,
		Capabilities: session.capabilities, Level: session.level, Reader: session.cluster.reader,
	}
	for uri := range session.uris {
		r.URIs = append(r.URIs, uri)
	}
	session.mu.Unlock()
	data, err := json.Marshal(r)
	if err != nil || len(data) > maxRecord {
		return nil
	}
	return data
}

// share stores the record of a new session for the other processes. If that
// fails, only this process serves the session, and its record is stored later.
func (s *Server) share(ctx context.Context, session *Session) *mcp.Error {
	if s.opts.Cluster == nil {
		return nil
	}
	data := s.record(session)
	if data == nil {
		return errLargeClient
	}
	err := s.opts.Cluster.PutSession(ctx, session.id, data, 2*s.opts.SessionIdle, true)
	if err != nil {
		s.log.WarnContext(ctx, "session is served only by this process", "err", err)
	}
	session.mu.Lock()
	session.cluster.shared, session.cluster.written, session.cluster.checked = err == nil, time.Now(), time.Now()
	session.mu.Unlock()
	return nil
}

// loadSession returns a session that another process opened; nil if the caller
// has no session of that id. An error means that the record could not be read.
func (s *Server) loadSession(ctx context.Context, id string, caller tool.Caller) (*Session, error) {
	if s.opts.Cluster == nil || len(id) > 64 {
		return nil, nil
	}
	data, err := s.opts.Cluster.Session(ctx, id)
	if err != nil || data == nil {
		return nil, err
	}
	var r sessionRecord
	if json.Unmarshal(data, &r) != nil || r.View != s.opts.View || r.Caller != caller.View() {
		return nil, nil
	}
	session := &Session{
		caller: caller, protocol: r.Protocol, client: r.Client, capabilities: r.Capabilities,
		cluster: clusterState{shared: true, written: time.Now(), checked: time.Now()},
	}
	session.applyRecord(r)
	if other := s.openAs(session, id); other != nil {
		return other, nil
	}
	return nil, errBusy
}

var errBusy = errors.New("too many sessions")

// applyRecord applies the changes of other processes, unless this process has a
// change that is not stored yet.
func (s *Session) applyRecord(r sessionRecord) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cluster.dirty {
		return // the local state is newer
	}
	s.level, s.cluster.reader, s.uris = r.Level, r.Reader, nil
	for _, uri := range r.URIs[:min(len(r.URIs), maxURIs)] {
		if s.uris == nil {
			s.uris = make(map[string]struct{}, len(r.URIs))
		}
		s.uris[uri] = struct{}{}
	}
}

// checkRecord starts refreshRecord in the background once per
// recordCheckInterval.
func (s *Server) checkRecord(session *Session) {
	if s.opts.Cluster == nil {
		return
	}
	now := time.Now()
	session.mu.Lock()
	due := now.Sub(session.cluster.checked) > recordCheckInterval
	if due {
		session.cluster.checked = now
	}
	session.mu.Unlock()
	if due {
		go s.refreshRecord(session, now)
	}
}

// refreshRecord writes the session's record if that is due, and reads it
// otherwise. It ends the session if another process has ended it.
func (s *Server) refreshRecord(session *Session, now time.Time) {
	ctx, cancel := context.WithTimeout(session.ctx, clusterTimeout)
	defer cancel()
	session.cluster.writing.Lock()
	defer session.cluster.writing.Unlock()
	session.mu.Lock()
	shared := session.cluster.shared
	write := !shared || session.cluster.dirty || now.Sub(session.cluster.written) > s.opts.SessionIdle/4
	session.cluster.dirty = false
	session.mu.Unlock()
	var err error
	if !write {
		var data []byte
		if data, err = s.opts.Cluster.Session(ctx, session.id); err == nil && data == nil {
			err = ErrNoSession
		}
		var r sessionRecord
		if err == nil && json.Unmarshal(data, &r) == nil {
			session.applyRecord(r)
		}
	} else if data := s.record(session); data != nil {
		err = s.opts.Cluster.PutSession(ctx, session.id, data, 2*s.opts.SessionIdle, !shared)
		session.mu.Lock()
		if err == nil {
			session.cluster.shared, session.cluster.written = true, now
		} else {
			session.cluster.dirty = true
		}
		session.mu.Unlock()
	}
	if errors.Is(err, ErrNoSession) {
		s.end(session)
	}
}

// publishChange publishes the change that a request made to the session to the
// other processes.
func (s *Server) publishChange(session *Session, method string, params json.RawMessage) {
	switch method {
	case mcp.MethodSetLevel, mcp.MethodSubscribe, mcp.MethodUnsubscribe:
	default:
		return
	}
	if s.opts.Cluster == nil || session.id == "" {
		return
	}
	s.publish("", clusterMessage{Session: session.id, What: clusterLearn, Method: method, Params: params})
	s.saveRecord(session)
}

// saveRecord stores the session's record again, in the background.
func (s *Server) saveRecord(session *Session) {
	session.mu.Lock()
	session.cluster.dirty = true
	session.mu.Unlock()
	go s.refreshRecord(session, time.Now())
}

// claimStream records that the session's standalone stream is now read in this
// process.
func (s *Server) claimStream(session *Session) {
	if s.opts.Cluster == nil || session.id == "" {
		return
	}
	if session.setStreamNode(s.opts.Cluster.ID()) {
		s.publish("", clusterMessage{Session: session.id, What: clusterReader})
		s.saveRecord(session)
	}
}

// setStreamNode sets the process where the session's standalone stream is read, and
// reports whether that was another one.
func (s *Session) setStreamNode(node string) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed = s.cluster.reader != node
	s.cluster.reader = node
	return changed
}

// sendToStandalone sends a message for the session's standalone stream to the
// process where that is read, and reports whether that is another one. It does
// not send list changes, because every process detects them itself.
func (s *Server) sendToStandalone(session *Session, m *mcp.Message) bool {
	session.mu.Lock()
	reader := session.cluster.reader
	session.mu.Unlock()
	if reader == "" || reader == s.opts.Cluster.ID() {
		return false
	}
	if !strings.HasSuffix(m.Method, "/list_changed") {
		s.publish(reader, clusterMessage{Session: session.id, What: clusterOwn, Method: m.Method, Params: m.Params})
	}
	return true
}

// questionID returns the id of a question to the caller. It contains the id of
// this process, so that any process can forward the answer.
func (s *Server) questionID(n int64) mcp.ID {
	name := "junctor-"
	if c := s.opts.Cluster; c != nil {
		name += c.ID() + "-"
	}
	return mcp.ID(`"` + name + strconv.FormatInt(n, 10) + `"`)
}

// answerElsewhere forwards a caller's answer to the process that asked.
func (s *Server) answerElsewhere(session *Session, m *mcp.Message) {
	c := s.opts.Cluster
	if c == nil {
		return
	}
	parts := strings.Split(strings.Trim(string(m.ID), `"`), "-")
	if len(parts) != 3 || parts[0] != "junctor" || parts[1] == c.ID() {
		return
	}
	s.publish(parts[1], clusterMessage{Session: session.id, What: clusterAnswer, Message: mcp.AppendMessage(nil, m)})
}

// endEverywhere ends a session on all processes, at its caller's request.
func (s *Server) endEverywhere(ctx context.Context, session *Session) error {
	if s.opts.Cluster != nil {
		if err := s.opts.Cluster.DropSession(ctx, session.id); err != nil {
			return err
		}
		s.publish("", clusterMessage{Session: session.id, What: clusterEnd})
	}
	s.end(session)
	return nil
}
