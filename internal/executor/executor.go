package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"junctor/internal/catalog"
	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/results"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// Catalog provides the current tools.
type Catalog interface {
	Snapshot() *catalog.Snapshot
}

// Upstreams sends requests to servers.
type Upstreams interface {
	// Do sends one request to the upstream and returns its result.
	Do(ctx context.Context, server string, req tool.Request) (json.RawMessage, error)

	// Await waits until the first connection of each named upstream (of all
	// upstreams if none is named) has succeeded or failed, at most for the
	// upstream's start timeout. It returns those that are still pending.
	Await(ctx context.Context, servers ...string) (pending []string)

	// Connecting returns the upstreams that are making their first
	// connection.
	Connecting() []string

	// Timeouts returns the idle timeout and the total timeout of calls to the
	// upstream.
	Timeouts(server string) (idle, total time.Duration)
}

// CallLog stores the records of calls.
type CallLog interface {
	Append(ctx context.Context, c store.Call) error
}

// Meter counts calls.
type Meter interface {
	// Begin counts a call as in progress until end is called.
	Begin() (end func())
	// Call counts a finished call. server and tool are empty if the tool
	// does not exist.
	Call(face, server, tool, status, kind string, took time.Duration)
	// Circuit records the state of a tool's circuit.
	Circuit(server, tool string, state int)
}

// Approvals requests approvals in the inbox, where people other than the user
// of the calling client can answer.
type Approvals interface {
	// Allowed reports whether an earlier approval applies to the call.
	Allowed(ctx context.Context, call *tool.Call, e *catalog.Entry) bool

	// Ask waits for a person's answer. It returns waiting.ErrNoApprover if no
	// one can answer, and waiting.ErrExpired on timeout. If client is not nil,
	// it asks the user of the calling client at the same time.
	Ask(ctx context.Context, call *tool.Call, e *catalog.Entry, client func(context.Context) (bool, error)) (allow bool, reason string, err error)

	// Answered records what the user of the calling client answered.
	Answered(ctx context.Context, call *tool.Call, e *catalog.Entry, allow bool)

	// Timeout returns how long Ask waits for an answer.
	Timeout() time.Duration
}

// Options are the settings and dependencies of an Executor.
type Options struct {
	Catalog   Catalog
	Upstreams Upstreams
	Calls     CallLog
	Meter     Meter
	Approvals Approvals                             // nil: only the user of the calling client is asked
	Redact    func(json.RawMessage) json.RawMessage // applied before the call log; nil changes nothing
	Tracer    *telemetry.Tracer                     // nil traces nothing
	Log       *slog.Logger
	Node      string         // names this process in records
	Closed    bool           // calls that cannot be recorded fail; otherwise they are served anyway
	Budgets   Budgets        // shares rate limits with other processes; nil if there are none
	Tokens    TokenStore     // counts the tokens of models; nil counts none
	Results   *results.Cache // stores results over the limit; nil stores none
	// StoreTimeout bounds how long a call waits for its share of a budget.
	StoreTimeout time.Duration
	Config       Config
}

// Executor executes calls. It is safe for concurrent use.
type Executor struct {
	Options
	cfg      atomic.Pointer[Config]
	breakers breakers
	limits   limiter
	inFlight atomic.Int64

	stopping context.Context // cancelled by StopWaiting
	stop     context.CancelCauseFunc
}

// New returns an Executor; it starts nothing.
func New(o Options) *Executor {
	if o.Redact == nil {
		o.Redact = func(raw json.RawMessage) json.RawMessage { return raw }
	}
	if o.Meter == nil {
		o.Meter = (*telemetry.Metrics)(nil) // counts nothing
	}
	o.Log = o.Log.With(telemetry.KeyComponent, "executor")
	x := &Executor{Options: o}
	x.limits.budgets, x.limits.timeout = o.Budgets, o.StoreTimeout
	x.stopping, x.stop = context.WithCancelCause(context.Background())
	x.SetConfig(o.Config)
	return x
}

// StopWaiting cancels all pending and future approvals and questions of
// servers to users, because the answer might not arrive before the gateway
// stops. Calls that wait for a server continue.
func (x *Executor) StopWaiting() { x.stop(tool.ErrStopping) }

// stoppable returns a context that StopWaiting cancels, for waiting for a
// person.
func (x *Executor) stoppable(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(x.stopping, func() { cancel(tool.ErrStopping) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// SetConfig changes circuits and limits for calls that begin from now on.
func (x *Executor) SetConfig(cfg Config) { x.cfg.Store(&cfg) }

// CurrentConfig returns the settings in effect.
func (x *Executor) CurrentConfig() Config { return *x.cfg.Load() }

// Stats returns the call statistics of a tool in this process.
func (x *Executor) Stats(n tool.Name) Stats {
	if b := x.breakers.peek(n); b != nil {
		return b.snapshot(x.cfg.Load().Circuit, time.Now())
	}
	return Stats{Circuit: Closed}
}

// countCircuitChange reports the new state of a tool's circuit to the Meter.
func (x *Executor) countCircuitChange(n tool.Name) {
	state := telemetry.CircuitClosed
	if x.Stats(n).Circuit != Closed {
		state = telemetry.CircuitOpen
	}
	x.Meter.Circuit(n.Server, n.Tool, state)
}

// InFlight returns the number of calls in flight.
func (x *Executor) InFlight() int { return int(x.inFlight.Load()) }

// NewID returns a correlation id.
func NewID() string { return telemetry.NewID() }

// Call executes a tool and returns its result. An error has a *tool.Error
// in its chain, and is marked by [tool.Recorded] if the call log has the call. A
// tool's own error is a result.
func (x *Executor) Call(ctx context.Context, call tool.Call) (result tool.Result, err error) {
	f, ctx := x.begin(ctx, mcp.MethodToolsCall, call, call.Arguments, call.Meta)
	defer f.end(&result, &err)
	result, err = x.execute(ctx, f)
	if err == nil {
		result, err = x.fit(ctx, f, result)
	}
	return result, err
}

// Forward sends an MCP request other than tools/call to its server and returns
// the result as received, except that a list of tools is filtered by the
// caller's rights. A tools/call is an error: it must pass the checks of Call.
func (x *Executor) Forward(ctx context.Context, r tool.Forward) (json.RawMessage, error) {
	var result tool.Result
	var err error
	func() {
		call := tool.Call{RequestID: r.RequestID, Face: r.Face, Caller: r.Caller, Session: r.Session, Server: r.Server, Exchange: r.Exchange}
		f, ctx := x.begin(ctx, r.Method, call, r.Params, rawjson.Field(r.Params, "_meta"))
		defer f.end(&result, &err)
		result.Raw, err = x.forward(ctx, f)
	}()
	return result.Raw, err
}

// execute runs all steps of a tool call except recording it.
func (x *Executor) execute(ctx context.Context, f *callRun) (tool.Result, error) {
	if err := x.recordable(ctx, f); err != nil {
		return tool.Result{}, err
	}
	entry, err := x.resolve(ctx, f)
	if err != nil {
		return tool.Result{}, err
	}
	f.name, f.rule = entry.Original.Name, entry.Select // the name used by rules, circuits and records
	f.stage("resolve")
	if err := checkSelect(&f.call); err != nil {
		return tool.Result{}, err
	}
	if err := checkUnambiguous(f.call.Params); err != nil {
		return tool.Result{}, err
	}
	if err := checkArguments(&f.call); err != nil {
		return tool.Result{}, err
	}
	if len(entry.Warnings()) > 0 { // the record contains the tool's warnings
		f.stage("flagged")
	}
	if entry.Review.Changed {
		f.stage("changed")
	}

	if !entry.Enabled {
		return tool.Result{}, &tool.Error{Kind: tool.ToolDisabled, Msg: fmt.Sprintf("tool %s is disabled: %s", entry.Name, entry.Reason)}
	}
	if !entry.UI.Allows(f.call.Origin) {
		return tool.Result{}, notVisibleError(f.call.Origin, entry.Name)
	}
	if err := x.limits.allow(&f.call.Caller, f.name, f.cfg.Limits); err != nil {
		return tool.Result{}, err
	}
	circuit := x.breakers.get(f.name)
	if wait := circuit.refuses(f.cfg.Circuit, f.last); wait > 0 { // before requesting approval
		return tool.Result{}, circuitOpen(entry.Name, circuit.snapshot(f.cfg.Circuit, time.Now()), wait)
	}
	f.stage("policy")

	arguments, err := entry.Complete(f.call.Arguments)
	if err != nil {
		return tool.Result{}, err
	}
	checked, err := validate(ctx, entry, f.call.Arguments)
	if err != nil {
		return tool.Result{}, err
	}
	f.stage(checked)
	if err := x.approve(ctx, entry, &f.call); err != nil {
		return tool.Result{}, err
	}
	if needsApproval(entry, &f.call.Caller) {
		f.stage("approve")
	}

	admitted, wait := circuit.admit(f.cfg.Circuit, f.last)
	if wait > 0 {
		return tool.Result{}, circuitOpen(entry.Name, circuit.snapshot(f.cfg.Circuit, time.Now()), wait)
	}
	how := inconclusive
	dispatched := f.last
	defer func() {
		if circuit.done(f.cfg.Circuit, admitted, how, f.last, f.last.Sub(dispatched)) {
			x.countCircuitChange(f.name)
		}
	}()
	sent := f.call
	sent.Arguments = arguments
	request := tool.Request{
		Method: mcp.MethodToolsCall, Params: f.withTrace(params(f.name.Tool, &sent)), Caller: f.call.Caller.ID, Exchange: f.call.Exchange,
	}
	raw, err := x.dispatch(ctx, f, request)
	if transient(err) && entry.Annotations.Repeatable() && sleep(ctx, retryDelay) {
		f.stage("retry")
		raw, err = x.dispatch(ctx, f, request)
	}
	f.stage("dispatch")
	how = outcomeOf(err)
	if err != nil {
		return tool.Result{}, err
	}
	result := tool.Result{Raw: raw, IsError: mcp.ResultIsError(raw)}
	if result.IsError {
		how = reported
	}
	return result, nil
}

func (x *Executor) forward(ctx context.Context, f *callRun) (json.RawMessage, error) {
	if err := x.recordable(ctx, f); err != nil {
		return nil, err
	}
	server := f.call.Server
	if f.method == mcp.MethodToolsCall {
		return nil, &tool.Error{Kind: tool.InvalidRequest, Msg: "a tools/call cannot be forwarded unchecked"}
	}
	if err := x.Permit(&f.call.Caller, server, f.method); err != nil {
		return nil, err
	}
	f.name.Server = server
	f.stage("policy")
	raw, err := x.dispatch(ctx, f, tool.Request{
		Method: f.method, Params: f.withTrace(f.input), Caller: f.call.Caller.ID, Exchange: f.call.Exchange,
	})
	f.stage("dispatch")
	if err == nil && f.method == mcp.MethodToolsList {
		raw = permitted(x.Catalog.Snapshot(), &f.call.Caller, server, raw)
	}
	return raw, err
}

// Permit returns an error if the caller may not send the server a message of
// this method, and counts the message against the caller's rate limit. Forward
// checks requests with it; APIs check notifications.
func (x *Executor) Permit(caller *tool.Caller, server, method string) error {
	if !caller.MaySee(server) {
		return x.Catalog.Snapshot().ServerNotFoundError(caller, server)
	}
	if !mayForward(caller, server, method) {
		return &tool.Error{Kind: tool.Denied, Msg: fmt.Sprintf(
			"this key is limited to tools that do not cover %[2]s of %[1]s; a key with the tool glob %[1]s:%[2]s, or %[1]s:*, may use it", server, tool.Shorten(method, 80))}
	}
	return x.limits.allow(caller, tool.Name{}, x.cfg.Load().Limits)
}

// mayForward reports whether the caller may send a request other than a tool
// call. A caller that is restricted to some tools does not get all resources,
// prompts and methods of their server: its globs must match the method's name.
// Lists of tools are filtered, and methods without content are allowed.
func mayForward(c *tool.Caller, server, method string) bool {
	switch method {
	case mcp.MethodToolsList, mcp.MethodPing, mcp.MethodSetLevel:
		return true
	}
	return c.MayUse(tool.Name{Server: server, Tool: method})
}
