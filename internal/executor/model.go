package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"junctor/internal/store"
	"junctor/internal/tool"
)

// TokenStore stores how many tokens callers have used, shared by all nodes.
type TokenStore interface {
	Value(ctx context.Context, space, name string) (store.Value, error)
	PutValue(ctx context.Context, v store.Value, ifVersion int64) (store.Value, error)
}

// tokenSpace is the store's space for the tokens used per day, by caller ID.
const tokenSpace = "model-tokens"

// tokenConflicts bounds the attempts to update a count that other writers
// update concurrently.
const tokenConflicts = 50

// dayTokens is how many tokens a caller has used on one day (UTC).
type dayTokens struct {
	Day    string `json:"day"`
	Tokens int64  `json:"tokens"`
}

// PermitModel returns an error if the caller may not use a model now: it lacks
// the right, exceeds its rate limit, or has used its daily tokens. It counts
// the request against the caller's rate limit.
func (x *Executor) PermitModel(ctx context.Context, caller *tool.Caller) error {
	if err := caller.PermitChat(); err != nil {
		return err
	}
	if err := x.tokensLeft(ctx, caller, time.Now()); err != nil {
		return err
	}
	return x.limits.allow(caller, tool.Name{}, x.cfg.Load().Limits)
}

// tokensLeft returns an error if the caller's daily tokens are used up.
func (x *Executor) tokensLeft(ctx context.Context, caller *tool.Caller, now time.Time) error {
	if caller.TokensPerDay <= 0 || x.Tokens == nil {
		return nil
	}
	used, _, err := x.tokensOf(ctx, caller, now)
	if err != nil {
		return &tool.Error{Kind: tool.Unavailable, Msg: "the key's token budget cannot be read now; try again in a moment", Err: err}
	}
	if used.Tokens < caller.TokensPerDay {
		return nil
	}
	wait := now.UTC().Truncate(24 * time.Hour).Add(24 * time.Hour).Sub(now)
	return &tool.Error{Kind: tool.RateLimited, RetryAfter: wait, Msg: fmt.Sprintf(
		"this key's token budget is used up: %d of %d tokens today; it is reset at 00:00 UTC, in %s", used.Tokens, caller.TokensPerDay, wait.Round(time.Minute))}
}

// UsedTokens counts tokens of a model against the caller's daily budget. They
// are known only after the response, so concurrent requests may together exceed
// the budget.
func (x *Executor) UsedTokens(ctx context.Context, caller *tool.Caller, tokens int) {
	if caller.TokensPerDay <= 0 || x.Tokens == nil || tokens <= 0 {
		return
	}
	if err := x.countTokens(ctx, caller, tokens); err != nil {
		x.Log.WarnContext(ctx, "tokens not counted against the key's budget", "caller", caller.ID, "tokens", tokens, "err", err)
	}
}

func (x *Executor) countTokens(ctx context.Context, caller *tool.Caller, tokens int) error {
	for range tokenConflicts {
		used, version, err := x.tokensOf(ctx, caller, time.Now())
		if err != nil {
			return err
		}
		used.Tokens += int64(tokens)
		data, err := json.Marshal(used)
		if err != nil {
			return err
		}
		_, err = x.Tokens.PutValue(ctx, store.Value{Space: tokenSpace, Name: caller.ID, Data: data}, version)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
	return store.ErrConflict
}

// tokensOf returns the tokens that the caller has used on the day, and the
// version of the stored value.
func (x *Executor) tokensOf(ctx context.Context, caller *tool.Caller, now time.Time) (dayTokens, int64, error) {
	today := dayTokens{Day: now.UTC().Format(time.DateOnly)}
	v, err := x.Tokens.Value(ctx, tokenSpace, caller.ID)
	if errors.Is(err, store.ErrNotFound) {
		return today, 0, nil
	}
	if err != nil {
		return today, 0, err
	}
	var kept dayTokens
	if err := json.Unmarshal(v.Data, &kept); err != nil {
		return today, 0, err
	}
	if kept.Day != today.Day {
		return today, v.Version, nil
	}
	return kept, v.Version, nil
}
