package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/hex"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"junctor/internal/telemetry"
)

const (
	parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	canary = "correct horse battery" // a secret that is masked only because it was added to the redactor
)

func TestNoCollector(t *testing.T) {
	if tracer, err := NewTracer(context.Background(), nil, "v", nil, nil); tracer != nil || err != nil {
		t.Fatalf("NewTracer without a configuration = %v, %v", tracer, err)
	}
}

// TestTracer sends spans to a collector that decodes the real wire format.
func TestTracer(t *testing.T) {
	got := make(chan *collector.ExportTraceServiceRequest, 4)
	auth := make(chan string, 4)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			z, err := gzip.NewReader(body)
			if err != nil {
				t.Error(err)
				return
			}
			body = z
		}
		b, err := io.ReadAll(body)
		if err != nil {
			t.Error(err)
		}
		var req collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(b, &req); err != nil || r.URL.Path != "/v1/traces" {
			t.Errorf("%s: %v", r.URL.Path, err)
		}
		got <- &req
		auth <- r.Header.Get("X-Auth")
	}))
	defer srv.Close()
	r := &telemetry.Redactor{}
	tracer, err := NewTracer(context.Background(), &telemetry.OTLPConfig{Endpoint: srv.URL + "/", ServiceName: "test", Headers: map[string]telemetry.Secret{"X-Auth": canary}}, "v1", r, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	in := telemetry.ParseTrace(parent, "vendor=1")
	ctx, span := tracer.Start(telemetry.WithTrace(context.Background(), in), "call "+canary)
	if !span.IsRecording() {
		t.Error("a sampled parent's child is not recorded")
	}
	inner, child := tracer.Start(ctx, "dispatch")
	child.SetInt("n", 3)
	child.End()
	span.Set("server", "github "+canary)
	span.Set("password", "x")
	span.Fail("broke: " + canary)
	span.AddEvent("event " + canary)
	span.End()
	if out := telemetry.TraceOf(inner); out.TraceID() != in.TraceID() || out.TraceState().String() != "vendor=1" || !out.IsSampled() {
		t.Errorf("the inner span's context is %v", out)
	}
	if err := tracer.Shutdown(context.Background()); err != nil {
		t.Fatal(err)
	}
	req := <-got
	if a := <-auth; a != canary {
		t.Errorf("the collector got %q as its header", a)
	}
	text := req.String()
	if strings.Contains(text, canary) || strings.Count(text, telemetry.Redacted) < 5 {
		t.Errorf("spans:\n%s", text)
	}
	spans := req.ResourceSpans[0].ScopeSpans[0].Spans
	if len(spans) != 2 || hex.EncodeToString(spans[0].TraceId) != in.TraceID().String() || hex.EncodeToString(spans[1].ParentSpanId) != in.SpanID().String() {
		t.Errorf("%d spans: %v", len(spans), spans)
	}
}

// TestFailedExportIsLogged: without a handler, OpenTelemetry writes its errors
// to stderr itself.
func TestFailedExportIsLogged(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	defer srv.Close()
	var out bytes.Buffer // complete after Shutdown
	tracer, err := NewTracer(context.Background(), &telemetry.OTLPConfig{Endpoint: srv.URL}, "v1", nil, slog.New(slog.NewTextHandler(&out, nil)))
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracer.Start(context.Background(), "call")
	span.End()
	_ = tracer.Shutdown(context.Background()) // may report the same error
	if text := out.String(); !strings.Contains(text, "cannot send traces") || !strings.Contains(text, "404") {
		t.Errorf("logged %q", text)
	}
}

func TestTracerSampling(t *testing.T) {
	none := 0.0
	tracer, err := NewTracer(context.Background(), &telemetry.OTLPConfig{Endpoint: "http://127.0.0.1:1/custom/path", SampleRatio: &none}, "v1", nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	in := telemetry.ParseTrace(strings.TrimSuffix(parent, "1")+"0", "not a state")
	ctx, span := tracer.Start(telemetry.WithTrace(context.Background(), in), "x")
	if out := telemetry.TraceOf(ctx); span.IsRecording() || out.TraceID() != in.TraceID() {
		t.Errorf("an unsampled trace went on as %v", out)
	}
	if err := tracer.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

func TestTracesURL(t *testing.T) {
	for in, want := range map[string]string{
		"http://h:4318": "http://h:4318/v1/traces", "http://h:4318/": "http://h:4318/v1/traces",
		"https://h/otlp/v1/traces": "https://h/otlp/v1/traces", "h:4318": "h:4318/v1/traces",
	} {
		if got := tracesURL(in); got != want {
			t.Errorf("tracesURL(%s) = %s, want %s", in, got, want)
		}
	}
}
