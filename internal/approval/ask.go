package approval

import (
	"context"
	"errors"

	"junctor/internal/catalog"
	"junctor/internal/tool"
	"junctor/internal/waiting"
)

// ErrAnswered is the cancellation cause of a client's question that was
// answered in the inbox.
var ErrAnswered = errors.New("answered in the inbox")

// verdict is the outcome of one of the two questions about a call.
type verdict struct {
	allow  bool
	reason string
	err    error
}

// Ask waits for a person to allow or deny the call, in the inbox and, unless
// client is nil, at the calling client. The first answer applies and withdraws
// the other question; if both are answered at the same time, both must allow
// the call. Ask returns waiting.ErrNoApprover if no one can answer, and
// waiting.ErrExpired if no one did in time.
func (i *Inbox) Ask(ctx context.Context, call *tool.Call, e *catalog.Entry, client func(context.Context) (bool, error)) (allow bool, reason string, err error) {
	if client == nil {
		return i.askInbox(ctx, call, e, false)
	}
	clientCtx, closeClient := context.WithCancelCause(ctx)
	defer closeClient(nil)
	inboxCtx, withdraw := context.WithCancel(ctx)
	defer withdraw()
	atClient, atInbox := make(chan verdict, 1), make(chan verdict, 1)
	go func() {
		yes, err := client(clientCtx)
		atClient <- verdict{allow: yes, err: err}
	}()
	go func() {
		var o verdict
		o.allow, o.reason, o.err = i.askInbox(inboxCtx, call, e, true)
		atInbox <- o
	}()
	var theirs, ours verdict
	select {
	case theirs = <-atClient:
		withdraw()
		ours = <-atInbox
	case ours = <-atInbox:
		if ours.err == nil || errors.Is(ours.err, waiting.ErrCancelled) {
			closeClient(ErrAnswered)
		}
		theirs = <-atClient
	}
	if theirs.err == nil {
		i.Answered(ctx, call, e, theirs.allow)
	}
	switch {
	case errors.Is(ours.err, waiting.ErrCancelled):
		return false, "", ours.err
	case ours.err == nil && (theirs.err != nil || !ours.allow):
		return ours.allow, ours.reason, nil
	}
	return theirs.allow, "", theirs.err
}

// Answered records the answer of the calling client's user in the audit log.
func (i *Inbox) Answered(ctx context.Context, call *tool.Call, e *catalog.Entry, allow bool) {
	action := "approval.deny"
	if allow {
		action = "approval.allow"
	}
	i.Audit(tool.WithCaller(ctx, call.Caller), action, e.Name.String(), map[string]any{
		"call": call.ID, "caller": call.Caller.ID, "api": call.Face, "argumentsHash": argumentsHash(call.Arguments), "fingerprint": e.Fingerprint(),
	})
}
