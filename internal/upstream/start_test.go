package upstream_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/tool"
	"junctor/internal/upstream"
	"junctor/internal/upstream/upstreamtest"
)

func TestCallsWaitForFirstConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, d := newInside(t, upstreamtest.Script{}, nil)
		d.slow.Store(3000)
		if st, _ := r.StatusOf("x"); st.State != upstream.Connecting {
			t.Errorf("before Run: %+v", st)
		}
		r.run()
		if pending := r.Await(t.Context()); len(pending) != 0 {
			t.Errorf("pending: %q", pending)
		}
		if got := r.ok("x", "echo", `{}`); got != `{}` {
			t.Errorf("echo = %q", got)
		}
		if idle, total := r.Timeouts("x"); idle != 30*time.Second || total != 10*time.Minute {
			t.Errorf("Timeouts = %s, %s", idle, total)
		}
	})
}

func TestServerThatNeverStartsIsPending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{Server: upstreamtest.New(upstreamtest.Script{Hang: true})}
		cfg := inside("x")
		cfg.StartTimeoutMs = 2000
		r := newFixture(t, upstream.Options{InProcess: map[string]upstream.Dialer{"x": d.dial}}, cfg)
		began := time.Now()
		if pending := r.Await(t.Context(), "x", "other"); !slices.Equal(pending, []string{"x"}) {
			t.Errorf("pending before Run: %q", pending)
		}
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("Await took %s", took)
		}
		if _, err := r.call("x", "echo", `{}`); !errors.Is(err, tool.ErrDown) || !strings.Contains(err.Error(), "still starting") {
			t.Errorf("call before Run: %v", err)
		}
		r.run()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if pending := r.Await(ctx); !slices.Equal(pending, []string{"x"}) {
			t.Errorf("pending after a second: %q", pending)
		}
		_, err := r.Do(ctx, "x", tool.Request{Method: "tools/list"})
		if tool.KindOf(err) != tool.Timeout {
			t.Errorf("call whose time is over: %v", err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		cancel()
		if _, err := r.Do(ctx, "x", tool.Request{Method: "tools/list"}); tool.KindOf(err) != tool.Canceled {
			t.Errorf("call that was cancelled: %v", err)
		}
	})
}

func TestStopWaitingForFirstConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{Server: upstreamtest.New(upstreamtest.Script{Hang: true})}
		cfg := inside("x")
		cfg.StartTimeoutMs = 300_000
		r := newFixture(t, upstream.Options{InProcess: map[string]upstream.Dialer{"x": d.dial}}, cfg).run()
		began := time.Now()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if pending := r.Await(t.Context()); !slices.Equal(pending, []string{"x"}) {
				t.Errorf("pending: %q", pending)
			}
		}()
		time.AfterFunc(time.Second, r.StopWaiting)
		if _, err := r.call("x", "echo", `{}`); tool.KindOf(err) != tool.Unavailable || !errors.Is(err, tool.ErrStopping) || !errors.Is(err, tool.ErrDown) {
			t.Errorf("a call that waited: %v", err)
		}
		<-ended
		if took := time.Since(began); took != time.Second {
			t.Errorf("the waits took %s", took)
		}
	})
}

// A program that is downloaded when it starts must not time out at the same
// point on each attempt. Callers do not wait longer because of that.
func TestStartTimeoutGrowsWithEachTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dialer{Server: upstreamtest.New(upstreamtest.Script{StartDelayMs: 7000})}
		cfg := inside("x")
		cfg.StartTimeoutMs = 2000
		r := newFixture(t, upstream.Options{InProcess: map[string]upstream.Dialer{"x": d.dial}}, cfg).run()
		began := time.Now()
		r.Await(t.Context(), "x")
		if took := time.Since(began); took != 2*time.Second {
			t.Errorf("Await took %s", took)
		}
		r.state("x", upstream.Connected) // on the third try, which may take 8 s
		if took := time.Since(began); took > time.Minute {
			t.Errorf("connected after %s", took)
		}
	})
}

// A server that closes the connection on server/discover is started twice; each
// start may take startTimeoutMs.
func TestSlowServerThatIsStartedTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, d := newInside(t, upstreamtest.Script{OldEra: true, LeaveOn: "server/discover"}, func(c *upstream.Config, _ *upstream.Options) {
			c.StartTimeoutMs = 10_000
		})
		d.slow.Store(6000)
		r.run()
		time.Sleep(15 * time.Second)
		if got := r.ok("x", "echo", `{}`); got != `{}` {
			t.Errorf("echo = %q", got)
		}
		if n := d.tries.Load(); n != 2 {
			t.Errorf("started %d times, want 2", n)
		}
	})
}
