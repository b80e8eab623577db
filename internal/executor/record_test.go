package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

func TestRecordMarksRepairedResult(t *testing.T) {
	r := newFixture(t)
	r.do = func(_ context.Context, _ string, req tool.Request) (json.RawMessage, error) {
		req.Exchange.Repaired()
		return json.RawMessage(`{"content":[]}`), nil
	}
	if _, err := r.Call(t.Context(), call("fs:write", `{}`)); err != nil {
		t.Fatal(err)
	}
	if stages := r.only(t).Stages.String(); !strings.Contains(stages, "repaired") {
		t.Errorf("stages = %s", stages)
	}
}

func TestPanicIsRecordedOnce(t *testing.T) {
	r := newFixture(t)
	r.do = func(context.Context, string, tool.Request) (json.RawMessage, error) { panic("boom") }
	_, err := r.Call(t.Context(), call("write", `{}`))
	if tool.KindOf(err) != tool.Internal || strings.Contains(tool.AsError(err).Msg, "boom") {
		t.Errorf("error = %v", err)
	}
	if rec := r.only(t); rec.Kind != "INTERNAL" || !strings.Contains(rec.Error, "boom") {
		t.Errorf("record = %+v", rec)
	}
	r.records = nil
	f := tool.Forward{Face: "test", Caller: tool.Local, Server: "fs", Method: "resources/list"}
	if _, err := r.Forward(t.Context(), f); tool.KindOf(err) != tool.Internal {
		t.Errorf("Forward error = %v", err)
	}
	r.only(t)
}

func TestUnwrittenRecordIsLogged(t *testing.T) {
	r := newFixture(t)
	r.broken = errors.New("disk full")
	if _, err := r.Call(t.Context(), call("write", `{}`)); err != nil {
		t.Errorf("Call = %v", err)
	}
	if !strings.Contains(r.out.String(), "disk full") {
		t.Errorf("the log does not say that the record is missing: %s", r.out.String())
	}
}

func TestRedactionAndExcerpts(t *testing.T) {
	r := newFixture(t, func(o *Options) {
		o.Redact = func(b json.RawMessage) json.RawMessage {
			return bytes.ReplaceAll(b, []byte("s3cret"), []byte("[redacted]"))
		}
		o.Config.Limits.MaxRecordBytes = 64
	})
	r.do = func(context.Context, string, tool.Request) (json.RawMessage, error) {
		return json.RawMessage(`{"content":[{"type":"text","text":"` + strings.Repeat("s3cret ", 100) + `"}]}`), nil
	}
	if _, err := r.Call(t.Context(), call("write", `{"k":"s3cret"}`)); err != nil {
		t.Fatal(err)
	}
	rec := r.only(t)
	if strings.Contains(string(rec.Arguments)+string(rec.Result), "s3cret") {
		t.Errorf("a secret is in the record: %s %s", rec.Arguments, rec.Result)
	}
	if !json.Valid(rec.Result) || len(rec.Result) > 140 || !strings.Contains(string(rec.Result), "bytes in all") {
		t.Errorf("excerpt = %s", rec.Result)
	}
	if got := r.excerpt(json.RawMessage(`not json`), 0); string(got) != `"not json"` {
		t.Errorf("excerpt of no JSON = %s", got)
	}
}

func TestCallerTraceIDIsUsed(t *testing.T) {
	r := newFixture(t)
	var seen string
	r.do = func(ctx context.Context, _ string, _ tool.Request) (json.RawMessage, error) {
		seen = telemetry.TraceID(ctx)
		return json.RawMessage(`{}`), nil
	}
	parent := telemetry.ParseTrace("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "")
	if _, err := r.Call(telemetry.WithTrace(t.Context(), parent), call("write", `{}`)); err != nil {
		t.Fatal(err)
	}
	const want = "0af7651916cd43dd8448eb211c80319c"
	if rec := r.only(t); rec.TraceID != want || seen != want {
		t.Errorf("the record has trace %q, the upstream saw %q", rec.TraceID, seen)
	}
}

type meter struct {
	seen     []string
	circuits []string
	open     int
}

func (m *meter) Circuit(server, name string, state int) {
	m.circuits = append(m.circuits, fmt.Sprintf("%s:%s %d", server, name, state))
}

func (m *meter) Begin() func() { m.open++; return func() { m.open-- } }
func (m *meter) Call(face, server, name, status, kind string, _ time.Duration) {
	m.seen = append(m.seen, fmt.Sprintf("%s %s %s %s %s", face, server, name, status, kind))
}

func TestMeterCountsCalls(t *testing.T) {
	m := &meter{}
	r := newFixture(t, func(o *Options) { o.Meter = m })
	r.Call(t.Context(), call("write", `{}`))
	r.Call(t.Context(), call("nope", `{}`))
	if got := fmt.Sprintf("%q", m.seen); got != `["test fs write ok " "test   failed TOOL_NOT_FOUND"]` || m.open != 0 {
		t.Errorf("counted %s", got)
	}
}

// TestRecordSharesNoLentMemory: a record outlives its call, but the pooled
// memory of the result does not.
func TestRecordSharesNoLentMemory(t *testing.T) {
	r := newFixture(t, func(o *Options) { o.Config.Limits.MaxRecordBytes = 1 << 20 })
	result := `{"content":[{"type":"text","text":"` + strings.Repeat("x", 100_000) + `"}]}`
	r.do = func(_ context.Context, _ string, req tool.Request) (json.RawMessage, error) {
		return append(req.Exchange.Memory.Get(len(result)), result...), nil
	}
	c := call("fs:write", `{}`)
	c.Exchange.Memory = new(tool.ResultMemory)
	got, err := r.Call(t.Context(), c)
	if err != nil || !c.Exchange.Memory.Lent() {
		t.Fatalf("lent %v, %v", c.Exchange.Memory.Lent(), err)
	}
	clear(got.Raw)
	if rec := r.only(t); string(rec.Result) != result {
		t.Errorf("the record has %.80q…", rec.Result)
	}
}
