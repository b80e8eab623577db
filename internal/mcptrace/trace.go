// Package mcptrace records the latest messages between the gateway and its
// upstreams, for the debug API.
//
// It is in the path of every call, so adding a message costs only one copy of a
// bounded part of it. Records are redacted and encoded when they are read. They
// share no memory with the message, because a small part of a large request
// would otherwise retain all of it.
package mcptrace

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// Direction is the direction of a message.
type Direction bool

const (
	Incoming Direction = false // to the gateway
	Outgoing Direction = true  // from the gateway
)

// Entry is one message between the gateway and a server, or one step of a
// task, in the debug API.
type Entry struct {
	Timestamp int64           `json:"timestamp"`           // Unix time in milliseconds
	Direction string          `json:"direction"`           // INCOMING_TO_GATEWAY or OUTGOING_FROM_GATEWAY
	BackendID string          `json:"backendId,omitempty"` // name of the server; absent for a step of a task
	ID        int64           `json:"id,omitempty"`        // the same for a request, its response and the messages that belong to it; absent for a step of a task
	Method    string          `json:"method"`
	Payload   json.RawMessage `json:"paramsOrResult,omitempty"` // parameters or result; long ones are truncated
	Error     json.RawMessage `json:"error,omitempty"`
}

// Record is an Entry before redaction and encoding. Server, Tool, Method and
// Caller determine who may see it.
type Record struct {
	Server string // "" for a step of a task
	Tool   string // of the request that the message belongs to, or its method if that is not a call
	Method string
	Caller string

	at      time.Time
	dir     Direction
	id      int64
	payload bounded
	err     bounded
}

// bounded is the beginning of a text, and its total size.
type bounded struct {
	text []byte
	size int
}

// Bounds of the trace: at most maxEntries*2*(maxPayload+margin) bytes.
const (
	maxEntries = 500
	maxPayload = 8 << 10 // of one message; the rest is cut
	margin     = 1 << 10 // keeps a secret that straddles the cut recognisable until it is redacted
	maxMethod  = 128
)

// Trace records the latest messages. A nil *Trace records nothing.
type Trace struct {
	ring   *telemetry.Ring[Record]
	redact func(json.RawMessage) json.RawMessage
	ids    atomic.Int64
}

// New returns a Trace whose entries are passed through redact.
func New(redact func(json.RawMessage) json.RawMessage) *Trace {
	return &Trace{ring: telemetry.NewRing[Record](maxEntries), redact: redact}
}

func (t *Trace) add(r Record, payload []byte, err error) {
	r.at = time.Now()
	if len(r.Method) > maxMethod {
		r.Method = strings.ToValidUTF8(strings.Clone(r.Method[:maxMethod]), "") + "…"
	}
	r.payload = beginning(payload)
	if err != nil { // encoded immediately, because it may retain a whole response
		r.err = beginning(shownError(err))
	}
	t.ring.Add(r)
}

// beginning copies the part of a text that is recorded.
func beginning(text []byte) bounded {
	return bounded{bytes.Clone(text[:min(len(text), maxPayload+margin)]), len(text)}
}

// Step records a step of a task. Tasks are rare compared to calls, so it
// encodes the detail immediately, even if that is then truncated.
func (t *Trace) Step(dir Direction, method, caller string, detail any, err error) {
	if t == nil {
		return
	}
	var payload []byte
	if detail != nil {
		payload = rawjson.MarshalOrNull(detail)
	}
	t.add(Record{dir: dir, Method: method, Caller: caller}, payload, err)
}

// Request implements upstream.Tracer. It records a request to a server and
// returns its id and an exchange that records the messages that belong to it.
func (t *Trace) Request(server string, req tool.Request) (id int64, observed tool.Exchange) {
	id, observed = t.ids.Add(1), req.Exchange
	caller, name := req.Caller, toolOf(req)
	t.add(Record{Server: server, Tool: name, Method: req.Method, Caller: caller, id: id, dir: Outgoing}, req.Params, nil)
	if notify := observed.Notify; notify != nil {
		observed.Notify = func(method string, params json.RawMessage) {
			t.add(Record{Server: server, Tool: name, Method: method, Caller: caller, id: id, dir: Incoming}, params, nil)
			notify(method, params)
		}
	}
	if ask := observed.Ask; ask != nil {
		observed.Ask = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			r := Record{Server: server, Tool: name, Method: method, Caller: caller, id: id, dir: Incoming}
			t.add(r, params, nil)
			answer, err := ask(ctx, method, params)
			r.dir = Outgoing
			t.add(r, answer, err)
			return answer, err
		}
	}
	return id, observed
}

// Response implements upstream.Tracer. It records the response to a request.
func (t *Trace) Response(id int64, server string, req tool.Request, result json.RawMessage, err error) {
	t.add(Record{Server: server, Tool: toolOf(req), Method: req.Method, Caller: req.Caller, id: id, dir: Incoming}, result, err)
}

// toolOf returns the tool that a request calls, or the method of other
// requests. The executor has checked that params has one name, which is usually
// the first member.
func toolOf(req tool.Request) string {
	if req.Method != mcp.MethodToolsCall {
		return req.Method
	}
	for m := range rawjson.Positions(req.Params) {
		if m.Is(req.Params, "name") {
			name, _ := rawjson.Unquote(m.Value(req.Params))
			return name
		}
	}
	return ""
}

// Records returns the ring of records.
func (t *Trace) Records() *telemetry.Ring[Record] { return t.ring }

// Show converts a record to an entry, which is redacted and truncated.
func (t *Trace) Show(r Record) Entry {
	e := Entry{Timestamp: r.at.UnixMilli(), Direction: "INCOMING_TO_GATEWAY", BackendID: r.Server, ID: r.id, Method: r.Method}
	if r.dir == Outgoing {
		e.Direction = "OUTGOING_FROM_GATEWAY"
	}
	if r.payload.size > 0 {
		e.Payload = t.sanitise(r.payload)
	}
	if r.err.size > 0 {
		e.Error = t.sanitise(r.err)
	}
	return e
}

func (t *Trace) sanitise(b bounded) json.RawMessage {
	clean := t.redact(b.text)
	if b.size > maxPayload {
		shown := strings.ToValidUTF8(string(clean[:min(len(clean), maxPayload)]), "")
		return rawjson.MarshalOrNull(fmt.Sprintf("%s… (%d bytes in all)", shown, b.size))
	}
	if json.Valid(clean) {
		return clean
	}
	return rawjson.MarshalOrNull(string(clean))
}

func shownError(err error) json.RawMessage {
	if wire, ok := errors.AsType[*mcp.Error](err); ok {
		return rawjson.MarshalOrNull(wire)
	}
	return rawjson.MarshalOrNull(map[string]any{"code": tool.KindOf(err), "message": err.Error()})
}
