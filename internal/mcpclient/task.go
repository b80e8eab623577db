package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// The poll interval of a task if the server specifies none, and the bounds of
// the one that it may specify.
const (
	pollInterval = time.Second
	minPoll      = 50 * time.Millisecond
	maxPoll      = 10 * time.Second
)

// TaskID returns the id of the task that a server created for a call, or "" if
// the result is not a task.
func TaskID(result json.RawMessage) string {
	if id := rawjson.FieldString(result, "task", "taskId"); id != "" {
		return id
	}
	if rawjson.FieldString(result, "resultType") == "task" {
		return rawjson.FieldString(result, "taskId")
	}
	return ""
}

// AwaitTask waits for the task that the server created for a call, in either
// era, and returns its result. Questions of the task go to the caller. When ctx
// is done the task is cancelled, unless the gateway is stopping: then another
// process may wait for it.
func (c *Client) AwaitTask(ctx context.Context, r tool.Request, created json.RawMessage) (json.RawMessage, error) {
	w := &taskWait{c: c, r: r, id: TaskID(created)}
	result, err := w.wait(ctx, created)
	stopping := errors.Is(err, tool.ErrStopping) || errors.Is(context.Cause(ctx), tool.ErrStopping)
	if err != nil && !w.over && !stopping && c.Err() == nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		if _, lost := w.request(ctx, mcp.MethodTasksCancel, nil); lost != nil {
			c.log.DebugContext(ctx, "cannot cancel the task", "err", lost)
		}
	}
	return result, err
}

// taskWait is the state of AwaitTask for one task.
type taskWait struct {
	c    *Client
	r    tool.Request
	id   string
	over bool // the task has ended
	last tool.TaskStatus
}

// request sends a request about the task.
func (w *taskWait) request(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	params = rawjson.SetField(params, rawjson.AppendQuoted(nil, w.id), "taskId")
	own := tool.Request{Method: method, Params: params, Caller: w.r.Caller}
	if method == mcp.MethodTasksResult { // a server of the handshake era asks questions during it
		own.Exchange = w.r.Exchange
	}
	return w.c.round(ctx, own, params)
}

func (w *taskWait) wait(ctx context.Context, task json.RawMessage) (json.RawMessage, error) {
	handshake := !w.c.stateless.Load()
	if handshake {
		task = rawjson.Field(task, "task")
	}
	asked := map[string]bool{} // keys of questions that were answered
	poll := pollInterval
	for {
		status := rawjson.FieldString(task, "status")
		switch status {
		case "completed", "failed", "cancelled":
			w.over = true
		}
		w.report(status, task)
		switch {
		case handshake && (w.over || status == "input_required"):
			// tasks/result blocks until the end of the task.
			return w.request(ctx, mcp.MethodTasksResult, nil)
		case status == "completed":
			if result := rawjson.Field(task, "result"); result != nil {
				return result, nil
			}
			if rawjson.FieldString(task, "resultType") == "task" { // the response to the call; tasks/get returns the result
				break
			}
			return nil, &tool.Error{Kind: tool.UpstreamFailed, Msg: "the server completed its task without a result"}
		case status == "failed" && rawjson.FieldString(task, "resultType") != "task":
			return nil, taskError(task)
		case status == "cancelled":
			return nil, &tool.Error{Kind: tool.UpstreamFailed, Msg: "the server cancelled the task"}
		case status == "input_required":
			if err := w.answer(ctx, rawjson.Field(task, "inputRequests"), asked); err != nil {
				return nil, err
			}
		}
		poll = pollOf(task, poll)
		select {
		case <-time.After(poll):
		case <-w.c.done:
			return nil, w.c.closedError(w.c.Err())
		case <-ctx.Done():
			return nil, w.c.callError(ctx, ctx.Err())
		}
		var err error
		if task, err = w.request(ctx, mcp.MethodTasksGet, nil); err != nil {
			return nil, err
		}
		if notify := w.r.Exchange.Notify; notify != nil {
			notify(mcp.MethodProgress, nil) // without a token: it only extends the idle timeout of the call
		}
	}
}

// maxStatusMessage bounds the message of a task's status, in characters.
const maxStatusMessage = 500

// report reports a new status of the task to the caller.
func (w *taskWait) report(status string, task json.RawMessage) {
	s := tool.TaskStatus{Status: status, Message: tool.Shorten(rawjson.FieldString(task, "statusMessage"), maxStatusMessage)}
	if w.over || s == w.last || w.r.Exchange.TaskStatus == nil || status != "working" && status != "input_required" {
		return
	}
	w.last = s
	w.r.Exchange.TaskStatus(s)
}

// answer asks the caller the new questions and sends its answers to the server.
func (w *taskWait) answer(ctx context.Context, requests json.RawMessage, asked map[string]bool) error {
	responses, err := w.c.askInputs(ctx, w.r, requests, asked)
	if err != nil || responses == nil {
		return err
	}
	_, err = w.request(ctx, mcp.MethodTasksUpdate, rawjson.SetField(nil, responses, "inputResponses"))
	return err
}

// taskError returns the error of a task of the stateless era that failed.
func taskError(task json.RawMessage) error {
	e := rawjson.Field(task, "error")
	code, err := strconv.Atoi(string(rawjson.Field(e, "code")))
	if message := rawjson.FieldString(e, "message"); err == nil && message != "" {
		return &mcp.Error{Code: code, Message: message, Data: rawjson.Field(e, "data")}
	}
	msg := "the server's task failed"
	if message := rawjson.FieldString(task, "statusMessage"); message != "" {
		msg += ": " + printable(message)
	}
	return &tool.Error{Kind: tool.UpstreamFailed, Msg: msg, Err: errors.New("no error in the task")}
}

// pollOf returns the poll interval that the server requests, or before if it
// requests none.
func pollOf(task json.RawMessage, before time.Duration) time.Duration {
	for _, key := range []string{"pollIntervalMs", "pollInterval"} {
		if ms, err := strconv.ParseInt(string(rawjson.Field(task, key)), 10, 32); err == nil {
			return min(max(time.Duration(ms)*time.Millisecond, minPoll), maxPoll)
		}
	}
	return before
}
