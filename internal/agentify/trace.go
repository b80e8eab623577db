package agentify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"junctor/internal/executor"
	"junctor/internal/mcp"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// direction is which way a message went.
type direction bool

const (
	inward  direction = false
	outward direction = true
)

// TraceEntry is one message between the gateway and a backend, or one step
// of a task, as the debug interface shows it.
type TraceEntry struct {
	Timestamp int64           `json:"timestamp"` // milliseconds since 1970
	Direction string          `json:"direction"` // INCOMING_TO_GATEWAY or OUTGOING_FROM_GATEWAY
	BackendID string          `json:"backendId,omitempty"`
	ID        int64           `json:"id,omitempty"` // the same for a request, what belongs to it, and its answer
	Method    string          `json:"method"`
	Payload   json.RawMessage `json:"paramsOrResult,omitempty"`
	Error     json.RawMessage `json:"error,omitempty"`
}

// record is a TraceEntry before anybody looked at it: the bytes as they went
// over the wire, neither copied, nor redacted, nor encoded. That is done for
// those who read, so that the trace costs nothing to speak of.
type record struct {
	at      time.Time
	dir     direction
	backend string
	id      int64
	method  string
	caller  string
	payload json.RawMessage
	size    int // of the whole payload
	err     error
}

// Bounds of the trace.
const (
	traceEntries = 500
	tracePayload = 8 << 10 // of one message; the rest is cut
)

// Trace remembers the latest traffic with the backends. Its methods may be
// called on a nil Trace, which remembers nothing.
type Trace struct {
	ring   *telemetry.Ring[record]
	redact func(json.RawMessage) json.RawMessage
	ids    atomic.Int64
}

// NewTrace returns a Trace in which redact stands before everything that is
// shown.
func NewTrace(redact func(json.RawMessage) json.RawMessage) *Trace {
	return &Trace{ring: telemetry.NewRing[record](traceEntries), redact: redact}
}

func (t *Trace) add(r record) {
	r.at = time.Now()
	r.size = len(r.payload)
	if r.size > tracePayload {
		// The margin keeps a secret that straddles the cut from losing its
		// shape before it is redacted. A copy, so as not to hold the rest.
		r.payload = append(json.RawMessage(nil), r.payload[:min(r.size, tracePayload+1024)]...)
	}
	t.ring.Add(r)
}

// step remembers a step of a task. Tasks are rare beside calls, so this may
// encode at once what is then cut.
func (t *Trace) step(dir direction, method, caller string, detail any, err error) {
	if t == nil {
		return
	}
	r := record{dir: dir, method: method, caller: caller, err: err}
	if detail != nil {
		r.payload = marshal(detail)
	}
	t.add(r)
}

// Around returns upstreams whose traffic is traced. It stands between the
// executor and the backends, where the calls of all faces pass.
func (t *Trace) Around(next executor.Upstreams) executor.Upstreams {
	return &traced{Upstreams: next, trace: t}
}

type traced struct {
	executor.Upstreams
	trace *Trace
}

// Do implements executor.Upstreams.
func (u *traced) Do(ctx context.Context, server string, req tool.Request) (json.RawMessage, error) {
	t, method := u.trace, req.Method
	base := record{backend: server, id: t.ids.Add(1), method: method, caller: req.Caller}
	note := func(dir direction, method string, payload json.RawMessage, err error) {
		r := base
		r.dir, r.method, r.payload, r.err = dir, method, payload, err
		t.add(r)
	}
	note(outward, method, req.Params, nil)
	if notify := req.Exchange.Notify; notify != nil {
		req.Exchange.Notify = func(method string, params json.RawMessage) {
			note(inward, method, params, nil)
			notify(method, params)
		}
	}
	if ask := req.Exchange.Ask; ask != nil {
		req.Exchange.Ask = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			note(inward, method, params, nil)
			answer, err := ask(ctx, method, params)
			note(outward, method, answer, err)
			return answer, err
		}
	}
	result, err := u.Upstreams.Do(ctx, server, req)
	note(inward, method, result, err)
	return result, err
}

// show makes an entry of a record: redacted, and cut where it is long.
func (t *Trace) show(r record) TraceEntry {
	e := TraceEntry{Timestamp: r.at.UnixMilli(), Direction: "INCOMING_TO_GATEWAY", BackendID: r.backend, ID: r.id, Method: r.method}
	if r.dir == outward {
		e.Direction = "OUTGOING_FROM_GATEWAY"
	}
	if len(r.payload) > 0 {
		e.Payload = t.sanitise(r.payload, r.size)
	}
	if r.err != nil {
		e.Error = t.sanitise(errorShown(r.err), 0)
	}
	return e
}

func (t *Trace) sanitise(payload json.RawMessage, size int) json.RawMessage {
	if size > tracePayload {
		clean := string(t.redact(payload[:min(len(payload), tracePayload+1024)]))
		return marshal(strings.ToValidUTF8(clean[:min(len(clean), tracePayload)], "") + fmt.Sprintf("… (%d bytes in all)", size))
	}
	if clean := t.redact(payload); json.Valid(clean) {
		return clean
	}
	return marshal(string(t.redact(payload)))
}

func errorShown(err error) json.RawMessage {
	if wire, ok := errors.AsType[*mcp.Error](err); ok {
		return marshal(wire)
	}
	return marshal(map[string]any{"code": tool.KindOf(err), "message": err.Error()})
}
