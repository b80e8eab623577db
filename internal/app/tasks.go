package app

import (
	"context"
	"encoding/json"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
	"junctor/internal/waiting"
)

// resumeTask waits for a server's task whose call another process made: its
// caller was allowed to make it then.
func (a *App) resumeTask(ctx context.Context, r *waiting.Record, ask func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)) (tool.Result, error) {
	caller := tool.Caller{ID: r.Caller, Name: r.CallerName}
	raw, err := a.executor.Forward(tool.WithCaller(ctx, caller), tool.Forward{
		Face: r.Face, Caller: caller, Session: r.Session, Server: r.Task.Server, Method: mcp.MethodTasksResult,
		Params:   rawjson.SetField(nil, rawjson.AppendQuoted(nil, r.Task.ID), "taskId"),
		Exchange: tool.Exchange{Resume: true, Ask: ask, TaskStatus: func(status tool.TaskStatus) { waiting.From(ctx).SetMessage(ctx, status.Message) }, Capabilities: json.RawMessage(`{"elicitation":{"form":{},"url":{}},"sampling":{}}`)},
	})
	return tool.Result{Raw: raw, IsError: string(rawjson.Field(raw, "isError")) == "true"}, err
}
