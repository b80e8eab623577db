package agentify

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcptrace"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// methodOrchestrate is the method of tasks from editors.
const methodOrchestrate = "agentify/orchestrateTask"

// Outcome is the outcome of a task.
type Outcome struct {
	Plan    *Plan           `json:"plan"`
	Result  json.RawMessage `json:"result,omitempty"`  // the unchanged result of the server; absent with dryRun
	IsError bool            `json:"isError,omitempty"` // the server reported an error
	Steps   []Step          `json:"steps,omitempty"`   // only if explain was requested
}

// Request describes how a task is executed: for which caller, and how the call
// communicates with it.
type Request struct {
	ID       string // correlation id; may be empty
	Caller   tool.Caller
	Session  string
	Meta     json.RawMessage // the _meta object to forward; may be nil
	Exchange tool.Exchange
	OnStep   func(Step) // called for every step; may be nil
}

// Do plans the task and, unless it is a dry run, makes the call. An error is
// a *tool.Error; a tool's own error is a result.
func (f *Face) Do(ctx context.Context, t Task, r Request) (Outcome, error) {
	if err := r.Caller.PermitChat(); err != nil {
		return Outcome{}, err
	}
	select {
	case f.slots <- struct{}{}:
		defer func() { <-f.slots }()
	default:
		return Outcome{}, &tool.Error{Kind: tool.RateLimited, Msg: fmt.Sprintf("%d tasks are already in progress; wait for one to finish", maxTasks), RetryAfter: time.Second}
	}
	if r.ID != "" {
		ctx = telemetry.WithRequest(ctx, r.ID)
	}
	f.opts.Trace.Step(mcptrace.Incoming, methodOrchestrate, r.Caller.ID, t, nil)
	out, err := f.do(ctx, t, r)
	if err != nil {
		f.opts.Trace.Step(mcptrace.Outgoing, methodOrchestrate, r.Caller.ID, nil, err)
		return Outcome{}, err
	}
	f.opts.Trace.Step(mcptrace.Outgoing, methodOrchestrate, r.Caller.ID, out.Result, nil)
	return out, nil
}

func (f *Face) do(ctx context.Context, t Task, r Request) (Outcome, error) {
	j := &job{face: f, task: t, caller: r.Caller, begun: time.Now(), onStep: r.OnStep}
	plan, err := j.plan(ctx)
	if err != nil {
		if ctx.Err() != nil {
			err = &tool.Error{Kind: tool.Canceled, Msg: "the task was cancelled", Err: err}
		}
		f.log.InfoContext(ctx, "task not planned", telemetry.KeyAction, "plan", "caller", r.Caller.ID, "took", time.Since(j.begun), "kind", tool.KindOf(err), "err", err)
		return Outcome{}, err
	}
	f.log.InfoContext(ctx, "task planned", telemetry.KeyAction, "plan", "caller", r.Caller.ID, "took", time.Since(j.begun),
		"backend", plan.BackendID, "method", plan.Method, "tool", plan.name.Tool, "dryRun", t.DryRun)
	out := Outcome{Plan: plan}
	if !t.DryRun {
		if err = j.execute(ctx, &out, r); err != nil {
			return Outcome{}, err
		}
	}
	if t.Explain {
		out.Steps = j.steps
	}
	return out, nil
}

// execute makes the planned call.
func (j *job) execute(ctx context.Context, out *Outcome, r Request) error {
	p := out.Plan
	r.Exchange.PassInput = false // a retry with the input would repeat the planning
	var err error
	if p.Method == mcp.MethodToolsCall {
		var result tool.Result
		result, err = j.face.opts.Calls.Call(ctx, tool.Call{
			RequestID: r.ID, Face: "agentify", Caller: r.Caller, Session: r.Session, Server: p.BackendID, Tool: p.name.Tool,
			Arguments: p.arguments, Meta: r.Meta, Exchange: r.Exchange,
		})
		out.Result, out.IsError = result.Raw, result.IsError
	} else {
		out.Result, err = j.face.opts.Calls.Forward(ctx, tool.Forward{
			RequestID: r.ID, Face: "agentify", Caller: r.Caller, Session: r.Session, Server: p.BackendID,
			Method: p.Method, Params: p.Params, Exchange: r.Exchange,
		})
	}
	switch {
	case err != nil:
		j.step(mcptrace.Incoming, "call", map[string]any{"error": tool.AsError(err).Msg, "code": tool.KindOf(err)})
	case out.IsError:
		j.step(mcptrace.Incoming, "call", map[string]any{"isError": true, "bytes": len(out.Result)})
	default:
		j.step(mcptrace.Incoming, "call", map[string]any{"bytes": len(out.Result)})
	}
	return err
}
