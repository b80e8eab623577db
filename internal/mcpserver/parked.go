package mcpserver

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// A caller of the stateless era cannot be asked during its request. If an
// upstream of the handshake era asks for input during a call, the call is
// parked: the response to the caller's request contains the questions and a
// signed requestState, and the call waits until the caller's retry, which
// contains the answers and the state, resumes it.

// maxParkedNotifications bounds the notifications that a parked call keeps for its caller.
const maxParkedNotifications = 64

// statePrefix is the prefix of every requestState issued by a gateway.
const statePrefix = "junctor."

// maxQuestions bounds the questions that one call may have open.
const maxQuestions = 32

// parkedState is the state of a call that waits for its caller's answer.
type parkedState struct {
	ticket    ticket
	expires   time.Time
	timer     *time.Timer
	questions []*question // open ones, oldest first
	asked     int
	held      []*mcp.Message
	done      *mcp.Message // the response, if the call ended while parked
}

type question struct {
	key    string
	method string
	params json.RawMessage
	answer chan json.RawMessage
}

// ticket identifies a parked call. Each ticket is valid for one retry.
type ticket [16]byte

// askParked asks a caller of the stateless era a question and waits for the
// answer.
func (c *call) askParked(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	if !mcp.MayNeedInput(c.req.Method) {
		return nil, &mcp.Error{Code: mcp.CodeMethodNotFound, Message: "the client cannot be asked during " + c.req.Method}
	}
	if err := mayAsk(c.req.Exchange.Capabilities, method, params); err != nil {
		return nil, err
	}
	q := &question{method: method, params: params, answer: make(chan json.RawMessage, 1)}
	if err := c.ask(q); err != nil {
		return nil, err
	}
	select {
	case answer := <-q.answer:
		return answer, nil
	case <-c.ctx.Done():
		return nil, context.Cause(c.ctx)
	case <-ctx.Done():
		c.withdraw(q)
		return nil, context.Cause(ctx)
	}
}

// ask adds a question. The first one parks the call.
func (c *call) ask(q *question) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ctx.Err() != nil { // the caller is gone or has cancelled the call
		return context.Cause(c.ctx)
	}
	if len(c.park.questions) >= maxQuestions {
		return &mcp.Error{Code: tool.RateLimited.JSONRPC(), Message: "too many questions to the client at once"}
	}
	c.park.asked++
	q.key = strconv.Itoa(c.park.asked)
	c.park.questions = append(c.park.questions, q)
	if c.out == nil {
		return nil // already parked: the response to the retry contains this question too
	}
	c.endWithCredential() // so far the request did, which ends with this response
	if err := c.srv.parked.add(c); err != nil {
		c.park.questions = c.park.questions[:len(c.park.questions)-1]
		return err
	}
	c.detach()
	out, id := c.out, c.id
	c.out = nil
	c.answerInputRequired(out, id)
	return nil
}

func (c *call) withdraw(q *question) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.park.questions = slices.DeleteFunc(c.park.questions, func(other *question) bool { return other == q })
}

// answerInputRequired sends the open questions to the caller.
func (c *call) answerInputRequired(out outlet, id mcp.ID) {
	m := &mcp.Message{ID: id, Result: c.inputRequired()}
	c.srv.logSent(c.ctx, m)
	out.answer(m)
}

// inputRequired returns the input_required result with the open questions.
func (c *call) inputRequired() json.RawMessage {
	b := []byte(`{"resultType":"input_required","inputRequests":{`)
	for i, q := range c.park.questions {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(rawjson.AppendQuoted(b, q.key), `:{"method":`...)
		b = rawjson.AppendQuoted(b, q.method)
		if len(q.params) > 0 {
			b = append(append(b, `,"params":`...), q.params...)
		}
		b = append(b, '}')
	}
	b = append(b, `},"requestState":`...)
	return append(rawjson.AppendQuoted(b, c.srv.parked.state(c)), '}')
}

// resume resumes the parked call that the state of a retry identifies.
func (s *Server) resume(life context.Context, req *Request, state string, out outlet) {
	refuse := func(e *mcp.Error) { out.answer(&mcp.Message{ID: req.ID, Error: e}) }
	responses := rawjson.Field(req.Params, "inputResponses")
	if responses != nil && !rawjson.IsObject(responses) {
		refuse(&mcp.Error{Code: mcp.CodeInvalidParams, Message: "inputResponses must be an object"})
		return
	}
	for key, response := range rawjson.Members(responses) {
		if !rawjson.IsObject(response) {
			refuse(&mcp.Error{Code: mcp.CodeInvalidParams, Message: fmt.Sprintf("inputResponses: %q must be an object", key)})
			return
		}
	}
	c, err := s.parked.take(state, req)
	if err != nil {
		refuse(err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, response := range rawjson.Members(responses) {
		c.park.questions = slices.DeleteFunc(c.park.questions, func(q *question) bool {
			if q.key != key {
				return false
			}
			q.answer <- slices.Clone(response)
			return true
		})
	}
	if len(c.park.questions) > 0 && c.park.done == nil {
		// Some answers are missing: the call stays parked.
		if err := s.parked.add(c); err != nil {
			c.cancel(errServerClosed)
			refuse(mcp.ToolError(tool.AsError(err)))
			return
		}
		c.answerInputRequired(out, req.ID)
		return
	}
	c.id, c.out = req.ID, out
	c.token = rawjson.Field(req.Params, "_meta", "progressToken")
	for _, m := range c.park.held {
		out.put(c.setProgressToken(m))
	}
	c.park.held = nil
	if done := c.park.done; done != nil {
		c.cancel(nil)
		done.ID = req.ID
		out.answer(done)
		return
	}
	c.detachRequest = context.AfterFunc(life, func() { c.cancel(errCallerLeft) })
}

// parkedCalls are the parked calls of a server.
type parkedCalls struct {
	max    int
	ttl    time.Duration
	key    [32]byte
	prefix string // of the states issued by this server

	mu     sync.Mutex
	calls  map[ticket]*call
	closed bool
}

func (l *parkedCalls) init(max int, ttl time.Duration) {
	l.max, l.ttl, l.calls = max, ttl, map[ticket]*call{}
	_, _ = rand.Read(l.key[:]) // never fails
	l.prefix = statePrefix + rand.Text()[:8] + "."
}

// add gives a call a new ticket. The call's lock is held.
func (l *parkedCalls) add(c *call) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	mine := 0
	for _, other := range l.calls {
		if other.req.Caller.ID == c.req.Caller.ID {
			mine++
		}
	}
	if l.closed || len(l.calls) >= l.max || mine >= max(1, l.max/4) {
		return &tool.Error{Kind: tool.RateLimited, Msg: "too many calls wait for their callers' input; answer those first"}
	}
	_, _ = rand.Read(c.park.ticket[:])
	c.park.expires = time.Now().Add(l.ttl)
	l.calls[c.park.ticket] = c
	t := c.park.ticket
	c.park.timer = time.AfterFunc(l.ttl, func() { l.expire(t) })
	return nil
}

func (l *parkedCalls) expire(t ticket) {
	l.mu.Lock()
	c := l.calls[t]
	delete(l.calls, t)
	l.mu.Unlock()
	if c != nil {
		c.cancel(errCallerLeft)
	}
}

func (l *parkedCalls) closeAll() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	for t, c := range l.calls {
		c.park.timer.Stop()
		c.cancel(errServerClosed)
		delete(l.calls, t)
	}
}

// owns reports whether a state was issued by this server. States of upstreams,
// which may be gateways too, are forwarded.
func (l *parkedCalls) owns(state string) bool { return strings.HasPrefix(state, l.prefix) }

// state returns the signed requestState of a call that has a ticket.
func (l *parkedCalls) state(c *call) string {
	var b [24]byte
	copy(b[:], c.park.ticket[:])
	binary.BigEndian.PutUint64(b[16:], uint64(c.park.expires.Unix()))
	return l.prefix + base64.RawURLEncoding.EncodeToString(append(b[:], l.sign(b[:], c.req)...))
}

// sign binds a state to the caller and to the request that it continues.
func (l *parkedCalls) sign(payload []byte, r *Request) []byte {
	mac := hmac.New(sha256.New, l.key[:])
	mac.Write(payload)
	for _, part := range []string{r.Caller.View(), r.Method, requestFingerprint(r.Params)} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		mac.Write(n[:])
		mac.Write([]byte(part))
	}
	return mac.Sum(nil)
}

// requestFingerprint returns the part of the params that must be equal in a
// request and its retry, independent of the order of members.
func requestFingerprint(params json.RawMessage) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(params, &members) != nil {
		return ""
	}
	for _, key := range []string{"_meta", "inputResponses", "requestState"} {
		delete(members, key)
	}
	same := make(map[string]any, len(members))
	for key, raw := range members {
		dec := json.NewDecoder(strings.NewReader(string(raw)))
		dec.UseNumber()
		var v any
		_ = dec.Decode(&v) // valid JSON: it was decoded before
		same[key] = v
	}
	b, _ := json.Marshal(same)
	return string(b)
}

// take verifies a state and removes its call from the table. A state is valid
// once, for the same caller and the same request, until it expires.
func (l *parkedCalls) take(state string, r *Request) (*call, *mcp.Error) {
	invalid := &mcp.Error{Code: mcp.CodeInvalidParams, Message: "requestState is not valid for this request; make the request again without it"}
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(state, l.prefix))
	if err != nil || len(raw) != 24+sha256.Size {
		return nil, invalid
	}
	if !hmac.Equal(raw[24:], l.sign(raw[:24], r)) {
		return nil, invalid
	}
	t := ticket(raw[:16])
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.calls[t]
	if c == nil {
		return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "requestState has expired or was used already; make the request again without it"}
	}
	delete(l.calls, t)
	c.park.timer.Stop()
	return c, nil
}
