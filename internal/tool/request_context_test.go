package tool

import (
	"context"
	"errors"
	"runtime"
	"testing"
)

// TestRequestContext: values are added in place, the last one counts, values of
// the parent stay visible, and cancellation reaches derived contexts.
func TestRequestContext(t *testing.T) {
	type key string
	parent, stop := context.WithCancel(context.WithValue(context.Background(), key("parent"), 1))
	defer stop()
	request, end := NewRequestContext(parent)
	defer end(nil)
	for name, ctx := range map[string]context.Context{"request": request, "other": parent} {
		t.Run(name, func(t *testing.T) {
			first := ctx
			for i := range 9 {
				ctx = SetValue(ctx, key("n"), i)
			}
			ctx = SetValue(ctx, key("parent"), 2)
			if got := ctx.Value(key("n")); got != 8 {
				t.Errorf("n = %v", got)
			}
			if got := ctx.Value(key("parent")); got != 2 {
				t.Errorf("parent = %v", got)
			}
			if same := ctx == first; same != (name == "request") {
				t.Errorf("set in place: %t", same)
			}
			ctx, cancel := SetCancel(ctx)
			if err := ctx.Err(); err != nil || ctx.Value(key("n")) != 8 || ctx.Value(key("parent")) != 2 {
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
	ctx, cancel := NewRequestContext(parent)
	defer cancel(nil)
	stop()
	if <-ctx.Done(); ctx.Err() != context.Canceled {
		t.Errorf("after the parent: %v", ctx.Err())
	}
}

// TestRequestContextSharesValues: another goroutine reads the context while
// values are added, in place and beyond its capacity.
func TestRequestContextSharesValues(t *testing.T) {
	type key int
	request, end := NewRequestContext(t.Context())
	defer end(nil)
	read := make(chan struct{})
	go func() {
		defer close(read)
		for request.Value(key(9)) == nil {
			runtime.Gosched()
		}
	}()
	ctx := request
	for i := range key(30) {
		ctx = SetValue(ctx, i, int(i))
	}
	<-read
	for i := range key(30) {
		if got := ctx.Value(i); got != int(i) {
			t.Errorf("value %d = %v", i, got)
		}
	}
}
