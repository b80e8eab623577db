package upstream_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/tool"
	"junctor/internal/upstream"
	"junctor/internal/upstream/upstreamtest"
)

// TestQueueTimeout: waiting for a slot has a separate timeout and error, and
// the call's Queued callback is notified.
func TestQueueTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := newInside(t, upstreamtest.Script{}, func(c *upstream.Config, _ *upstream.Options) {
			c.MaxConcurrent, c.QueueTimeoutMs = 1, 5_000
		})
		r.run()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		silent := tool.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"silent"}`)}
		done := make(chan struct{})
		go func() { defer close(done); _, _ = r.Do(ctx, "x", silent) }()
		synctest.Wait()
		var queued []bool
		begun := time.Now()
		waits := silent
		waits.Exchange.Queued = func(waiting bool) { queued = append(queued, waiting) }
		_, err := r.Do(ctx, "x", waits)
		if tool.KindOf(err) != tool.RateLimited || !strings.Contains(err.Error(), "queueTimeoutMs") || time.Since(begun) != 5*time.Second {
			t.Errorf("after %s: %v", time.Since(begun), err)
		}
		if fmt.Sprint(queued) != "[true false]" {
			t.Errorf("queued %v", queued)
		}
		cancel()
		<-done
	})
}

func TestMaxConcurrent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := newInside(t, upstreamtest.Script{}, func(c *upstream.Config, _ *upstream.Options) { c.MaxConcurrent = 2 })
		r.run()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		silent := tool.Request{Method: "tools/call", Params: json.RawMessage(`{"name":"silent"}`)}
		errs := make(chan error, 2)
		for range 2 {
			go func() { _, err := r.Do(ctx, "x", silent); errs <- err }()
		}
		synctest.Wait()
		if st, _ := r.StatusOf("x"); st.InFlight != 2 {
			t.Errorf("%d calls in flight, want 2", st.InFlight)
		}
		short, cancelShort := context.WithTimeout(t.Context(), time.Second)
		defer cancelShort()
		if _, err := r.Do(short, "x", silent); tool.KindOf(err) != tool.Timeout || !strings.Contains(err.Error(), "accepts 2 calls at a time") {
			t.Errorf("third call: %v", err)
		}
		third := make(chan string)
		go func() { third <- r.ok("x", "echo", `{}`) }()
		synctest.Wait()
		cancel() // frees the slots
		if got := <-third; got != `{}` {
			t.Errorf("echo = %q", got)
		}
		for range 2 {
			if err := <-errs; tool.KindOf(err) != tool.Canceled {
				t.Errorf("cancelled call: %v", err)
			}
		}
		// Calls are rejected while the queue is full.
		cfg, _ := r.Config("x")
		cfg.MaxConcurrent = 1
		r.Apply([]upstream.Config{cfg})
		full, cancelFull := context.WithCancel(t.Context())
		defer cancelFull()
		var limited atomic.Int64
		for range 1100 {
			go func() {
				if _, err := r.Do(full, "x", silent); tool.KindOf(err) == tool.RateLimited {
					limited.Add(1)
				}
			}()
		}
		synctest.Wait()
		if n := limited.Load(); n != 1100-1-1024 {
			t.Errorf("%d calls were turned away", n)
		}
	})
}
