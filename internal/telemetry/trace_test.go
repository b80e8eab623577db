package telemetry

import (
	"context"
	"net/http"
	"strings"
	"testing"
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

// TestNoTracer: without a collector the trace context is still propagated.
func TestNoTracer(t *testing.T) {
	var tracer *Tracer
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
