package telemetry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// Tracer makes OpenTelemetry spans. A nil Tracer makes none and costs
// nothing, but still carries the trace context onwards.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// NewTracer makes a Tracer that gives its spans, redacted, to exporter in the
// background.
func NewTracer(cfg *OTLPConfig, version string, r *Redactor, exporter sdktrace.SpanExporter) *Tracer {
	ratio := 1.0
	if cfg.SampleRatio != nil {
		ratio = *cfg.SampleRatio
	}
	name := cfg.ServiceName
	if name == "" {
		name = "junctor"
	}
	p := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(redactingExporter{exporter, r}),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(ratio))),
		sdktrace.WithResource(resource.NewSchemaless(attribute.String("service.name", name), attribute.String("service.version", version))),
	)
	return &Tracer{provider: p, tracer: p.Tracer("junctor")}
}

// Span is one piece of work within a trace.
type Span struct{ trace.Span }

// Start begins a span under that of ctx. The context returned carries a trace
// context, whether it is recorded or not, so that it reaches log lines.
func (t *Tracer) Start(ctx context.Context, name string) (context.Context, Span) {
	if t == nil {
		if !TraceOf(ctx).IsValid() {
			ctx = WithTrace(ctx, newTrace())
		}
		return ctx, Span{noop.Span{}}
	}
	ctx, span := t.tracer.Start(ctx, name)
	return withTraceField(ctx, span.SpanContext()), Span{span}
}

// Set notes a fact about the work.
func (s Span) Set(key, value string) { s.SetAttributes(attribute.String(key, value)) }

// SetInt notes a number.
func (s Span) SetInt(key string, value int) { s.SetAttributes(attribute.Int(key, value)) }

// Fail marks the work as failed.
func (s Span) Fail(why string) { s.SetStatus(codes.Error, why) }

// Shutdown sends what is left, for as long as ctx allows.
func (t *Tracer) Shutdown(ctx context.Context) error {
	if t == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := t.provider.Shutdown(ctx); err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("send the last traces: %w", err)
	}
	return nil
}

// redactingExporter masks the secrets of every span on its way out.
type redactingExporter struct {
	sdktrace.SpanExporter
	r *Redactor
}

// ExportSpans implements sdktrace.SpanExporter.
func (e redactingExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	clean := make([]sdktrace.ReadOnlySpan, len(spans))
	for i, s := range spans {
		clean[i] = redactedSpan{s, e.r}
	}
	return e.SpanExporter.ExportSpans(ctx, clean)
}

type redactedSpan struct {
	sdktrace.ReadOnlySpan
	r *Redactor
}

func (s redactedSpan) Name() string { return s.r.String(s.ReadOnlySpan.Name()) }

func (s redactedSpan) Attributes() []attribute.KeyValue {
	return redactAttributes(s.r, s.ReadOnlySpan.Attributes())
}

func (s redactedSpan) Status() sdktrace.Status {
	st := s.ReadOnlySpan.Status()
	st.Description = s.r.String(st.Description)
	return st
}

func (s redactedSpan) Events() []sdktrace.Event {
	events := s.ReadOnlySpan.Events()
	out := make([]sdktrace.Event, len(events))
	for i, e := range events {
		e.Name, e.Attributes = s.r.String(e.Name), redactAttributes(s.r, e.Attributes)
		out[i] = e
	}
	return out
}

func redactAttributes(r *Redactor, attrs []attribute.KeyValue) []attribute.KeyValue {
	out := make([]attribute.KeyValue, len(attrs))
	for i, a := range attrs {
		if out[i] = a; a.Value.Type() != attribute.STRING {
			continue
		}
		if v := a.Value.AsString(); v != "" && SecretName(string(a.Key)) {
			out[i].Value = attribute.StringValue(Redacted)
		} else {
			out[i].Value = attribute.StringValue(r.String(v))
		}
	}
	return out
}
