package mcpserver

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// Handler serves the requests of callers. Its methods are called concurrently.
type Handler interface {
	// Describe returns the description for initialize and server/discover.
	Describe(ctx context.Context, r *Request) (Description, error)

	// Serve serves one request and returns the bytes of its result. A
	// *mcp.Error is sent to the caller as it is, a *tool.Error is converted by
	// its kind; any other error is logged and hidden. The context is cancelled
	// when the caller cancels the request or disconnects.
	Serve(ctx context.Context, r *Request) (json.RawMessage, error)

	// Notified is called for notifications that the server does not handle
	// itself. It must not block for long.
	Notified(ctx context.Context, s *Session, method string, params json.RawMessage)
}

// Description is a server's description of itself.
type Description struct {
	Info         json.RawMessage // serverInfo: name, version …
	Capabilities json.RawMessage
	Instructions string
	TTL          time.Duration // how long the description may be cached
	Public       bool          // it is the same for every caller
}

// Request is one request of a caller, in either era of the protocol.
type Request struct {
	ID       mcp.ID
	Method   string
	Params   json.RawMessage
	Protocol string      // the version under which it was made
	Caller   tool.Caller // from the context of the transport
	Client   json.RawMessage
	Session  *Session    // nil for the stateless era
	Listen   *Request    // the subscriptions/listen request that this subscription belongs to; nil for others
	Header   http.Header // nil on a stream
	Exchange tool.Exchange

	fields *mcp.ParamFields // the parsed fields of Params; nil before
	lends  bool             // writing its response returns the memory of the result
	memory tool.ResultMemory
}

// LendMemory lets a large result of the request's call be read into memory that
// is reused once the response has been written. Only a Handler that retains
// nothing of the result may call it.
func (r *Request) LendMemory() {
	if r.lends {
		r.Exchange.Memory = &r.memory
	}
}

// Stateless reports whether the request belongs to the stateless era.
func (r *Request) Stateless() bool { return r.Protocol >= mcp.Version20260728 }

// Options configure a Server. Zero fields mean their defaults.
type Options struct {
	Log    *slog.Logger
	Limits mcp.Limits

	// Redact, unless nil, masks secrets in logged messages.
	Redact func(string) string

	// Rejected, unless nil, is called for HTTP requests that were answered with
	// an error before they became a request of the protocol.
	Rejected func(r *http.Request, status int, e *mcp.Error)

	// Info is the serverInfo with which results of the stateless era are
	// marked; nil marks none.
	Info json.RawMessage

	// Cluster connects this server to those of other processes that serve the
	// same View; nil if there are none.
	Cluster Cluster
	View    string

	MaxSessions   int           // of the handshake era; 10,000; the longest idle one is evicted
	SessionIdle   time.Duration // until a session without an open stream ends; 12 h
	MaxCalls      int           // in flight in one session or on one stream; 256
	MaxParked     int           // calls that wait for a caller's input; 1,000
	ParkTimeout   time.Duration // how long they wait; 10 min
	ResumeTimeout time.Duration // how long a broken stream can be resumed; 60 s
	StreamAfter   time.Duration // when a slow response becomes an event stream; 10 s
	KeepAlive     time.Duration // between keep-alives on a silent stream; 20 s
	WriteTimeout  time.Duration // until a client that does not read is disconnected; 30 s
	DrainTimeout  time.Duration // for calls in flight when a stream's input ends; 3 s
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Limits = o.Limits.WithDefaults()
	for _, d := range []struct {
		value *time.Duration
		def   time.Duration
	}{
		{&o.SessionIdle, 12 * time.Hour}, {&o.ParkTimeout, 10 * time.Minute}, {&o.ResumeTimeout, time.Minute},
		{&o.StreamAfter, 10 * time.Second}, {&o.KeepAlive, 20 * time.Second}, {&o.WriteTimeout, 30 * time.Second},
		{&o.DrainTimeout, 3 * time.Second},
	} {
		if *d.value <= 0 {
			*d.value = d.def
		}
	}
	for _, d := range []struct {
		value *int
		def   int
	}{{&o.MaxSessions, 10_000}, {&o.MaxCalls, 256}, {&o.MaxParked, 1_000}} {
		if *d.value <= 0 {
			*d.value = d.def
		}
	}
	return o
}

// Server serves MCP clients in both eras of the protocol, over HTTP
// ([Server.ServeHTTP]) and over byte streams ([Server.ServeStream]). It manages
// their sessions and passes their requests to a Handler.
type Server struct {
	opts    Options
	handler Handler
	log     *slog.Logger

	sessions sessionTable
	parked   parkedCalls
	conns    connTable
	subs     subscriptionTable
	sse      sseTable
	workers  workerPool
	// defaultMembers are the members that are added in front of most results of
	// the stateless era.
	defaultMembers []byte

	replay    atomic.Int64 // bytes of finished streams kept for a replay
	answering atomic.Int64 // POSTs with calls, until their answers are written

	closeOnce sync.Once
	closed    chan struct{}
}

// New returns a Server. It starts no goroutines. Close ends its sessions.
func New(o Options, h Handler) *Server {
	o = o.withDefaults()
	s := &Server{opts: o, handler: h, log: o.Log.With(telemetry.KeyComponent, "mcp"), closed: make(chan struct{})}
	s.defaultMembers = defaultMembers(o.Info)
	s.workers = newWorkerPool(s.closed)
	s.sessions.init(o.MaxSessions)
	s.parked.init(o.MaxParked, o.ParkTimeout)
	if o.Cluster != nil {
		s.parked.prefix = statePrefix + o.Cluster.ID() + "."
		s.joinCluster()
	}
	return s
}

// SetMaxSessions changes Options.MaxSessions. It ends idle sessions over the
// limit, the least recently used first.
func (s *Server) SetMaxSessions(n int) { s.endAll(s.sessions.setMax(n)) }

// Close ends every session, stream, subscription and parked call. Later
// requests are refused.
func (s *Server) Close() {
	s.closeOnce.Do(func() {
		close(s.closed)
		s.leaveCluster()
		s.subs.closeAll()
		s.endAll(s.sessions.all())
		s.parked.closeAll()
		s.conns.closeAll()
	})
}

func (s *Server) closing() bool {
	select {
	case <-s.closed:
		return true
	default:
		return false
	}
}

// Notify sends a notification that belongs to no request to every subscribed
// caller: in the handshake era on the session's standalone stream, in the stateless
// era on the subscriptions that include it. A resources/updated is sent only to
// those that subscribed to its resource.
func (s *Server) Notify(method string, params json.RawMessage) { s.NotifyCallers(nil, method, params) }

// NotifyCallers is Notify for the sessions and subscriptions of the callers that
// to accepts; nil accepts all.
func (s *Server) NotifyCallers(to func(*tool.Caller) bool, method string, params json.RawMessage) {
	uri, updated := "", method == mcp.MethodResourceUpdated
	if updated {
		uri = rawjson.FieldString(params, "uri")
	}
	m := &mcp.Message{Method: method, Params: params}
	for _, session := range append(s.sessions.all(), s.conns.sessions()...) {
		if method != mcp.MethodTasks && (!updated || session.subscribed(uri)) && (to == nil || to(session.lastCaller())) {
			s.logSent(context.Background(), m)
			session.send(m)
		}
	}
	s.subs.publish(to, method, uri, params)
}

// Answering returns the number of requests whose calls are running or whose
// responses are being written, over HTTP and on byte streams. Streams that only
// listen do not count.
func (s *Server) Answering() int { return int(s.answering.Load()) + s.conns.answering() }

// Sessions returns the number of sessions of the handshake era over HTTP.
func (s *Server) Sessions() int { return s.sessions.len() }

func (s *Server) messageLog() mcp.MessageLog {
	return mcp.MessageLog{Log: s.log, Level: telemetry.SlogTrace, Redact: s.opts.Redact}
}

// logReceived and logSent log a message from and to a client.
func (s *Server) logReceived(ctx context.Context, m *mcp.Message) {
	s.messageLog().Write(ctx, "client message received", m)
}

func (s *Server) logSent(ctx context.Context, m *mcp.Message) {
	s.messageLog().Write(ctx, "client message sent", m)
}

func (r *Request) paramFields() *mcp.ParamFields {
	if !r.fields.IsOf(r.Params) {
		r.fields = mcp.ReadFields(r.Params)
	}
	return r.fields
}

// Name returns the name in the params: of a tool or a prompt.
func (r *Request) Name() string { return rawjson.FieldString(r.paramFields().Name) }

// Arguments returns the arguments in the params, or nil if there are none.
func (r *Request) Arguments() json.RawMessage { return r.paramFields().Arguments }

// Meta returns the _meta of the params, or nil if there is none.
func (r *Request) Meta() json.RawMessage { return r.paramFields().Meta }
