package store

import (
	"context"
	"time"

	"junctor/internal/tool"
)

// Budgets lets several nodes keep one rate limit: each takes a number of
// calls in advance and spends them without asking.
type Budgets interface {
	// TakeBudget takes up to want calls from the budget of that name, which
	// holds rate.Calls at most and fills evenly over rate.Per by the
	// database's clock. It returns how many it got and, when there were none,
	// how long to wait for the next.
	TakeBudget(ctx context.Context, name string, rate tool.Rate, want int) (got int, wait time.Duration, err error)
}
