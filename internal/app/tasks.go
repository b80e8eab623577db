package app

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/results"
	"junctor/internal/store"
	"junctor/internal/tool"
	"junctor/internal/waiting"
)

// resumeTask waits for a server's task whose call was made by another process,
// where the caller was authorized. It is canceled when the caller's key is
// revoked or expires. The caller's other rights are not recorded, so it is
// limited to the task's server.
func (a *App) resumeTask(ctx context.Context, r *waiting.Record, ask func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)) (tool.Result, error) {
	caller := tool.Caller{ID: r.Caller, Name: r.CallerName, Servers: []string{r.Task.Server}}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go a.cancelWithKey(ctx, r.Caller, cancel)
	raw, err := a.executor.Forward(tool.WithCaller(ctx, caller), tool.Forward{
		Face: r.Face, Caller: caller, Session: r.Session, Server: r.Task.Server, Method: mcp.MethodTasksResult,
		Params:   rawjson.SetField(nil, rawjson.AppendQuoted(nil, r.Task.ID), "taskId"),
		Exchange: tool.Exchange{Resume: true, Ask: ask, TaskStatus: func(status tool.TaskStatus) { waiting.From(ctx).SetMessage(ctx, status.Message) }, Capabilities: json.RawMessage(`{"elicitation":{"form":{},"url":{}},"sampling":{}}`)},
	})
	if cause := context.Cause(ctx); err != nil && errors.Is(cause, tool.ErrCredentialEnded) {
		err = &tool.Error{Kind: tool.Unauthenticated, Msg: cause.Error(), Err: cause}
	}
	if err != nil {
		return tool.Result{}, err
	}
	return a.selectByRule(ctx, r.Tool, tool.Result{Raw: raw, IsError: string(rawjson.Field(raw, "isError")) == "true"}), nil
}

// cancelWithKey calls cancel when the caller's key is revoked or expires. It
// returns then or when ctx is done.
func (a *App) cancelWithKey(ctx context.Context, caller string, cancel context.CancelCauseFunc) {
	changed := a.store.Watch(ctx, store.TopicKeys)
	for {
		var again <-chan time.Time // set unless only a change of the keys matters
		k, found, err := a.keyOf(ctx, caller)
		switch {
		case err != nil:
			again = time.After(keyRetry)
		case !found:
			return // not a stored key
		case !k.Valid(time.Now()):
			cancel(tool.ErrCredentialEnded)
			return
		case !k.Expires.IsZero():
			again = time.After(time.Until(k.Expires))
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-again:
		}
	}
}

// keyRetry is the delay after a failed attempt to read a caller's key.
const keyRetry = 5 * time.Second

// selectByRule returns the part of a tool's result that the rules select, or
// the whole result if the selection cannot be applied.
func (a *App) selectByRule(ctx context.Context, name string, result tool.Result) tool.Result {
	n, err := tool.ParseName(name)
	if err != nil {
		return result
	}
	e := a.catalog.Snapshot().Lookup(n)
	if e == nil || e.Select == "" || result.IsError {
		return result
	}
	selected, err := results.Selected(ctx, e.Select, result.Raw)
	if err != nil {
		a.log.WarnContext(ctx, "select of toolRules not applied", "tool", name, "err", err)
		return result
	}
	result.Raw = selected
	return result
}
