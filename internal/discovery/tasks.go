package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/mcpserver"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
	"junctor/internal/waiting"
)

// Tasks of the direct and meta views have ids of the gateway and are records
// of package waiting. The gateway executes the call and, if the server makes
// it a task, waits for that task.
//
// In the handshake era a client requests a task with a call. In the stateless
// era a call becomes a task if the server makes it one and the client declares
// the extension.

// taskPoll is the poll interval suggested to clients.
const taskPoll = time.Second

// tasksIn returns the capabilities of a view, including tasks.
func (f *Face) tasksIn(capabilities string, r *mcpserver.Request) json.RawMessage {
	out := json.RawMessage(capabilities)
	switch {
	case f.opts.Waiting == nil:
		return out
	case r.Stateless():
		return rawjson.SetField(out, json.RawMessage(`{}`), "extensions", mcp.ExtensionTasks)
	}
	return rawjson.SetField(out, json.RawMessage(`{"cancel":{},"list":{},"requests":{"tools":{"call":{}}}}`), "tasks")
}

// taskOf returns a record as a task in the format of an era, without its
// result.
func taskOf(r *waiting.Record, modern bool) json.RawMessage {
	status := r.Status
	if status == waiting.InputRequired && !hasOpenQuestions(r) {
		status = waiting.Working // all questions are answered
	}
	task := map[string]any{
		"taskId": r.ID, "status": status,
		"createdAt": r.Created.UTC().Format(time.RFC3339Nano), "lastUpdatedAt": r.Updated.UTC().Format(time.RFC3339Nano),
	}
	if r.Message != "" {
		task["statusMessage"] = r.Message
	}
	ttl, poll := "ttl", "pollInterval"
	if modern {
		ttl, poll = "ttlMs", "pollIntervalMs"
	}
	task[ttl] = max(r.Expires.Sub(r.Created), time.Second).Milliseconds()
	task[poll] = taskPoll.Milliseconds()
	return marshal(task)
}

// hasOpenQuestions reports whether a task has questions that are not answered.
func hasOpenQuestions(r *waiting.Record) bool {
	return slices.ContainsFunc(r.Inputs, func(in waiting.Input) bool { return in.Answer == nil })
}

// serveTasks handles the task methods of the direct and meta views.
func (f *Face) serveTasks(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	if f.opts.Waiting == nil {
		return nil, noMethod(r.Method)
	}
	if r.Stateless() {
		switch r.Method {
		case mcp.MethodTasksList, mcp.MethodTasksResult:
			return nil, noMethod(r.Method)
		}
		if rawjson.Field(r.Exchange.Capabilities, "extensions", mcp.ExtensionTasks) == nil {
			return nil, mcp.MissingTasksExtension()
		}
	}
	id := rawjson.FieldString(r.Params, "taskId")
	switch r.Method {
	case mcp.MethodTasksList:
		return f.listTasks(ctx, r)
	case mcp.MethodTasksGet:
		record, err := f.ownTask(ctx, r, id)
		if err != nil {
			return nil, err
		}
		return detailed(&record, r.Stateless()), nil
	case mcp.MethodTasksResult:
		return f.taskResult(ctx, r, id)
	case mcp.MethodTasksUpdate:
		return f.updateTask(ctx, r, id)
	case mcp.MethodTasksCancel:
		return f.cancelTask(ctx, r, id)
	}
	return nil, noMethod(r.Method)
}

var errNoTask = &mcp.Error{Code: mcp.CodeInvalidParams, Message: "there is no such task"}

// ownTask returns a task if it is the caller's.
func (f *Face) ownTask(ctx context.Context, r *mcpserver.Request, id string) (waiting.Record, error) {
	if !waiting.IsID(id) {
		return waiting.Record{}, errNoTask
	}
	record, err := f.opts.Waiting.Get(ctx, id)
	if errors.Is(err, waiting.ErrNotFound) || err == nil && !record.MadeBy(&r.Caller) {
		return waiting.Record{}, errNoTask
	}
	return record, err
}

// detailed returns a task as the result of tasks/get.
func detailed(r *waiting.Record, modern bool) json.RawMessage {
	task := taskOf(r, modern)
	if !modern {
		return task
	}
	switch r.Status {
	case waiting.Completed:
		return rawjson.SetField(task, r.Result, "result")
	case waiting.Failed:
		return rawjson.SetField(task, marshal(wireError(r)), "error")
	case waiting.InputRequired:
		if !hasOpenQuestions(r) {
			return task
		}
		requests := json.RawMessage(`{}`)
		for _, in := range r.Inputs {
			if in.Answer != nil {
				continue
			}
			question := rawjson.SetField(nil, marshal(in.Kind), "method")
			if in.Params != nil {
				question = rawjson.SetField(question, in.Params, "params")
			}
			requests = rawjson.SetField(requests, question, in.ID)
		}
		return rawjson.SetField(task, requests, "inputRequests")
	}
	return task
}

// wireError returns the error of a failed task.
func wireError(r *waiting.Record) *mcp.Error {
	e := &mcp.Error{Code: tool.Internal.JSONRPC(), Message: "the task failed"}
	if r.Error != nil {
		e.Code, e.Message = r.Error.Code.JSONRPC(), r.Error.Message
	}
	return e
}

func (f *Face) listTasks(ctx context.Context, r *mcpserver.Request) (json.RawMessage, error) {
	records, err := f.opts.Waiting.List(ctx, func(w *waiting.Record) bool { return w.MadeBy(&r.Caller) && w.Face == "discovery" })
	if err != nil {
		return nil, err
	}
	tasks := make([]json.RawMessage, len(records))
	for i := range records {
		tasks[i] = taskOf(&records[i], false)
	}
	return marshal(map[string]any{"tasks": tasks}), nil
}

// taskResult waits for the end of a task and returns its result. Meanwhile it
// forwards the task's questions to the client.
func (f *Face) taskResult(ctx context.Context, r *mcpserver.Request, id string) (json.RawMessage, error) {
	for {
		record, err := f.ownTask(ctx, r, id)
		if err != nil {
			return nil, err
		}
		switch {
		case record.Status == waiting.Completed:
			return rawjson.SetField(record.Result, marshal(map[string]string{"taskId": id}), "_meta", "io.modelcontextprotocol/related-task"), nil
		case record.Status == waiting.Failed:
			return nil, wireError(&record)
		case record.Status == waiting.Cancelled:
			return nil, &tool.Error{Kind: tool.Canceled, Msg: "the task was cancelled"}
		}
		if err := f.askAbout(ctx, r, &record); err != nil {
			return nil, err
		}
		if _, err := f.opts.Waiting.Await(ctx, id, record.Version); err != nil && !errors.Is(err, waiting.ErrNotFound) {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// askAbout asks a client of the handshake era the open questions of a task.
func (f *Face) askAbout(ctx context.Context, r *mcpserver.Request, record *waiting.Record) error {
	for _, in := range record.Inputs {
		if in.Answer != nil || in.Kind == waiting.KindApproval || r.Exchange.Ask == nil {
			continue
		}
		answer, err := r.Exchange.Ask(ctx, in.Kind, rawjson.SetField(in.Params, marshal(map[string]string{"taskId": record.ID}), "_meta", "io.modelcontextprotocol/related-task"))
		if err != nil {
			return err
		}
		if err := f.answerTask(ctx, r, record.ID, in.ID, answer); err != nil {
			return err
		}
	}
	return nil
}

// answerTask answers a question of a task. As MCP specifies, it ignores
// questions that are unknown or already answered.
func (f *Face) answerTask(ctx context.Context, r *mcpserver.Request, id, input string, answer json.RawMessage) error {
	_, err := f.opts.Waiting.Answer(ctx, id, input, r.Caller, answer, func(w *waiting.Record, in *waiting.Input) error {
		if !w.MadeBy(&r.Caller) || in.Kind == waiting.KindApproval {
			return waiting.ErrAnswered
		}
		return nil
	})
	if errors.Is(err, waiting.ErrAnswered) {
		return nil
	}
	return err
}

func (f *Face) updateTask(ctx context.Context, r *mcpserver.Request, id string) (json.RawMessage, error) {
	if _, err := f.ownTask(ctx, r, id); err != nil {
		return nil, err
	}
	for key, answer := range rawjson.Members(rawjson.Field(r.Params, "inputResponses")) {
		if key == "" {
			continue
		}
		if err := f.answerTask(ctx, r, id, key, answer); err != nil {
			return nil, err
		}
	}
	return json.RawMessage(`{}`), nil
}

func (f *Face) cancelTask(ctx context.Context, r *mcpserver.Request, id string) (json.RawMessage, error) {
	if _, err := f.ownTask(ctx, r, id); err != nil {
		return nil, err
	}
	record, err := f.opts.Waiting.Cancel(ctx, id, func(*waiting.Record) error { return nil })
	ended := errors.Is(err, waiting.ErrAnswered)
	switch {
	case err != nil && !ended:
		return nil, err
	case r.Stateless():
		return json.RawMessage(`{}`), nil
	case ended:
		return nil, &mcp.Error{Code: mcp.CodeInvalidParams, Message: "the task has ended"}
	}
	return taskOf(&record, false), nil
}
