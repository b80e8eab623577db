package tool

import (
	"context"
	"sync/atomic"
)

// requestContext is the context of one HTTP request. Middleware adds values in
// place, each of which would otherwise cost a context and a copy of the
// request. Values are only added, so that other goroutines may read while one
// adds.
type requestContext struct {
	context.Context
	cancel context.CancelCauseFunc
	count  atomic.Int32
	values [10]contextValue // enough for most requests
}

type contextValue struct{ key, value any }

// NewRequestContext returns a context for one HTTP request, to which [SetValue]
// adds in place and whose cancel function [SetCancel] returns. The caller must
// call the cancel function.
func NewRequestContext(parent context.Context) (context.Context, context.CancelCauseFunc) {
	c := &requestContext{}
	c.Context, c.cancel = context.WithCancelCause(parent)
	return c, c.cancel
}

// Value implements context.Context. It returns the value that was set last.
func (c *requestContext) Value(key any) any {
	for i := c.count.Load() - 1; i >= 0; i-- {
		if c.values[i].key == key {
			return c.values[i].value
		}
	}
	return c.Context.Value(key)
}

// SetValue returns a context with the value: ctx itself if it was returned by
// [NewRequestContext] and has room. Only the goroutine of the request may call
// it, and only before its handler runs.
func SetValue(ctx context.Context, key, value any) context.Context {
	c, ok := ctx.(*requestContext)
	if !ok {
		return context.WithValue(ctx, key, value)
	}
	n := c.count.Load()
	if int(n) == len(c.values) {
		return context.WithValue(ctx, key, value)
	}
	c.values[n] = contextValue{key, value}
	c.count.Store(n + 1)
	return c
}

// SetCancel is [context.WithCancelCause], but returns ctx and its own cancel
// function if ctx was returned by [NewRequestContext].
func SetCancel(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	if c, ok := ctx.(*requestContext); ok {
		return c, c.cancel
	}
	return context.WithCancelCause(ctx)
}
