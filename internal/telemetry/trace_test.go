package telemetry

import (
	"compress/gzip"
	"context"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"
)

const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

func TestParseTrace(t *testing.T) {
	for name, tt := range map[string]struct {
		in   string
		want string // "" means refused
	}{
		"plain":        {parent, parent},
		"unsampled":    {strings.TrimSuffix(parent, "1") + "0", strings.TrimSuffix(parent, "1") + "0"},
		"later":        {"01" + parent[2:] + "-more", parent},
		"later, plain": {"cc" + parent[2:], parent},
		"later, wrong": {"cc" + parent[2:] + "more", ""},
		"ff":           {"ff" + parent[2:], ""},
		"too long":     {parent + "-x", ""},
		"short":        {parent[:54], ""},
		"empty":        {"", ""},
		"upper case":   {strings.ToUpper(parent), ""},
		"zero trace":   {"00-00000000000000000000000000000000-b7ad6b7169203331-01", ""},
		"zero span":    {"00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", ""},
		"no dashes":    {strings.ReplaceAll(parent, "-", "_"), ""},
	} {
		got := ParseTrace(tt.in, "a=1")
		out, state := FormatTrace(got)
		if out != tt.want || got.IsValid() != (tt.want != "") || got.IsValid() && state != "a=1" {
			t.Errorf("%s: ParseTrace(%q) = %s, %s; want %q", name, tt.in, out, state, tt.want)
		}
	}
}

func TestTraceHeaders(t *testing.T) {
	in := http.Header{"Traceparent": {" " + parent}, "Tracestate": {"a=1", "b=2"}}
	ctx := WithTraceOf(context.Background(), in)
	if got, state := FormatTrace(TraceOf(ctx)); got != parent || state != "a=1,b=2" || TraceID(ctx) != parent[3:35] {
		t.Fatalf("the context has %s, %s", got, state)
	}
	for name, h := range map[string]http.Header{"none": {}, "two": {"Traceparent": {parent, parent}}, "wrong": {"Traceparent": {"x"}}} {
		if ctx := WithTraceOf(context.Background(), h); TraceOf(ctx).IsValid() || TraceID(ctx) != "" {
			t.Errorf("WithTraceOf took %s", name)
		}
	}
	in["Tracestate"] = []string{strings.Repeat("x", 5000)}
	if got, state := FormatTrace(TraceOf(WithTraceOf(context.Background(), in))); got != parent || state != "" {
		t.Errorf("an invalid tracestate came through: %s, %d bytes", got, len(state))
	}
}

// TestNoTracer: without a collector the trace context is still handed on.
func TestNoTracer(t *testing.T) {
	tracer, err := NewTracer(context.Background(), nil, "v", nil)
	if tracer != nil || err != nil {
		t.Fatalf("NewTracer without a configuration = %v, %v", tracer, err)
	}
	in := ParseTrace(parent, "")
	ctx, span := tracer.Start(WithTrace(context.Background(), in), "work")
	span.Set("a", "b")
	span.SetInt("n", 1)
	span.Fail("x")
	span.End()
	if out := TraceOf(ctx); out.TraceID() != in.TraceID() || span.IsRecording() {
		t.Errorf("the trace went on as %v, want the same trace", out)
	}
	ctx, _ = tracer.Start(context.Background(), "work")
	if out := TraceOf(ctx); !out.IsValid() || out.IsSampled() || TraceID(ctx) != out.TraceID().String() {
		t.Errorf("a new trace is %v", out)
	}
	if err := tracer.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
}

// TestTracer sends spans to a collector that reads the real wire format.
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
	r := &Redactor{}
	tracer, err := NewTracer(context.Background(), &OTLPConfig{Endpoint: srv.URL + "/", ServiceName: "test", Headers: map[string]Secret{"X-Auth": canary}}, "v1", r)
	if err != nil {
		t.Fatal(err)
	}
	in := ParseTrace(parent, "vendor=1")
	ctx, span := tracer.Start(WithTrace(context.Background(), in), "call "+canary)
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
	if out := TraceOf(inner); out.TraceID() != in.TraceID() || out.TraceState().String() != "vendor=1" || !out.IsSampled() {
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
	if strings.Contains(text, canary) || strings.Count(text, Redacted) < 5 {
		t.Errorf("spans:\n%s", text)
	}
	spans := req.ResourceSpans[0].ScopeSpans[0].Spans
	if len(spans) != 2 || hex.EncodeToString(spans[0].TraceId) != in.TraceID().String() || hex.EncodeToString(spans[1].ParentSpanId) != in.SpanID().String() {
		t.Errorf("%d spans: %v", len(spans), spans)
	}
}

func TestTracerSampling(t *testing.T) {
	none := 0.0
	tracer, err := NewTracer(context.Background(), &OTLPConfig{Endpoint: "http://127.0.0.1:1/custom/path", SampleRatio: &none}, "v1", nil)
	if err != nil {
		t.Fatal(err)
	}
	in := ParseTrace(strings.TrimSuffix(parent, "1")+"0", "not a state")
	ctx, span := tracer.Start(WithTrace(context.Background(), in), "x")
	if out := TraceOf(ctx); span.IsRecording() || out.TraceID() != in.TraceID() {
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

func TestNewID(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := NewID()
		if len(id) != 26 || strings.Trim(id, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") != "" || seen[id] {
			t.Fatalf("id %q", id)
		}
		seen[id] = true
	}
	last := map[byte]bool{}
	for id := range seen {
		last[id[25]] = true
	}
	if len(last) < 16 {
		t.Errorf("the last letter is one of %d", len(last))
	}
}
