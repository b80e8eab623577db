package discovery

import (
	"context"
	"encoding/json"
	"strconv"
	"sync"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
	"junctor/internal/waiting"
)

// taskSupport returns a tool's definition in the direct view with the task
// support for clients of 2025-11-25: any call can be a task. If the server
// requires tasks, so does the definition for clients that declare tasks. Other
// clients must be able to call the tool, so the gateway waits for them.
func (f *Face) taskSupport(r *mcpserver.Request, definition json.RawMessage) json.RawMessage {
	if f.opts.Waiting == nil || r.Stateless() || r.Protocol < mcp.Version20251125 {
		return definition
	}
	declares := rawjson.Field(r.Exchange.Capabilities, "tasks") != nil
	if required := rawjson.FieldString(definition, "execution", "taskSupport") == "required"; required == declares {
		return definition
	}
	return rawjson.SetField(definition, json.RawMessage(`"optional"`), "execution", "taskSupport")
}

// execute executes a tool call of the direct or meta view, as a task if the
// client supports that.
func (f *Face) execute(ctx context.Context, r *mcpserver.Request, call tool.Call) (json.RawMessage, error) {
	asked := rawjson.Field(r.Params, "task")
	if asked != nil && call.Params != nil { // not meant for the server
		call.Params = rawjson.DeleteField(call.Params, "task")
	}
	switch {
	case f.opts.Waiting == nil:
	case r.Stateless():
		if rawjson.Field(r.Exchange.Capabilities, "extensions", mcp.ExtensionTasks) != nil {
			return f.runTask(ctx, r, call, false)
		}
	case rawjson.IsObject(asked):
		return f.runTask(ctx, r, call, true)
	}
	result, err := f.opts.Calls.Call(ctx, call)
	return result.Raw, err
}

// taskRun is a call that is or may become a task.
type taskRun struct {
	face   *Face
	r      *mcpserver.Request
	ttl    time.Duration
	cancel context.CancelCauseFunc
	unlink func() bool // detaches the call from the request

	mu      sync.Mutex
	record  *waiting.Call // nil until it is a task
	started chan struct{} // closed when record is set

	announced func() // waits until the task's end has been announced
}

// begin makes the call a task, which continues after the request.
func (t *taskRun) begin(ctx context.Context, name string, kept tool.ServerTask) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.record != nil {
		return nil
	}
	record, err := t.face.opts.Waiting.Start(ctx, waiting.StartOptions{
		Caller: t.r.Caller, Face: "discovery", Session: sessionID(t.r), Tool: name, TTL: t.ttl, Task: kept,
	})
	if err != nil {
		return err
	}
	t.unlink()
	t.record, t.announced = record, t.face.announceTask(ctx, t.r.Session, record.ID())
	close(t.started)
	go func() {
		select {
		case <-record.Cancelled():
			t.cancel(waiting.ErrCancelled)
		case <-ctx.Done():
		}
	}()
	return nil
}

func (t *taskRun) task() *waiting.Call {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.record
}

// runTask executes a call. With immediate it is a task from the start,
// otherwise once the server makes it one.
func (f *Face) runTask(ctx context.Context, r *mcpserver.Request, call tool.Call, immediate bool) (json.RawMessage, error) {
	running, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	t := &taskRun{face: f, r: r, cancel: cancel, started: make(chan struct{})}
	if ms, err := strconv.ParseInt(string(rawjson.Field(r.Params, "task", "ttl")), 10, 40); err == nil && ms > 0 {
		t.ttl = min(time.Duration(ms)*time.Millisecond, waiting.MaxTTL)
	}
	t.unlink = context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	name := call.Tool
	if call.Server != "" {
		name = call.Server + ":" + call.Tool
	}
	if immediate {
		if err := t.begin(running, name, tool.ServerTask{}); err != nil {
			cancel(nil)
			return nil, err
		}
		call.Exchange.Notify = nil // the request that accepted notifications has been answered
		call.Exchange.Task = func(kept tool.ServerTask) { t.task().SetTask(running, kept) }
	} else {
		call.Exchange.Task = func(kept tool.ServerTask) {
			if err := t.begin(running, name, kept); err != nil {
				cancel(err)
			}
		}
	}
	call.Exchange.TaskStatus = func(status tool.TaskStatus) {
		if record := t.task(); record != nil {
			record.SetMessage(running, status.Message)
		}
	}
	if ask := call.Exchange.Ask; ask != nil {
		call.Exchange.Ask = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			record := t.task()
			if record == nil {
				return ask(ctx, method, params)
			}
			in, err := record.Ask(ctx, waiting.Input{Kind: method, Params: params})
			return in.Answer, err
		}
	}
	forget := tool.OnCredentialEnd(ctx, func() { cancel(tool.ErrCredentialEnded) })
	type outcome struct {
		result tool.Result
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		result, err := f.opts.Calls.Call(running, call)
		if record := t.task(); record != nil {
			if kept := record.Finish(running, result, err); kept != nil {
				f.log.WarnContext(running, "cannot store the result of a task yet; retrying", "err", kept)
			}
			t.announced()
		}
		forget()
		cancel(nil)
		done <- outcome{result, err}
	}()
	select {
	case <-t.started:
	case o := <-done:
		if t.task() == nil {
			return o.result.Raw, o.err
		}
	}
	record, err := f.opts.Waiting.Get(ctx, t.task().ID())
	if err != nil {
		return nil, err
	}
	if r.Stateless() {
		return rawjson.SetField(taskOf(&record, true), json.RawMessage(`"task"`), "resultType"), nil
	}
	return rawjson.SetField(nil, taskOf(&record, false), "task"), nil
}
