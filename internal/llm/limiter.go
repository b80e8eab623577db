package llm

import (
	"context"

	"junctor/internal/tool"
)

// Limiter admits requests to models and counts their cost. The executor
// implements it.
type Limiter interface {
	// PermitModel returns an error if the caller may not use a model now. It
	// counts the request against the caller's rate limit.
	PermitModel(ctx context.Context, caller *tool.Caller) error

	// UsedTokens counts tokens against the caller's daily budget.
	UsedTokens(ctx context.Context, caller *tool.Caller, tokens int)
}

// Ask sends a request for a caller and collects the reply like [Collect]. It
// returns an error if the caller may not use models, and counts the request
// otherwise.
func Ask(ctx context.Context, l Limiter, caller *tool.Caller, m Model, req Request, on func(Event)) (Turn, error) {
	if err := l.PermitModel(ctx, caller); err != nil {
		return Turn{}, err
	}
	turn, err := Collect(m.Stream(ctx, req), on)
	l.UsedTokens(context.WithoutCancel(ctx), caller, cost(ctx, req, turn, err))
	return turn, err
}

// cost returns the tokens that the provider reported. If it reported none,
// because the reply was aborted or because it never does, cost returns an
// estimate; otherwise aborted replies would be free. A request that the
// provider refused costs nothing.
func cost(ctx context.Context, req Request, turn Turn, err error) int {
	if n := turn.Usage.Input + turn.Usage.Output; n > 0 {
		return n
	}
	if err != nil && ctx.Err() == nil && len(turn.Message.Parts) == 0 {
		return 0
	}
	n := EstimateTokens(len(req.System)+len(req.Guidance)) + req.Tools.Tokens() + turn.Message.Tokens()
	for _, m := range req.Messages {
		n += m.Tokens()
	}
	return n
}
