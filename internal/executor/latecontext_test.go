package executor

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestLateContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		make := func() *lateContext {
			return &lateContext{Context: context.WithoutCancel(t.Context()), deadline: time.Now().Add(time.Second)}
		}
		c := make()
		if at, ok := c.Deadline(); !ok || at != c.deadline || c.Err() != nil {
			t.Errorf("a new one: %v, %v, %v", at, ok, c.Err())
		}
		child, cancel := context.WithCancel(c)
		defer cancel()
		<-child.Done()
		if !errors.Is(c.Err(), context.DeadlineExceeded) || !errors.Is(child.Err(), context.DeadlineExceeded) {
			t.Errorf("after its time: %v, its child %v", c.Err(), child.Err())
		}
		c.stop()

		c = make()
		time.Sleep(time.Second)
		if !errors.Is(c.Err(), context.DeadlineExceeded) { // before Done is called
			t.Errorf("after its time: %v", c.Err())
		}
		<-c.Done()

		c = make()
		c.stop()
		if <-c.Done(); !errors.Is(c.Err(), context.Canceled) {
			t.Errorf("stopped before anyone waited: %v", c.Err())
		}

		c = make()
		done := c.Done()
		c.stop()
		if <-done; !errors.Is(c.Err(), context.Canceled) {
			t.Errorf("stopped: %v", c.Err())
		}
	})
}
