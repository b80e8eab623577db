package executor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/trace"

	"junctor/internal/rawjson"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// recordTimeout bounds how long a call waits for its record to be committed.
const recordTimeout = 10 * time.Second

// callRun is the state of one call in flight.
type callRun struct {
	x       *Executor
	ctx     context.Context
	call    tool.Call       // without tool and arguments for a forwarded request
	method  string          // the MCP method
	input   json.RawMessage // for the record: the arguments, or the params of a forwarded request
	cfg     *Config
	name    tool.Name // as resolved; empty until then
	begun   time.Time
	last    time.Time
	stages  store.Stages
	span    telemetry.Span
	trace   trace.SpanContext // the trace context sent to the upstream; zero if the call is not traced
	endCall func()
	within  lateContext // for committing the record

	rule    string // the select of the tool's rules; empty for none
	refused bool   // calls cannot be recorded now, so this one was refused without a record
}

// callKey is the key under which a context has the callContext of the call that
// is being executed.
type callKey struct{}

// callContext is the context of a call.
type callContext struct {
	context.Context
	id string // of the call
}

// Value implements context.Context.
func (c *callContext) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// begin starts a call. meta is the _meta that the caller sent with it.
func (x *Executor) begin(ctx context.Context, method string, call tool.Call, input, meta json.RawMessage) (*callRun, context.Context) {
	if call.Caller.ID == "" { // an API that does not set the caller gets no rights
		call.Caller = tool.Anonymous
	}
	call.ID = NewID()
	call.RequestID = cmp.Or(call.RequestID, telemetry.RequestID(ctx))
	if outer, ok := ctx.Value(callKey{}).(*callContext); ok {
		call.Parent = cmp.Or(call.Parent, outer.id)
	}
	ctx = &callContext{Context: ctx, id: call.ID}
	now := time.Now()
	f := &callRun{
		x: x, call: call, method: method, input: input, cfg: x.cfg.Load(), begun: now, last: now,
		stages: make(store.Stages, 0, 6), endCall: x.Meter.Begin(),
	}
	x.inFlight.Add(1)
	if c := tool.CallerFrom(ctx); c.View() != call.Caller.View() || c.Admin != call.Caller.Admin {
		ctx = tool.WithCaller(ctx, call.Caller) // the caller's context may not contain it
	}
	ctx = telemetry.WithRequest(ctx, cmp.Or(call.RequestID, call.ID))
	if call.Session != "" {
		ctx = telemetry.WithSession(ctx, call.Session)
	}
	if !telemetry.TraceOf(ctx).IsValid() {
		if parent := callerTrace(meta); parent.IsValid() {
			ctx = telemetry.WithTrace(ctx, parent)
		}
	}
	f.trace = telemetry.TraceOf(ctx)
	ctx, f.span = x.Tracer.Start(ctx, method)
	if x.Tracer != nil {
		f.trace = telemetry.TraceOf(ctx)
	}
	f.ctx = ctx
	return f, ctx
}

// stage records the end of a stage.
func (f *callRun) stage(name string) {
	now := time.Now()
	took := now.Sub(f.last)
	f.stages = append(f.stages, store.Stage{Name: name, Took: took})
	f.last = now
	if f.x.Log.Enabled(f.ctx, slog.LevelDebug) {
		f.x.Log.DebugContext(f.ctx, "call step", "step", name, "server", f.call.Server, "tool", f.call.Tool, "took", took)
	}
}

// end records the call and must be deferred, so that it runs however the call
// ends. A panic becomes an internal error, so that it does not affect other
// calls. The record is committed before the caller gets the result.
func (f *callRun) end(result *tool.Result, err *error) {
	if p := recover(); p != nil {
		*result = tool.Result{}
		*err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
	}
	if *err != nil {
		*err = tool.AsError(*err)
	}
	lost := f.record(*result, *err)
	if *err != nil && lost == nil {
		*err = tool.Recorded(*err)
	}
	if lost != nil && f.x.Closed && *err == nil {
		*result, *err = tool.Result{}, &tool.Error{
			Kind: tool.Unavailable, RetryAfter: storeRetryDelay, Err: lost,
			Msg: "the call was carried out, but could not be recorded, so its result is withheld (store.whenAway is closed); check its effect before you try again",
		}
	}
	f.x.inFlight.Add(-1)
}

// storeRetryDelay is the RetryAfter of calls that are refused because the store is
// unavailable.
const storeRetryDelay = 2 * time.Second

// recordable returns an error if calls must be recorded and the call log is
// known to be unavailable. It is checked before the call has any effect.
func (x *Executor) recordable(ctx context.Context, f *callRun) error {
	if !x.Closed {
		return nil
	}
	log, ok := x.Calls.(interface{ Available(context.Context) error })
	if !ok {
		return nil
	}
	err := log.Available(ctx)
	if err == nil {
		return nil
	}
	if ctx.Err() != nil { // the caller cancelled the call
		return ctx.Err()
	}
	f.refused = true
	return &tool.Error{
		Kind: tool.Unavailable, RetryAfter: storeRetryDelay, Err: err,
		Msg: "calls cannot be recorded now, so no call is carried out (store.whenAway is closed); try again shortly",
	}
}

// record commits the call's record and writes its log line. A non-nil error
// means that there is no record.
func (f *callRun) record(result tool.Result, err error) (lost error) {
	now := time.Now()
	took := now.Sub(f.begun)
	rec := store.Call{
		ID: f.call.ID, RequestID: f.call.RequestID, Parent: f.call.Parent, Time: f.begun, Duration: took, Face: f.call.Face,
		Caller: f.call.Caller.ID, CallerName: f.call.Caller.Name, Session: f.call.Session,
		Server: f.name.Server, Tool: f.name.Tool, Method: f.method,
		Status: store.StatusOK, Node: f.x.Node, Stages: f.stages, TraceID: telemetry.TraceID(f.ctx),
	}
	if rec.Tool == "" { // not resolved: record the names that the caller sent
		rec.Server, rec.Tool = f.requested()
	}
	switch {
	case err != nil:
		e := tool.AsError(err)
		rec.Status, rec.Kind = store.StatusFailed, string(e.Kind)
		rec.Error = string(f.x.Redact([]byte(e.Error())))
	case result.IsError:
		rec.Status, rec.Kind = store.StatusError, string(tool.ExecutionFailed)
	}
	rec.Arguments = f.x.excerpt(f.input, f.cfg.Limits.MaxRecordBytes)
	rec.Result = f.x.excerpt(result.Raw, f.cfg.Limits.MaxRecordBytes)
	if f.call.Exchange.Memory.Lent() {
		rec.Result = bytes.Clone(rec.Result)
	}
	rec.ArgBytes, rec.ResultBytes = len(f.input), len(result.Raw)

	ctx := f.ctx // may be cancelled; logging ignores that
	if f.refused {
		lost = err
	} else if lost = f.append(now, rec); lost != nil {
		f.x.Log.ErrorContext(ctx, "call not recorded", "err", lost)
	}
	f.endCall()
	f.x.Meter.Call(f.call.Face, f.name.Server, f.name.Tool, string(rec.Status), rec.Kind, took)
	f.endSpan(rec)
	if rec.Status == store.StatusFailed {
		f.x.Log.WarnContext(ctx, "call failed", telemetry.KeyAction, rec.Method, "face", rec.Face, "caller", rec.Caller,
			"server", rec.Server, "tool", rec.Tool, "took", took, "kind", rec.Kind, "err", rec.Error)
		return lost
	}
	if log := f.x.Log.Handler(); log.Enabled(ctx, slog.LevelInfo) {
		line := slog.NewRecord(now, slog.LevelInfo, "call done", 0) // without the source line that a Logger would look up
		line.AddAttrs(slog.String(telemetry.KeyAction, rec.Method), slog.String("face", rec.Face), slog.String("caller", rec.Caller),
			slog.String("server", rec.Server), slog.String("tool", rec.Tool), slog.Duration("took", took), slog.String("status", string(rec.Status)))
		_ = log.Handle(ctx, line) // a failed log write cannot be reported
	}
	return lost
}

// requested returns the server and the tool as the caller named them. The server
// is empty if the caller named none.
func (f *callRun) requested() (server, name string) {
	if server = f.call.Server; server != "" {
		return server, strings.TrimPrefix(f.call.Tool, server+":")
	}
	if n, err := tool.ParseName(f.call.Tool); err == nil {
		return n.Server, n.Tool
	}
	return "", f.call.Tool
}

// append commits the record within recordTimeout, even if the call was
// cancelled.
func (f *callRun) append(now time.Time, rec store.Call) error {
	f.within.Context, f.within.deadline = context.WithoutCancel(f.ctx), now.Add(recordTimeout)
	defer f.within.stop()
	return f.x.Calls.Append(&f.within, rec)
}

func (f *callRun) endSpan(rec store.Call) {
	if f.span.IsRecording() {
		f.span.Set("mcp.method.name", rec.Method)
		f.span.Set("mcp.server", rec.Server)
		f.span.Set("gen_ai.tool.name", rec.Tool)
		f.span.Set("junctor.face", rec.Face)
		f.span.Set("junctor.request_id", rec.ID)
		f.span.Set("junctor.status", string(rec.Status))
	}
	if rec.Status != store.StatusOK {
		f.span.Fail(rec.Kind)
	}
	f.span.End()
}

// excerpt returns raw as stored in the call log: redacted and, if it is longer
// than limit, cut to its beginning as a JSON string.
func (x *Executor) excerpt(raw json.RawMessage, limit int) json.RawMessage {
	if len(bytes.TrimSpace(raw)) == 0 {
		return nil
	}
	if limit > 0 && len(raw) > limit {
		// Truncate before redacting, so that large values are not redacted as a
		// whole. The margin keeps a secret at the cut recognizable.
		cut := x.Redact(raw[:min(len(raw), limit+1024)])
		cut = cut[:min(len(cut), limit)]
		if !utf8.Valid(cut) { // usually because the last character was cut
			cut = bytes.ToValidUTF8(cut, nil)
		}
		quoted := rawjson.AppendQuotedBytes(make([]byte, 0, len(cut)+len(cut)/8+64), cut)
		return fmt.Appendf(quoted[:len(quoted)-1], `… (%d bytes in all)"`, len(raw))
	}
	clean := x.Redact(raw)
	if !utf8.Valid(clean) { // refused arguments; a record must be readable by strict clients
		clean = bytes.ToValidUTF8(clean, []byte("\uFFFD"))
	}
	if !rawjson.Valid(clean) { // the API passed invalid JSON
		b, _ := json.Marshal(string(clean))
		return b
	}
	return clean
}
