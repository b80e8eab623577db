package tool

import "context"

type callerKey struct{}

// WithCaller returns a context with the caller. The layer that authenticates
// sets it; faces read it.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, &c)
}

// SetCaller is [WithCaller] under the rule of [SetValue]. The caller must not
// change afterwards.
func SetCaller(ctx context.Context, c *Caller) context.Context { return SetValue(ctx, callerKey{}, c) }

// CallerFrom returns the caller of ctx, or [Anonymous] if there is none, so
// that code that forgets to set a caller gets no rights.
func CallerFrom(ctx context.Context) Caller {
	if c, ok := ctx.Value(callerKey{}).(*Caller); ok {
		return *c
	}
	return Anonymous
}

// String returns the caller's name and ID.
func (c Caller) String() string {
	if c.Name == "" || c.Name == c.ID {
		return c.ID
	}
	return c.Name + " (" + c.ID + ")"
}
