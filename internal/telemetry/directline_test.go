package telemetry

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"math"
	"testing"
	"time"
)

// TestDirectLinesAreThoseOfSlog: a line encoded by appendLine equals that of
// slog's own handler, and text that needs escaping is left to slog.
func TestDirectLinesAreThoseOfSlog(t *testing.T) {
	now := time.Date(2026, 11, 15, 22, 30, 1, 120_000_000, time.FixedZone("", 3600))
	attrs := []slog.Attr{slog.String("tool", "a b"), slog.Int("n", -3), slog.Uint64("u", 7), slog.Bool("ok", true),
		slog.Float64("tookMs", 0.25), slog.Float64("zero", 0), slog.Float64("whole", 12), slog.Float64("small", 1e-6), slog.String("empty", "")}
	bound := []slog.Attr{slog.String("component", "executor"), slog.Int("node", 2)}
	var got, want bytes.Buffer
	lines := newLines(&got, nil, slog.LevelDebug).WithAttrs(bound)
	plain := slog.NewJSONHandler(&want, nil).WithAttrs(bound)
	for _, level := range []slog.Level{slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		rec := slog.NewRecord(now, level, "call done", 0)
		rec.AddAttrs(attrs...)
		if err := plain.Handle(t.Context(), rec); err != nil {
			t.Fatal(err)
		}
		if done, err := lines.(attrHandler).handleAttrs(now, level, "call done", attrs); !done || err != nil {
			t.Fatalf("not written directly: %v", err)
		}
	}
	if got.String() != want.String() {
		t.Errorf("lines\n%s\nwant\n%s", &got, &want)
	}
	got.Reset()
	for _, a := range []slog.Attr{
		slog.String("quote", `a"b`), slog.String("slash", `a\b`), slog.String("line", "a\nb"), slog.String("umlaut", "ä"), slog.String("delete", "\x7f"),
		slog.String("", "x"), slog.Float64("tiny", 1e-7), slog.Float64("huge", 1e21), slog.Float64("nan", math.NaN()), slog.Float64("inf", math.Inf(1)),
		slog.Any("any", []int{1}), slog.Group("g", slog.Int("n", 1)), slog.Time("at", now),
	} {
		if done, _ := lines.(attrHandler).handleAttrs(now, slog.LevelInfo, "x", []slog.Attr{a}); done {
			t.Errorf("%v was written directly", a)
		}
		if done, _ := lines.WithAttrs([]slog.Attr{a}).(attrHandler).handleAttrs(now, slog.LevelInfo, "x", nil); done {
			t.Errorf("with %v bound a line was written directly", a)
		}
	}
	for _, derived := range []slog.Handler{lines.WithGroup("g"), lines.WithGroup("g").WithAttrs(bound)} {
		if done, _ := derived.(attrHandler).handleAttrs(now, slog.LevelInfo, "x", nil); done {
			t.Error("a line in a group was written directly")
		}
	}
	if got.Len() > 0 {
		t.Errorf("refused lines left %q", &got)
	}
}

// TestTimesAreThoseOfSlog: times in any order and zone are formatted as by
// slog.
func TestTimesAreThoseOfSlog(t *testing.T) {
	begin := time.Date(2026, 12, 31, 23, 59, 58, 0, time.UTC)
	zones := []*time.Location{time.UTC, time.FixedZone("", 3600), time.FixedZone("x", -12600), time.Local}
	var text timeText
	for _, after := range []time.Duration{0, 1, 10, 999_999_999, time.Second, time.Second + 120*time.Millisecond, 2 * time.Second, 5 * time.Millisecond, -time.Hour} {
		for _, zone := range zones {
			at := begin.Add(after).In(zone)
			want := at.Format(time.RFC3339Nano)
			for range 2 {
				if got, ok := text.append(nil, at); !ok || string(got) != want {
					t.Errorf("%s, %v; want %s", got, ok, want)
				}
			}
		}
	}
	for _, at := range []time.Time{{}, time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(-1, 1, 1, 0, 0, 0, 0, time.UTC)} {
		if _, ok := text.append(nil, at); ok {
			t.Errorf("%v was written", at)
		}
	}
}

// BenchmarkCallLine writes the log line of a call like the executor.
func BenchmarkCallLine(b *testing.B) {
	log := NewLogger(LogOptions{Output: NewLineBuffer(io.Discard), Format: FormatJSON, Redactor: &Redactor{}, Recent: NewRing[LogEntry](100)}).With(KeyComponent, "executor")
	ctx := WithTrace(WithRequest(context.Background(), NewID()), newTrace())
	b.ReportAllocs()
	for b.Loop() {
		line := slog.NewRecord(time.Now(), slog.LevelInfo, "call done", 0)
		line.AddAttrs(slog.String(KeyAction, "tools/call"), slog.String("face", "mcp"), slog.String("caller", "key:abc"),
			slog.String("server", "github"), slog.String("tool", "list_issues"), slog.Duration("took", 1234567), slog.String("status", "ok"))
		_ = log.Handler().Handle(ctx, line)
	}
}
