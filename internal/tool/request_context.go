package tool

import "context"

// requestContext is the context of one HTTP request. What the request passes on
// its way to a handler adds values in place, where each would otherwise cost a
// context and a copy of the request.
type requestContext struct {
	context.Context
	values []contextValue
	room   [8]contextValue // values, as a rule
}

type contextValue struct{ key, value any }

// NewRequestContext returns a context for one HTTP request, to which [SetValue]
// and [SetCancel] add in place.
func NewRequestContext(parent context.Context) context.Context {
	c := &requestContext{Context: parent}
	c.values = c.room[:0]
	return c
}

// Value implements context.Context. The value that was set last counts.
func (c *requestContext) Value(key any) any {
	for i := len(c.values) - 1; i >= 0; i-- {
		if c.values[i].key == key {
			return c.values[i].value
		}
	}
	return c.Context.Value(key)
}

// SetValue returns a context with the value: ctx itself if it comes from
// [NewRequestContext]. Only middleware may call it, before the handler of the
// request runs: it is not safe while another goroutine reads values of ctx.
func SetValue(ctx context.Context, key, value any) context.Context {
	if c, ok := ctx.(*requestContext); ok {
		c.values = append(c.values, contextValue{key, value})
		return c
	}
	return context.WithValue(ctx, key, value)
}

// SetCancel is [context.WithCancelCause] for a context to which [SetValue] adds
// in place. It leaves ctx as it is: goroutines of queries that have used it to
// find the caller may still read it.
func SetCancel(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	c, ok := ctx.(*requestContext)
	if !ok {
		return context.WithCancelCause(ctx)
	}
	next := &requestContext{}
	next.values = append(next.room[:0], c.values...)
	var cancel context.CancelCauseFunc
	next.Context, cancel = context.WithCancelCause(c.Context)
	return next, cancel
}
