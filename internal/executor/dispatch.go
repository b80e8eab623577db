package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/tool"
)

// retryDelay is the pause before the only retry: long enough to reconnect,
// short enough for a user who is waiting.
const retryDelay = 500 * time.Millisecond

var (
	errIdleTimeout  = errors.New("no response or progress")
	errTotalTimeout = errors.New("not finished")
)

// dispatch sends the request to the upstream and waits for the response, within
// the upstream's idle and total timeouts. The call's own timeout replaces the
// idle timeout.
func (x *Executor) dispatch(ctx context.Context, f *callRun, req tool.Request) (json.RawMessage, error) {
	server := f.name.Server
	idle, total := x.Upstreams.Timeouts(server)
	whose := "the server's timeoutMs"
	if f.call.Timeout > 0 {
		idle, whose = f.call.Timeout, "the timeout of the call"
	}
	waiting, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	t := newTimeouts(
		idle, func() { cancel(fmt.Errorf("%w within %s (%s)", errIdleTimeout, idle, whose)) },
		total, func() { cancel(fmt.Errorf("%w within %s (the server's maxTimeoutMs)", errTotalTimeout, total)) })
	defer t.stop()
	t.watch(&req.Exchange, x)
	req.Exchange.Repaired = func() { f.stage("repaired") }
	raw, err := x.Upstreams.Do(waiting, server, req)
	if err == nil {
		return raw, nil
	}
	return nil, explain(ctx, waiting, f.name, err)
}

// explain converts an error of an upstream into a *tool.Error.
func explain(caller, waiting context.Context, n tool.Name, err error) error {
	what := n.Server
	if n.Tool != "" {
		what = n.String()
	}
	switch cause := context.Cause(waiting); {
	case caller.Err() != nil:
		return &tool.Error{Kind: tool.Canceled, Msg: fmt.Sprintf("the call of %s was cancelled", what)} // the cause would only repeat it
	case errors.Is(cause, errIdleTimeout), errors.Is(cause, errTotalTimeout):
		return &tool.Error{Kind: tool.Timeout, Msg: fmt.Sprintf("%s did not answer: %s", what, cause), Err: err}
	}
	if wire, ok := errors.AsType[*mcp.Error](err); ok {
		return &tool.Error{Kind: kindOfWire(wire), Msg: fmt.Sprintf("%s answered with an error: %s", n.Server, wire.Message), Err: err, Details: wireDetails(wire)}
	}
	if known, ok := errors.AsType[*tool.Error](err); ok {
		return known
	}
	return &tool.Error{Kind: tool.UpstreamFailed, Msg: fmt.Sprintf("the connection to %s failed during the call", n.Server), Err: err}
}

// kindOfWire distinguishes errors caused by the request from others.
func kindOfWire(e *mcp.Error) tool.Kind {
	switch e.Code {
	case mcp.CodeInvalidParams:
		return tool.InvalidArguments
	case mcp.CodeMethodNotFound:
		return tool.MethodNotFound
	}
	return tool.UpstreamFailed
}

func wireDetails(e *mcp.Error) any {
	details := map[string]any{"code": e.Code}
	if len(e.Data) > 0 {
		details["data"] = e.Data
	}
	return details
}

// outcomeOf returns the effect of a dispatch on the circuit. An upstream that
// rejects a request is healthy. Calls to an upstream that is known to be down
// do not open the circuit: they fail immediately anyway, and the first call
// after it has recovered must reach it.
func outcomeOf(err error) outcome {
	if errors.Is(err, tool.ErrDown) {
		return inconclusive
	}
	if wire, ok := errors.AsType[*mcp.Error](err); ok && wire.Code == mcp.CodeURLElicitation {
		return succeeded // the tool works, but the user must open a URL first
	}
	switch tool.KindOf(err) {
	case "", tool.InvalidArguments, tool.MethodNotFound:
		return succeeded
	case tool.UpstreamFailed, tool.Timeout:
		return failed
	}
	return inconclusive
}

// transient reports whether a retry may succeed: the connection broke, as
// opposed to an error response, a timeout or an upstream known to be down.
func transient(err error) bool {
	if tool.KindOf(err) != tool.UpstreamFailed || errors.Is(err, tool.ErrDown) {
		return false
	}
	_, answered := errors.AsType[*mcp.Error](err)
	return !answered
}

// sleep waits for d. It reports false if ctx is done first.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
