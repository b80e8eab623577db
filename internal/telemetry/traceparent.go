package telemetry

import (
	"context"
	"encoding/binary"
	"math/rand/v2"
	"net/http"
	"strings"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// The names of the W3C trace context headers, which are also the keys in MCP's
// _meta.
const (
	TraceparentHeader = "traceparent"
	TracestateHeader  = "tracestate"

	canonicalTraceparent = "Traceparent" // the key in an [http.Header]
)

// ParseTrace parses the values of traceparent and tracestate. The result is
// invalid if parent is; an invalid state is dropped.
func ParseTrace(parent, state string) trace.SpanContext {
	values := propagation.MapCarrier{TraceparentHeader: parent, TracestateHeader: state}
	return TraceOf(propagation.TraceContext{}.Extract(context.Background(), values))
}

// FormatTrace returns the values of traceparent and tracestate.
func FormatTrace(t trace.SpanContext) (parent, state string) {
	values := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(context.Background(), t), values)
	return values[TraceparentHeader], values[TracestateHeader]
}

// WithTraceOf returns a context with the trace context of an HTTP request's
// headers.
func WithTraceOf(ctx context.Context, h http.Header) context.Context {
	if values := h[canonicalTraceparent]; len(values) == 1 {
		if t := ParseTrace(strings.TrimSpace(values[0]), strings.Join(h.Values(TracestateHeader), ",")); t.IsValid() {
			return WithTrace(ctx, t)
		}
	}
	return ctx
}

// WithTrace returns a context with a trace context, whose id its log lines
// have.
func WithTrace(ctx context.Context, t trace.SpanContext) context.Context {
	return withTraceField(trace.ContextWithRemoteSpanContext(ctx, t), t)
}

func withTraceField(ctx context.Context, t trace.SpanContext) context.Context {
	return with(ctx, func(f *fields) { f.trace = t.TraceID().String() })
}

// TraceOf returns the trace context of the innermost span of ctx.
func TraceOf(ctx context.Context) trace.SpanContext { return trace.SpanContextFromContext(ctx) }

// TraceID returns the trace id of ctx, or "".
func TraceID(ctx context.Context) string {
	if f := fieldsOf(ctx); f != nil {
		return f.trace
	}
	return ""
}

// newTrace returns a new trace context that is not sampled.
func newTrace() trace.SpanContext {
	var c trace.SpanContextConfig
	binary.LittleEndian.PutUint64(c.TraceID[:8], rand.Uint64()) // ids are not secret
	binary.LittleEndian.PutUint64(c.TraceID[8:], rand.Uint64())
	binary.LittleEndian.PutUint64(c.SpanID[:], rand.Uint64())
	return trace.NewSpanContext(c)
}
