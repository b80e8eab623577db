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

// Tracer creates OpenTelemetry spans. A nil Tracer creates none, but still
// propagates the trace context.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
}

// NewTracer returns a Tracer that redacts its spans and passes them to exporter
// in the background.
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

// Span is a span of a trace.
type Span struct{ trace.Span }

// Start begins a span as a child of that of ctx. The returned context has a
// trace context even if the span is not recorded, so that log lines have a
// trace id.
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

// Set sets a string attribute.
func (s Span) Set(key, value string) { s.SetAttributes(attribute.String(key, value)) }

// SetInt sets an integer attribute.
func (s Span) SetInt(key string, value int) { s.SetAttributes(attribute.Int(key, value)) }

// Fail marks the span as failed.
func (s Span) Fail(why string) { s.SetStatus(codes.Error, why) }

// Shutdown exports the remaining spans, for at most five seconds.
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

// redactingExporter masks the secrets of every span before it is exported.
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
