package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"junctor/internal/executor"
	"junctor/internal/mcp"
	"junctor/internal/mcpserver"
	"junctor/internal/nodes"
	"junctor/internal/store"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

// joinNodes makes this process one of several when the store can be shared.
func (a *App) joinNodes() {
	if a.config.Load().Store.URL == "" {
		return
	}
	a.nodes = nodes.New(nodes.Options{Store: a.store, Name: a.node, Log: a.log})
	a.nodes.Handle(callKind, a.executeForwarded)
}

// cluster is what the MCP servers share with those of other nodes; nil for a
// gateway that is alone.
func (a *App) cluster() mcpserver.Cluster {
	if a.nodes == nil {
		return nil
	}
	return a.nodes.Cluster()
}

// singletons gives the right to run servers that one node alone may run; nil
// for a gateway that is alone.
func (a *App) singletons() upstream.Singletons {
	if a.nodes == nil {
		return nil
	}
	return singletons{a}
}

// budgets shares rate limits with other nodes; nil for a gateway that is
// alone.
func (a *App) budgets() executor.Budgets {
	if a.nodes == nil {
		return nil
	}
	return a.store
}

// callKind is the kind of the conversations in which one node has a request
// executed by another.
const callKind = "upstream/call"

type singletons struct{ app *App }

func singletonLease(server string) string { return "upstream/" + server }

// Claim implements upstream.Singletons.
func (s singletons) Claim(ctx context.Context, server string, life time.Duration) (string, bool, error) {
	l, mine, err := s.app.store.Acquire(ctx, singletonLease(server), s.app.nodes.ID(), life)
	return l.Owner, mine, err
}

// Release implements upstream.Singletons.
func (s singletons) Release(ctx context.Context, server string) error {
	return s.app.store.Release(ctx, singletonLease(server), s.app.nodes.ID())
}

// forwardedRequest is a request forwarded to the node that runs its server.
type forwardedRequest struct {
	Server       string          `json:"server"`
	Method       string          `json:"method"`
	Caller       string          `json:"caller,omitempty"`
	Capabilities json.RawMessage `json:"capabilities,omitempty"`
	Hears        bool            `json:"hears,omitempty"`
	Answers      bool            `json:"answers,omitempty"`
	PassInput    bool            `json:"passInput,omitempty"`
}

// forwardedMessage is a message between the two nodes of a forwarded request.
// The bytes of params, answers and results follow it unchanged.
type forwardedMessage struct {
	Notify string `json:"notify,omitempty"` // a method
	Ask    string `json:"ask,omitempty"`    // a method
	N      int    `json:"n,omitempty"`      // of the question
	Answer bool   `json:"answer,omitempty"`
	Result bool   `json:"result,omitempty"`

	Repaired bool  `json:"repaired,omitempty"` // the result was not valid UTF-8
	Queued   *bool `json:"queued,omitempty"`   // waits for its turn, or waits no more
	data     json.RawMessage
	Fault    *forwardedError `json:"fault,omitempty"`
}

// forwardedError is an error sent between nodes.
type forwardedError struct {
	RPC        *mcp.Error    `json:"rpc,omitempty"`
	Kind       tool.Kind     `json:"kind,omitempty"`
	Msg        string        `json:"msg,omitempty"`
	Details    any           `json:"details,omitempty"`
	RetryAfter time.Duration `json:"retryAfter,omitempty"`
	Down       bool          `json:"down,omitempty"`
}

func forwardedErrorOf(err error) *forwardedError {
	if answered, ok := errors.AsType[*mcp.Error](err); ok {
		return &forwardedError{RPC: answered}
	}
	e := tool.AsError(err)
	return &forwardedError{Kind: e.Kind, Msg: e.Msg, Details: e.Details, RetryAfter: e.RetryAfter, Down: errors.Is(err, tool.ErrDown)}
}

func (f *forwardedError) err() error {
	if f.RPC != nil {
		return f.RPC
	}
	e := &tool.Error{Kind: f.Kind, Msg: f.Msg, Details: f.Details, RetryAfter: f.RetryAfter}
	if f.Down {
		e.Err = tool.ErrDown
	}
	return e
}

// Do implements upstream.Singletons: the owner carries the request out, and
// what it and its server say on the way comes back here.
func (s singletons) Do(ctx context.Context, owner, server string, r tool.Request) (json.RawMessage, error) {
	first, err := json.Marshal(forwardedRequest{
		server, r.Method, r.Caller, r.Exchange.Capabilities, r.Exchange.Notify != nil, r.Exchange.Ask != nil, r.Exchange.PassInput,
	})
	if err != nil {
		return nil, err
	}
	l, err := s.app.nodes.Dial(ctx, owner, callKind, append(append(first, '\n'), r.Params...))
	if err != nil {
		return nil, nodeUnavailable(server, tool.ErrDown)
	}
	defer l.Close()
	var asked sync.WaitGroup
	defer asked.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for {
		data, err := l.Receive(ctx)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			return nil, nodeUnavailable(server, nil)
		}
		m, err := parseForwarded(data)
		if err != nil {
			return nil, err
		}
		switch {
		case m.Notify != "" && r.Exchange.Notify != nil:
			r.Exchange.Notify(m.Notify, m.data)
		case m.Ask != "" && r.Exchange.Ask != nil:
			asked.Go(func() {
				got, err := r.Exchange.Ask(ctx, m.Ask, m.data)
				back := forwardedMessage{Answer: true, N: m.N, data: got}
				if err != nil {
					back.Fault = forwardedErrorOf(err)
				}
				_ = sendForwarded(l, back) // the line is over when the owner is gone
			})
		case m.Queued != nil && r.Exchange.Queued != nil:
			r.Exchange.Queued(*m.Queued)
		case m.Fault != nil:
			return nil, m.Fault.err()
		case m.Result:
			if m.Repaired && r.Exchange.Repaired != nil {
				r.Exchange.Repaired()
			}
			return m.data, nil
		}
	}
}

// nodeUnavailable is the error of a call whose server's node is unavailable.
// With cause ErrDown the call was certainly not executed.
func nodeUnavailable(server string, cause error) error {
	msg := fmt.Sprintf("the node that ran %s is unavailable; another takes over within seconds: try again", server)
	if cause == nil {
		msg = fmt.Sprintf("the node that runs %s was lost during the call, which may have been carried out", server)
	}
	return &tool.Error{Kind: tool.UpstreamFailed, Msg: msg, RetryAfter: 5 * time.Second, Err: cause}
}

func sendForwarded(l *nodes.Conn, m forwardedMessage) error {
	head, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return l.Send(append(append(head, '\n'), m.data...))
}

func parseForwarded(letter []byte) (m forwardedMessage, err error) {
	head, data, _ := bytes.Cut(letter, []byte{'\n'})
	if err := json.Unmarshal(head, &m); err != nil {
		return m, err
	}
	if len(data) > 0 {
		m.data = data
	}
	return m, nil
}

// executeForwarded executes a request that another node forwarded.
func (a *App) executeForwarded(ctx context.Context, first []byte, l *nodes.Conn) {
	head, params, _ := bytes.Cut(first, []byte{'\n'})
	var p forwardedRequest
	if json.Unmarshal(head, &p) != nil {
		return
	}
	if !a.forwardedCalls.begin() {
		_ = sendForwarded(l, forwardedMessage{Fault: forwardedErrorOf(nodeUnavailable(p.Server, tool.ErrDown))})
		return
	}
	defer a.forwardedCalls.end()
	if len(params) == 0 {
		params = nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := tool.Request{Method: p.Method, Params: params, Caller: p.Caller,
		Exchange: tool.Exchange{Capabilities: p.Capabilities, PassInput: p.PassInput}}
	if p.Hears {
		r.Exchange.Notify = func(method string, params json.RawMessage) {
			_ = sendForwarded(l, forwardedMessage{Notify: method, data: params})
		}
	}
	q := forwardedQuestions{line: l, open: map[int]chan forwardedMessage{}}
	if p.Answers {
		r.Exchange.Ask = q.ask
	}
	r.Exchange.Queued = func(waiting bool) { _ = sendForwarded(l, forwardedMessage{Queued: &waiting}) }
	repaired := false
	r.Exchange.Repaired = func() { repaired = true }
	go q.listen(ctx, cancel)
	result, err := a.upstreams.DoHere(ctx, p.Server, r)
	if err != nil {
		_ = sendForwarded(l, forwardedMessage{Fault: forwardedErrorOf(err)})
		return
	}
	_ = sendForwarded(l, forwardedMessage{Result: true, Repaired: repaired, data: result})
}

// forwardedCalls tracks the calls executed for other nodes, and cancels them.
type forwardedCalls struct {
	mu      sync.Mutex
	n       int
	stopped bool
}

// begin reports whether more may be done.
func (c *forwardedCalls) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		return false
	}
	c.n++
	return true
}

func (c *forwardedCalls) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n--
}

// stop lets nothing new begin.
func (c *forwardedCalls) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopped = true
}

func (c *forwardedCalls) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n == 0
}

// forwardedQuestions are those that a server asks a caller on another node.
type forwardedQuestions struct {
	line *nodes.Conn
	mu   sync.Mutex
	n    int
	open map[int]chan forwardedMessage
}

func (q *forwardedQuestions) ask(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	answer := make(chan forwardedMessage, 1)
	q.mu.Lock()
	q.n++
	n := q.n
	q.open[n] = answer
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		delete(q.open, n)
		q.mu.Unlock()
	}()
	if err := sendForwarded(q.line, forwardedMessage{Ask: method, N: n, data: params}); err != nil {
		return nil, err
	}
	select {
	case m := <-answer:
		if m.Fault != nil {
			return nil, m.Fault.err()
		}
		return m.data, nil
	case <-q.line.Done():
		return nil, nodes.ErrGone
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// listen hands answers to those who asked; when the other side has gone the
// call is given up.
func (q *forwardedQuestions) listen(ctx context.Context, giveUp func()) {
	defer giveUp()
	for {
		data, err := q.line.Receive(ctx)
		if err != nil {
			return
		}
		m, err := parseForwarded(data)
		if err != nil || !m.Answer {
			continue
		}
		q.mu.Lock()
		answer := q.open[m.N]
		q.mu.Unlock()
		if answer != nil {
			answer <- m
		}
	}
}

// lostEvery is how often lost records are counted.
const lostEvery = 5 * time.Second

// countDroppedRecords counts the records dropped while the database was
// unavailable.
func (a *App) countDroppedRecords(ctx context.Context) {
	log, ok := a.store.(interface{ Lost() int64 })
	if !ok {
		return
	}
	tick := time.NewTicker(lostEvery)
	defer tick.Stop()
	for counted := int64(0); ; {
		for ; counted < log.Lost(); counted++ {
			a.metrics.Dropped("record")
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// borrowEvery is how often the tools of other nodes' servers are read again.
const borrowEvery = 5 * time.Second

// runNodes speaks with the other nodes until ctx is done.
func (a *App) runNodes(ctx context.Context) error {
	if a.nodes == nil {
		return nil
	}
	var wg sync.WaitGroup
	wg.Go(func() { a.followRemoteTools(ctx) })
	wg.Go(func() { a.followEdits(ctx) })
	wg.Go(func() { a.countDroppedRecords(ctx) })
	defer wg.Wait()
	return a.nodes.Run(ctx)
}

// followRemoteTools publishes the tools of servers that other nodes run, from
// the catalogues that those store.
func (a *App) followRemoteTools(ctx context.Context) {
	changed := a.store.Watch(ctx, store.TopicCatalogues)
	known := map[string]string{} // what was offered last
	var read time.Time
	for {
		var elsewhere []upstream.Status
		for _, st := range a.upstreams.Status() {
			if st.Node == "" {
				delete(known, st.Name)
			} else {
				elsewhere = append(elsewhere, st)
			}
		}
		fresh := slices.ContainsFunc(elsewhere, func(st upstream.Status) bool { return known[st.Name] == "" })
		// The watch also fires without cause, and the tools of all servers
		// are much to read.
		if fresh || len(elsewhere) > 0 && time.Since(read) > borrowEvery {
			read = time.Now()
			if err := a.loadRemoteTools(ctx, elsewhere, known); err != nil && ctx.Err() == nil {
				a.log.DebugContext(ctx, "tools of other nodes not read", "err", err)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

func (a *App) loadRemoteTools(ctx context.Context, elsewhere []upstream.Status, known map[string]string) error {
	kept, err := a.store.Catalogues(ctx)
	if err != nil {
		return err
	}
	for _, st := range elsewhere {
		for _, c := range kept {
			version := st.Node + c.Seen.String()
			if c.Server != st.Name || known[st.Name] == version {
				continue
			}
			offer, ok := a.toolSetOf(a.config.Load(), c)
			if !ok {
				continue
			}
			if err := a.guard.Observe(ctx, c.Server, offer.Tools); err != nil {
				return err
			}
			a.sink.publish(offer)
			a.upstreams.Lend(c.Server, offer.Info, len(offer.Tools))
			known[st.Name] = version
		}
	}
	return nil
}
