package executor

import (
	"context"
	"encoding/json"
	"fmt"

	"junctor/internal/results"
	"junctor/internal/tool"
)

// checkSelect returns an error if the call's select is not a valid expression,
// so that the call fails before the tool runs.
func checkSelect(call *tool.Call) error {
	if call.Select == "" {
		return nil
	}
	if err := results.Check(call.Select); err != nil {
		return &tool.Error{Kind: tool.InvalidArguments, Err: err, Msg: fmt.Sprintf("select %q is not valid: %s. The tool was not called", tool.Shorten(call.Select, 200), tool.Shorten(err.Error(), 300))}
	}
	return nil
}

// fit returns the part of a result that is sent to the caller: what the rules
// of the tool and then the caller select, truncated to the size limit.
func (x *Executor) fit(ctx context.Context, f *callRun, result tool.Result) (tool.Result, error) {
	if !result.IsError && f.rule != "" {
		selected, err := results.Selected(ctx, f.rule, result.Raw)
		if err != nil {
			f.x.Log.WarnContext(ctx, "select of toolRules not applied", "tool", f.name.String(), "err", err)
		} else {
			result.Raw = selected
		}
	}
	if !result.IsError && f.call.Select != "" {
		selected, err := results.Selected(ctx, f.call.Select, result.Raw)
		if err != nil {
			return tool.Result{}, x.selectFailed(f, result.Raw, err)
		}
		result.Raw = selected
	}
	result.Raw = x.keepAndTruncate(f, result.Raw)
	return result, nil
}

// selectFailed stores the whole result and adds its id to the error, so that
// the tool need not run again.
func (x *Executor) selectFailed(f *callRun, raw json.RawMessage, err error) error {
	e := *tool.AsError(err)
	if id := x.Results.Keep(f.call.Caller.View(), results.Text(results.Value(raw))); id != "" {
		e.Msg += fmt.Sprintf(". The tool has run; its result is stored: read_result of the server junctor with {\"id\":%q}", id)
	}
	return &e
}

// keepAndTruncate stores a result that is larger than the limit and returns a
// truncated one.
func (x *Executor) keepAndTruncate(f *callRun, raw json.RawMessage) json.RawMessage {
	limit := f.cfg.Limits.MaxResultBytes
	if limit <= 0 || len(raw) <= limit {
		return raw
	}
	id := x.Results.Keep(f.call.Caller.View(), results.Text(results.Value(raw)))
	return truncateResult(raw, limit, id)
}
