package nodes

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// Executor executes a request on a server that this node runs.
type Executor func(ctx context.Context, server string, r tool.Request) (json.RawMessage, error)

// Singletons assigns servers that only one node may run to a node, and
// forwards requests to that node. It implements upstream.Singletons.
type Singletons struct {
	node    *Node
	execute Executor

	mu      sync.Mutex
	running int // requests of other nodes
	stopped bool
}

// Singletons returns the singletons of this node. execute executes the
// requests that other nodes forward.
func (n *Node) Singletons(execute Executor) *Singletons {
	s := &Singletons{node: n, execute: execute}
	n.Handle(forwardKind, s.serve)
	return s
}

func singletonLease(server string) string { return "upstream/" + server }

// Claim implements upstream.Singletons.
func (s *Singletons) Claim(ctx context.Context, server string, ttl time.Duration) (owner string, mine bool, err error) {
	l, mine, err := s.node.opts.Store.Acquire(ctx, singletonLease(server), s.node.id, ttl)
	return l.Owner, mine, err
}

// Release implements upstream.Singletons.
func (s *Singletons) Release(ctx context.Context, server string) error {
	return s.node.opts.Store.Release(ctx, singletonLease(server), s.node.id)
}

// Stop rejects new requests of other nodes. Those in flight continue.
func (s *Singletons) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
}

// Idle reports whether no request of another node is in flight.
func (s *Singletons) Idle() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running == 0
}

// begin registers a request of another node and reports whether it may start;
// if so, end must follow.
func (s *Singletons) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.stopped {
		s.running++
	}
	return !s.stopped
}

func (s *Singletons) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running--
}

// A forwarded request has its own connection. The first message is a
// forwardedRequest and, on the next line, the MCP request. Notifications,
// questions to the caller and their answers are MCP messages too. Closing the
// connection cancels the request. In a response, the result contains the
// response of the server (or of the caller, to a question), and the error is
// that of a node that could not get one.
const (
	forwardKind = "mcp/forward"

	// Notifications between the nodes.
	ownMethods     = "junctor/"
	methodQueued   = ownMethods + "queued"   // {"waiting": bool}: tool.Exchange.Queued
	methodRepaired = ownMethods + "repaired" // tool.Exchange.Repaired
	methodTask     = ownMethods + "task"     // tool.Exchange.Task
	methodStatus   = ownMethods + "status"   // tool.Exchange.TaskStatus
)

// forwardedRequest contains what the MCP request itself does not.
type forwardedRequest struct {
	Server       string          `json:"server"`
	Caller       string          `json:"caller,omitempty"`
	Rights       tool.Caller     `json:"rights"` // of the context; older nodes send none, and the caller then has no rights
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
	Notify       bool            `json:"notify,omitempty"` // the caller receives notifications
	Ask          bool            `json:"ask,omitempty"`    // the caller can be asked
	PassInput    bool            `json:"passInput,omitempty"`
	Protocol     string          `json:"protocol,omitempty"`
	Transparent  bool            `json:"transparent,omitempty"`
}

// messageLimits are the limits for messages between nodes, whose contents were
// checked by the node that received them.
var messageLimits = mcp.Limits{MaxBytes: maxWaiting, Repair: true}

// Do implements upstream.Singletons. It forwards a request to the node that
// runs the server.
func (s *Singletons) Do(ctx context.Context, owner, server string, r tool.Request) (json.RawMessage, error) {
	ex := r.Exchange
	first, err := json.Marshal(forwardedRequest{server, r.Caller, tool.CallerFrom(ctx), ex.Capabilities, ex.Notify != nil, ex.Ask != nil, ex.PassInput, ex.Protocol, ex.Transparent})
	if err != nil {
		return nil, err
	}
	request := mcp.Message{ID: mcp.NumberID(1), Method: r.Method, Params: r.Params}
	l, err := s.node.Dial(ctx, owner, forwardKind, mcp.AppendMessage(append(first, '\n'), &request))
	if err != nil {
		return nil, unavailable(server, tool.ErrDown)
	}
	defer l.Close()
	var asked sync.WaitGroup
	defer asked.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answer, err := mcpserver.ReceiveResponse(ctx, l, messageLimits, func(m *mcp.Message) {
		switch {
		case m.IsRequest() && ex.Ask != nil:
			asked.Go(func() {
				result, err := ex.Ask(ctx, m.Method, m.Params)
				_ = l.Send(response(m.ID, result, err)) // fails if the owner is unavailable, which Receive reports
			})
		case m.Method == methodQueued && ex.Queued != nil:
			ex.Queued(string(rawjson.Field(m.Params, "waiting")) == "true")
		case m.Method == methodRepaired && ex.Repaired != nil:
			ex.Repaired()
		case m.Method == methodTask && ex.Task != nil:
			ex.Task(tool.ServerTask{}) // the task cannot outlive its node
		case m.Method == methodStatus && ex.TaskStatus != nil:
			ex.TaskStatus(tool.TaskStatus{Status: rawjson.FieldString(m.Params, "status"), Message: rawjson.FieldString(m.Params, "message")})
		case m.IsNotification() && ex.Notify != nil && !strings.HasPrefix(m.Method, ownMethods):
			ex.Notify(m.Method, m.Params)
		}
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, unavailable(server, nil)
	}
	return outcome(answer)
}

// unavailable returns the error of a request whose server's node is
// unavailable. A non-nil cause means that the request was certainly not
// executed.
func unavailable(server string, cause error) error {
	msg := fmt.Sprintf("the node that ran %s is unavailable; another takes over within seconds: try again", server)
	if cause == nil {
		msg = fmt.Sprintf("the node that runs %s was lost during the call, which may have been executed", server)
	}
	return &tool.Error{Kind: tool.UpstreamFailed, Msg: msg, RetryAfter: 5 * time.Second, Err: cause}
}

// response encodes the outcome of a request for the other node.
func response(id mcp.ID, result json.RawMessage, err error) []byte {
	inner := mcp.Message{ID: id, Result: result}
	if answered, ok := errors.AsType[*mcp.Error](err); ok {
		inner.Error = answered
	} else if err != nil {
		e := mcp.ToolError(tool.AsError(err))
		if errors.Is(err, tool.ErrDown) {
			e.Data = rawjson.SetField(e.Data, json.RawMessage("true"), "down")
		}
		return mcp.AppendMessage(nil, &mcp.Message{ID: id, Error: e})
	}
	return mcp.AppendMessage(nil, &mcp.Message{ID: id, Result: mcp.AppendMessage(nil, &inner)})
}

// outcome decodes the result of response.
func outcome(m mcp.Message) (json.RawMessage, error) {
	if m.Error == nil {
		inner, err := mcp.Decode(m.Result, messageLimits)
		if err == nil && inner.Error != nil {
			err = inner.Error
		}
		return inner.Result, err
	}
	var data struct {
		Code       tool.Kind `json:"code"`
		Details    any       `json:"details"`
		RetryAfter float64   `json:"retryAfterSeconds"`
		Down       bool      `json:"down"`
	}
	if err := json.Unmarshal(m.Error.Data, &data); err != nil {
		return nil, m.Error
	}
	e := &tool.Error{Kind: data.Code, Msg: m.Error.Message, Details: data.Details, RetryAfter: time.Duration(data.RetryAfter * float64(time.Second))}
	if data.Down {
		e.Err = tool.ErrDown
	}
	return nil, e
}

// serve executes a request that another node forwarded.
func (s *Singletons) serve(ctx context.Context, first []byte, l *Conn) {
	head, line, _ := bytes.Cut(first, []byte{'\n'})
	var f forwardedRequest
	request, err := mcp.Decode(line, messageLimits)
	if err != nil || json.Unmarshal(head, &f) != nil {
		s.node.log.WarnContext(ctx, "cannot decode a forwarded request", "node", l.Peer())
		return // which closes the connection
	}
	if !s.begin() {
		_ = l.Send(response(request.ID, nil, unavailable(f.Server, tool.ErrDown)))
		return
	}
	defer s.end()
	ctx, cancel := context.WithCancel(tool.WithCaller(ctx, f.Rights))
	defer cancel()
	notify := func(method string, params json.RawMessage) {
		_ = l.Send(mcp.AppendMessage(nil, &mcp.Message{Method: method, Params: params})) // ctx ends with the connection
	}
	r := tool.Request{Method: request.Method, Params: request.Params, Caller: f.Caller, Exchange: tool.Exchange{
		Capabilities: f.Capabilities, PassInput: f.PassInput, Protocol: f.Protocol, Transparent: f.Transparent,
		Queued:   func(waiting bool) { notify(methodQueued, fmt.Appendf(nil, `{"waiting":%t}`, waiting)) },
		Repaired: func() { notify(methodRepaired, nil) },
		Task:     func(tool.ServerTask) { notify(methodTask, nil) },
		TaskStatus: func(status tool.TaskStatus) {
			if b, err := json.Marshal(status); err == nil {
				notify(methodStatus, b)
			}
		},
	}}
	if f.Notify {
		r.Exchange.Notify = func(method string, params json.RawMessage) {
			if !strings.HasPrefix(method, ownMethods) { // a server must not send notifications of its node
				notify(method, params)
			}
		}
	}
	q := questions{conn: l, open: map[mcp.ID]chan mcp.Message{}}
	if f.Ask {
		r.Exchange.Ask = q.ask
	}
	go q.receive(ctx, cancel)
	result, err := s.execute(ctx, f.Server, r)
	_ = l.Send(response(request.ID, result, err))
}

// questions are the open questions of a server to a caller on another node.
type questions struct {
	conn *Conn

	mu   sync.Mutex
	n    int64
	open map[mcp.ID]chan mcp.Message
}

// ask implements tool.Exchange.Ask.
func (q *questions) ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	answer := make(chan mcp.Message, 1)
	q.mu.Lock()
	q.n++
	id := mcp.NumberID(q.n)
	q.open[id] = answer
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		delete(q.open, id)
		q.mu.Unlock()
	}()
	if err := q.conn.Send(mcp.AppendMessage(nil, &mcp.Message{ID: id, Method: method, Params: params})); err != nil {
		return nil, err
	}
	select {
	case m := <-answer:
		return outcome(m)
	case <-q.conn.Done():
		return nil, ErrUnavailable
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// receive passes answers to the waiting calls of ask. It cancels the request
// when the connection ends.
func (q *questions) receive(ctx context.Context, cancel func()) {
	defer cancel()
	for {
		m, err := mcpserver.ReceiveResponse(ctx, q.conn, messageLimits, func(*mcp.Message) {})
		if err != nil {
			return
		}
		q.mu.Lock()
		answer := q.open[m.ID]
		delete(q.open, m.ID)
		q.mu.Unlock()
		if answer != nil {
			answer <- m
		}
	}
}
