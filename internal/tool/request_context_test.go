package tool

import (
	"context"
	"errors"
	"testing"
)

// TestRequestContext: values are added in place, the last one counts, what the
// parent knows stays visible, and a cancellation reaches derived contexts.
func TestRequestContext(t *testing.T) {
	type key string
	parent, stop := context.WithCancel(context.WithValue(context.Background(), key("parent"), 1))
	defer stop()
	for name, ctx := range map[string]context.Context{"request": NewRequestContext(parent), "other": parent} {
		t.Run(name, func(t *testing.T) {
			first := ctx
			for i := range 20 {
				ctx = SetValue(ctx, key("n"), i)
			}
			ctx = SetValue(ctx, key("parent"), 2)
			if got := ctx.Value(key("n")); got != 19 {
				t.Errorf("n = %v", got)
			}
			if got := ctx.Value(key("parent")); got != 2 {
				t.Errorf("parent = %v", got)
			}
			if same := ctx == first; same != (name == "request") {
				t.Errorf("set in place: %t", same)
			}
			// A query that was made with the context may still watch it.
			watched := make(chan error)
			go func(ctx context.Context) {
				_ = ctx.Done()
				watched <- ctx.Err()
			}(ctx)
			ctx, cancel := SetCancel(ctx)
			if err := <-watched; err != nil || ctx.Value(key("n")) != 19 || ctx.Value(key("parent")) != 2 {
				t.Errorf("%v, n = %v, parent = %v", err, ctx.Value(key("n")), ctx.Value(key("parent")))
			}
			derived, release := context.WithCancel(ctx)
			defer release()
			why := errors.New("why")
			cancel(why)
			if <-derived.Done(); context.Cause(derived) != why || parent.Err() != nil {
				t.Errorf("cause %v, parent %v", context.Cause(derived), parent.Err())
			}
		})
	}
	ctx, cancel := SetCancel(NewRequestContext(parent))
	defer cancel(nil)
	stop()
	if <-ctx.Done(); ctx.Err() != context.Canceled {
		t.Errorf("after the parent: %v", ctx.Err())
	}
}
