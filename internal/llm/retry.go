package llm

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"math/rand/v2"
	"time"
)

// The delay before the first retry, doubled for each further one, and its
// maximum. If a provider requests more than maxRetryDelay, the error is
// returned instead, because a user is waiting.
const (
	minRetryDelay = time.Second
	maxRetryDelay = 30 * time.Second
)

// retrying retries requests that fail before their first event.
type retrying struct {
	Model
	retries int
	log     *slog.Logger
}

// WithRetries returns m with up to retries retries of a request that fails
// before its first event. Later errors are returned, because a retry would
// repeat text that was already delivered.
func WithRetries(m Model, retries int, log *slog.Logger) Model {
	if retries <= 0 {
		return m
	}
	return &retrying{Model: m, retries: retries, log: log}
}

func (r *retrying) Stream(ctx context.Context, req Request) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for attempt := 0; ; attempt++ {
			begun := false
			var failed error
			for ev, err := range r.Model.Stream(ctx, req) {
				if err != nil {
					failed = err
					break
				}
				begun = true
				if !yield(ev, nil) {
					return
				}
			}
			if failed == nil {
				return
			}
			wait, again := r.wait(failed, attempt)
			if begun || !again {
				yield(Event{}, failed)
				return
			}
			r.log.WarnContext(ctx, "model will be asked again", "model", r.Info().ID, "attempt", attempt+1, "wait", wait, "err", failed)
			select {
			case <-time.After(wait):
			case <-ctx.Done():
				yield(Event{}, failed)
				return
			}
		}
	}
}

func (r *retrying) wait(err error, attempt int) (time.Duration, bool) {
	e, ok := errors.AsType[*Error](err)
	if !ok || !e.Retryable() || attempt >= r.retries {
		return 0, false
	}
	if after := e.RetryAfter(); after > 0 {
		return after, after <= maxRetryDelay
	}
	wait := min(minRetryDelay<<attempt, maxRetryDelay)
	return wait/2 + rand.N(wait/2+1), true
}
