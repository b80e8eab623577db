package executor

import (
	"context"

	"junctor/internal/mcp"
	"junctor/internal/tool"
)

// Group executes work of the gateway itself, such as a script, that the caller
// requested as a tool call. It is recorded as a call of call.Server and
// call.Tool, and is the parent of the calls made with its context. The work
// receives the call as recorded, and must check the caller's rights itself.
func (x *Executor) Group(ctx context.Context, call tool.Call, work func(context.Context, *tool.Call) (tool.Result, error)) (result tool.Result, err error) {
	f, ctx := x.begin(ctx, mcp.MethodToolsCall, call, call.Arguments, call.Meta)
	defer f.end(&result, &err)
	f.name = tool.Name{Server: call.Server, Tool: call.Tool}
	if err := x.recordable(ctx, f); err != nil {
		return tool.Result{}, err
	}
	if err := x.limits.allow(&f.call.Caller, f.name, f.cfg.Limits); err != nil {
		return tool.Result{}, err
	}
	result, err = work(ctx, &f.call)
	f.stage("run")
	return result, err
}
