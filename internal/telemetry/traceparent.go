package telemetry

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"net/http"
	"strings"
)

// Traceparent is the W3C trace context of a request: which trace it belongs
// to, and which span of it is the parent.
type Traceparent struct {
	TraceID [16]byte
	SpanID  [8]byte
	Flags   byte   // bit 0: sampled
	State   string // tracestate, passed on as it came
}

// The names of the headers, which are also the keys in MCP's _meta.
const (
	TraceparentHeader = "traceparent"
	TracestateHeader  = "tracestate"
)

// maxTracestate is the length up to which a tracestate is passed on; the
// specification asks for 512 at least.
const maxTracestate = 2048

// NewTraceparent begins a trace.
func NewTraceparent() Traceparent {
	var t Traceparent
	binary.LittleEndian.PutUint64(t.TraceID[:8], rand.Uint64())
	binary.LittleEndian.PutUint64(t.TraceID[8:], rand.Uint64())
	return t.Child()
}

// Child returns the context of a new span within the same trace.
func (t Traceparent) Child() Traceparent {
	binary.LittleEndian.PutUint64(t.SpanID[:], rand.Uint64()) // ids are no secrets
	return t
}

// Valid reports whether the ids are not zero.
func (t Traceparent) Valid() bool { return t.TraceID != [16]byte{} && t.SpanID != [8]byte{} }

// String returns the value of the traceparent header.
func (t Traceparent) String() string {
	b := make([]byte, 0, 55)
	b = append(b, "00-"...)
	b = hex.AppendEncode(b, t.TraceID[:])
	b = append(b, '-')
	b = hex.AppendEncode(b, t.SpanID[:])
	b = append(b, '-')
	return string(hex.AppendEncode(b, []byte{t.Flags}))
}

// ID returns the trace id as hexadecimal digits.
func (t Traceparent) ID() string { return hex.EncodeToString(t.TraceID[:]) }

// ParseTraceparent reads a traceparent header. Versions after 00 are read as
// far as they agree with it, as the specification asks; what is wrong in any
// way is not ok, and the trace starts again.
func ParseTraceparent(s string) (t Traceparent, ok bool) {
	if len(s) < 55 || len(s) > 512 || s[2] != '-' || s[35] != '-' || s[52] != '-' {
		return t, false
	}
	version, ok := hexBytes(s[0:2])
	if !ok || version[0] == 0xff || version[0] == 0 && len(s) != 55 || len(s) > 55 && s[55] != '-' {
		return t, false
	}
	trace, ok1 := hexBytes(s[3:35])
	span, ok2 := hexBytes(s[36:52])
	flags, ok3 := hexBytes(s[53:55])
	if !ok1 || !ok2 || !ok3 {
		return t, false
	}
	t = Traceparent{TraceID: [16]byte(trace), SpanID: [8]byte(span), Flags: flags[0] & 1}
	if !t.Valid() {
		return Traceparent{}, false
	}
	return t, true
}

// hexBytes decodes lower case digits alone, as the specification has it.
func hexBytes(s string) ([]byte, bool) {
	if strings.ToLower(s) != s {
		return nil, false
	}
	b, err := hex.DecodeString(s)
	return b, err == nil
}

// Extract returns the trace context that an HTTP request came with.
func Extract(h http.Header) (Traceparent, bool) {
	values := h.Values(TraceparentHeader)
	if len(values) != 1 {
		return Traceparent{}, false
	}
	t, ok := ParseTraceparent(strings.TrimSpace(values[0]))
	if !ok {
		return t, false
	}
	if state := strings.Join(h.Values(TracestateHeader), ","); len(state) <= maxTracestate {
		t.State = state
	}
	return t, true
}

// Inject writes the trace context of ctx into the headers of a request.
func Inject(ctx context.Context, h http.Header) {
	t, ok := TraceOf(ctx)
	if !ok {
		return
	}
	h.Set(TraceparentHeader, t.String())
	if t.State != "" {
		h.Set(TracestateHeader, t.State)
	}
}

type traceKey struct{}

// WithTrace puts a trace context into ctx; log lines under it carry its id.
func WithTrace(ctx context.Context, t Traceparent) context.Context {
	ctx = context.WithValue(ctx, traceKey{}, t)
	return with(ctx, func(f *fields) { f.trace = t.ID() })
}

// TraceOf returns the trace context of ctx, that of the innermost span.
func TraceOf(ctx context.Context) (Traceparent, bool) {
	t, ok := ctx.Value(traceKey{}).(Traceparent)
	return t, ok
}

// TraceID returns the trace id of ctx, or "".
func TraceID(ctx context.Context) string {
	if t, ok := TraceOf(ctx); ok {
		return t.ID()
	}
	return ""
}
