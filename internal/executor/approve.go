package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"junctor/internal/catalog"
	"junctor/internal/mcp"
	"junctor/internal/tool"
	"junctor/internal/waiting"
)

// needsApproval reports whether a rule of the tool or a profile of the caller
// requires approval of the call.
func needsApproval(e *catalog.Entry, caller *tool.Caller) bool {
	return e.Approval == catalog.AskApproval || caller.NeedsApproval(e.Original.Name)
}

// approve waits for a person's approval if one is required: from the user of
// the calling client if the client supports that, otherwise from the inbox.
func (x *Executor) approve(ctx context.Context, e *catalog.Entry, call *tool.Call) error {
	if !needsApproval(e, &call.Caller) {
		return nil
	}
	if x.Approvals != nil && x.Approvals.Allowed(ctx, call, e) {
		return nil
	}
	var client func(context.Context) (bool, error)
	if approve := call.Exchange.Approve; approve != nil {
		client = func(ctx context.Context) (bool, error) { return approve(ctx, e.Name, call.Arguments) }
	} else if call.Exchange.Ask != nil && waiting.From(ctx) == nil && canElicit(call.Exchange.Capabilities) {
		// The questions of a call with a waiting record are answered by the
		// caller itself, which may be a model, so its approval goes to the
		// inbox.
		client = func(ctx context.Context) (bool, error) {
			return x.elicitApproval(ctx, call.Exchange.Ask, e.Name, call.Arguments)
		}
	}
	reason, ask := "", client
	switch {
	case x.Approvals == nil:
	case client == nil, call.Exchange.ApproveInInbox:
		ask = func(ctx context.Context) (yes bool, err error) {
			yes, reason, err = x.Approvals.Ask(ctx, call, e, client)
			return yes, err
		}
	default:
		ask = func(ctx context.Context) (bool, error) {
			yes, err := client(ctx)
			if err == nil {
				x.Approvals.Answered(ctx, call, e, yes)
			}
			return yes, err
		}
	}
	if ask == nil {
		return noApproverError(e)
	}
	waitCtx, cancel := x.stoppable(ctx)
	defer cancel()
	if await := call.Exchange.AwaitPerson; await != nil {
		defer await()()
	}
	yes, err := ask(waitCtx)
	if err != nil {
		return x.approvalError(waitCtx, e, err)
	}
	if !yes && reason != "" {
		return &tool.Error{Kind: tool.Denied, Msg: fmt.Sprintf("the call of %s was not approved: %s", e.Name, reason), Details: map[string]any{"reason": reason}}
	}
	if !yes {
		return &tool.Error{Kind: tool.Denied, Msg: fmt.Sprintf("the call of %s was not approved", e.Name)}
	}
	return x.checkStillApproved(ctx, e, call)
}

func noApproverError(e *catalog.Entry) error {
	return &tool.Error{
		Kind: tool.Denied,
		Msg: fmt.Sprintf("tool %s requires approval, and this client cannot be asked; call it from the chat or from a client with elicitation, keep the page open as an administrator to approve it there, or set \"approval\": \"auto\" for it in toolRules",
			e.Name),
	}
}

// approvalError returns the error of a call whose approval was not answered.
func (x *Executor) approvalError(ctx context.Context, e *catalog.Entry, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), tool.ErrStopping):
		return &tool.Error{
			Kind: tool.Unavailable, RetryAfter: storeRetryDelay, Err: tool.ErrStopping,
			Msg: fmt.Sprintf("the gateway is stopping before the call of %s was approved; the call was not made. Call the tool again when the gateway has restarted", e.Name),
		}
	case errors.Is(err, waiting.ErrNoApprover):
		return noApproverError(e)
	case errors.Is(err, waiting.ErrCancelled):
		return &tool.Error{Kind: tool.Canceled, Msg: fmt.Sprintf("the call of %s was cancelled before it was approved", e.Name), Err: err}
	case errors.Is(err, waiting.ErrExpired):
		return &tool.Error{Kind: tool.Denied, Msg: fmt.Sprintf("tool %s requires approval, and nobody answered within %s; call it again when somebody can answer", e.Name, x.Approvals.Timeout()), Err: err}
	}
	return &tool.Error{Kind: tool.Denied, Msg: fmt.Sprintf("tool %s requires approval, but no answer came", e.Name), Err: err}
}

// checkStillApproved returns an error if the call must not be made although it
// was approved: its client has disconnected, or the tool has changed since the
// approval was requested.
func (x *Executor) checkStillApproved(ctx context.Context, e *catalog.Entry, call *tool.Call) error {
	if err := ctx.Err(); err != nil {
		return &tool.Error{Kind: tool.Canceled, Msg: fmt.Sprintf("the call of %s was cancelled before it was approved", e.Name), Err: err}
	}
	now := x.Catalog.Snapshot().Lookup(e.Name)
	if now == e {
		return nil
	}
	if now == nil || !now.Enabled || !now.UsableBy(&call.Caller) || now.Fingerprint() != e.Fingerprint() {
		return &tool.Error{Kind: tool.Denied, Msg: fmt.Sprintf("tool %s was changed, disabled or removed while the call waited for approval; call it again", e.Name)}
	}
	return nil
}

func canElicit(capabilities json.RawMessage) bool {
	var c struct {
		Elicitation *struct {
			Form *json.RawMessage `json:"form"`
			URL  *json.RawMessage `json:"url"`
		} `json:"elicitation"`
	}
	if json.Unmarshal(capabilities, &c) != nil || c.Elicitation == nil {
		return false
	}
	return c.Elicitation.Form != nil || c.Elicitation.URL == nil // neither means form
}

// maxShownArguments bounds the arguments shown in an approval request, in
// bytes.
const maxShownArguments = 2000

func (x *Executor) elicitApproval(ctx context.Context, ask func(context.Context, string, json.RawMessage) (json.RawMessage, error), n tool.Name, arguments json.RawMessage) (bool, error) {
	if x.Approvals != nil {
		limited, cancel := context.WithTimeoutCause(ctx, x.Approvals.Timeout(), waiting.ErrExpired)
		defer cancel()
		ctx = limited
	}
	shown := string(arguments)
	if len(shown) > maxShownArguments {
		shown = strings.ToValidUTF8(shown[:maxShownArguments], "") + "…"
	}
	params, err := json.Marshal(map[string]any{
		"message": fmt.Sprintf("Run the tool %s with %s?", n, shown),
		"requestedSchema": map[string]any{
			"type":       "object",
			"properties": map[string]any{},
		},
	})
	if err != nil {
		return false, err
	}
	raw, err := ask(ctx, mcp.MethodElicit, params)
	if err != nil && errors.Is(context.Cause(ctx), waiting.ErrExpired) {
		err = waiting.ErrExpired
	}
	if err != nil {
		return false, err
	}
	var answer struct {
		Action string `json:"action"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		return false, fmt.Errorf("answer to the approval: %w", err)
	}
	return answer.Action == "accept", nil
}
