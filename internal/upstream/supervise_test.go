package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/mcpclient"
	"junctor/internal/setting"
	"junctor/internal/tool"
	"junctor/internal/upstream"
	"junctor/internal/upstream/upstreamtest"
)

func TestRemoteServerRecoversForNextCall(t *testing.T) {
	for name, script := range map[string]upstreamtest.Script{"handshake era": {OldEra: true}, "stateless era": {}} {
		t.Run(name, func(t *testing.T) {
			h := upstreamtest.Listen(t, script)
			r := newFixture(t, upstream.Options{}, h.Config("x")).run()
			r.ok("x", "echo", `{}`)
			for range 3 {
				h.Stop()
				h.Forget()
				if _, err := r.call("x", "echo", `{}`); tool.KindOf(err) != tool.UpstreamFailed {
					t.Fatalf("call while the server is away: %v", err)
				}
				st := r.state("x", upstream.Disconnected)
				contains(t, "Reason", st.Reason, "connection refused")
				_, err := r.call("x", "echo", `{}`)
				if !errors.Is(err, tool.ErrDown) {
					t.Fatalf("call while the server is known to be away: %v", err)
				}
				contains(t, "error", err.Error(), "x has been down since "+st.Since.UTC().Format("2006-01-02 15:04:05"), "connection refused")
				h.Start()
				// The calls trigger the reconnect. A call may fail with an
				// attempt from before the return, and on a busy machine before
				// its own attempt has finished; TestBackoffGrowsWithoutEnd
				// measures the time.
				r.eventually("a call to be served after the return", func() bool {
					_, err := r.call("x", "echo", `{}`)
					if err != nil && !errors.Is(err, tool.ErrDown) {
						t.Fatalf("a call after the return: %v", err)
					}
					return err == nil
				})
				r.state("x", upstream.Connected)
			}
		})
	}
}

func TestKilledChildIsRestartedForNextCall(t *testing.T) {
	t.Parallel()
	cfg := upstreamtest.Stdio(t, "x", upstreamtest.Script{})
	r := newFixture(t, upstream.Options{}, cfg).run()
	for i := range 3 {
		r.ok("x", "echo", `{}`)
		st := r.state("x", upstream.Connected)
		if st.PID == 0 || st.Isolation == "" || st.Protocol == "" || st.Era == "" || st.Server != "test" || st.Tools == 0 || st.LatencyMs <= 0 || st.Transport != upstream.Stdio {
			t.Errorf("status %+v", st)
		}
		p, err := os.FindProcess(st.PID)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		r.eventually("the loss to be noticed", func() bool {
			st, _ := r.StatusOf("x")
			return st.Lost == i+1
		})
		st, _ = r.StatusOf("x")
		contains(t, "LastFailure", st.LastFailure, "its program", "killed")
		r.state("x", upstream.Connected) // automatically
	}
}

// dialer is a server inside the process that can be unavailable.
type dialer struct {
	*upstreamtest.Server
	away  atomic.Bool
	slow  atomic.Int64 // milliseconds
	tries atomic.Int64
	mu    sync.Mutex
	times []time.Time
}

func (d *dialer) dial(ctx context.Context) (mcpclient.Transport, error) {
	d.tries.Add(1)
	d.mu.Lock()
	d.times = append(d.times, time.Now())
	d.mu.Unlock()
	if ms := d.slow.Load(); ms > 0 {
		select {
		case <-time.After(time.Duration(ms) * time.Millisecond):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if d.away.Load() {
		return nil, &tool.Error{Kind: tool.UpstreamFailed, Msg: "it is away"}
	}
	return d.Transport(ctx)
}

func inside(name string) upstream.Config {
	c := upstream.DefaultConfig()
	c.Name = name
	c.Transport = upstream.InProcess
	return c
}

// newInside returns a fixture with one server inside the process, for use in a
// synctest bubble.
func newInside(t *testing.T, script upstreamtest.Script, change func(*upstream.Config, *upstream.Options)) (*fixture, *dialer) {
	d := &dialer{Server: upstreamtest.New(script)}
	cfg, o := inside("x"), upstream.Options{InProcess: map[string]upstream.Dialer{"x": d.dial}}
	if change != nil {
		change(&cfg, &o)
	}
	return newFixture(t, o, cfg), d
}

func TestBackoffGrowsWithoutEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, d := newInside(t, upstreamtest.Script{}, nil)
		d.away.Store(true)
		r.run()
		time.Sleep(time.Hour)
		d.mu.Lock()
		times := slices.Clone(d.times)
		d.mu.Unlock()
		// 30 s at most, plus or minus a half: an hour has room for 80 to 260.
		if n := len(times); n < 80 || n > 260 {
			t.Errorf("%d attempts in an hour", n)
		}
		for i := 1; i < len(times); i++ {
			gap := times[i].Sub(times[i-1])
			if i == 1 && gap > time.Second || gap > 46*time.Second || i > 12 && gap < 14*time.Second {
				t.Errorf("attempt %d came %s after the one before", i+1, gap)
			}
		}
		st, _ := r.StatusOf("x")
		if st.State != upstream.Disconnected || st.Reason != "it is away" || st.Attempts < 80 || st.NextTry.Before(time.Now()) {
			t.Errorf("status %+v", st)
		}
		d.away.Store(false)
		began := time.Now()
		if got := r.ok("x", "echo", `{}`); got != `{}` {
			t.Errorf("echo = %q", got)
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("the first call after the return took %s", took)
		}
		if st, _ := r.StatusOf("x"); st.State != upstream.Connected || st.Reason != "" || st.Attempts != 0 || st.LastFailure != "it is away" {
			t.Errorf("status %+v", st)
		}
	})
}

func TestCallsDoNotReconnectBeforeBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, d := newInside(t, upstreamtest.Script{}, nil)
		d.away.Store(true)
		r.run()
		time.Sleep(10 * time.Minute)
		before, began := d.tries.Load(), time.Now()
		for range 100 {
			if _, err := r.call("x", "echo", `{}`); !errors.Is(err, tool.ErrDown) {
				t.Fatal(err)
			}
		}
		if per := time.Since(began) / time.Duration(d.tries.Load()-before); per < 490*time.Millisecond {
			t.Errorf("one attempt every %s", per)
		}
		if took := time.Since(began); took > 100*time.Second {
			t.Errorf("100 calls of a server that is down took %s", took)
		}
	})
}

func TestListChangesAreCoalesced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, d := newInside(t, upstreamtest.Script{}, nil)
		r.run()
		r.state("x", upstream.Connected)
		lists := func() (n int) {
			for _, method := range d.Seen() {
				if method == "tools/list" {
					n++
				}
			}
			return n
		}
		for range 1200 { // ten minutes
			d.AddTool()
			time.Sleep(500 * time.Millisecond)
		}
		if n := lists(); n < 40 || n > 100 {
			t.Errorf("listed %d times in ten minutes", n)
		}
		time.Sleep(time.Minute) // the last change is listed, and the delay is short again
		before := lists()
		d.AddTool()
		time.Sleep(time.Second)
		if n := lists(); n != before+1 {
			t.Errorf("a change after some quiet: listed %d times", n-before)
		}
		if st, _ := r.StatusOf("x"); st.Tools < 1200 {
			t.Errorf("%d tools are known", st.Tools)
		}
	})
}

func TestMissingGuidanceDoesNotDelayServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := newInside(t, upstreamtest.Script{Guidance: "never said", Instructions: "read me", Mute: "prompts/get"}, nil)
		began := time.Now()
		r.run()
		if got := r.ok("x", "echo", `{}`); got != `{}` {
			t.Errorf("echo = %q", got)
		}
		if took := time.Since(began); took > 5*time.Second {
			t.Errorf("the first call had to wait %s for the guidance", took)
		}
		if set := r.awaitTools("x", 1); set.Guidance.Source != tool.FromInstructions {
			t.Errorf("guidance from %s", set.Guidance.Source)
		}
	})
}

func TestStableConnectionResetsBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, d := newInside(t, upstreamtest.Script{}, nil)
		d.away.Store(true)
		r.run()
		time.Sleep(10 * time.Minute)
		d.away.Store(false)
		time.Sleep(2 * time.Minute) // connected for a while
		r.state("x", upstream.Connected)
		_, _ = r.call("x", "die", `{}`)
		synctest.Wait()
		if st, _ := r.StatusOf("x"); st.State != upstream.Disconnected || time.Until(st.NextTry) > time.Second {
			t.Errorf("after a stable connection was lost: %+v", st)
		}
		time.Sleep(time.Second)
		r.state("x", upstream.Connected)
	})
}

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

func TestListChangedReloadsTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, d := newInside(t, upstreamtest.Script{OldEra: true}, nil)
		r.run()
		r.state("x", upstream.Connected)
		before := len(r.awaitTools("x", 1).Tools)
		for range 50 { // a burst is one listing
			d.AddTool()
		}
		time.Sleep(time.Second)
		if got := len(r.awaitTools("x", 2).Tools); got != before+50 {
			t.Errorf("%d tools, want %d", got, before+50)
		}
		r.mu.Lock()
		if n := len(r.toolSets["x"]); n > 3 {
			t.Errorf("the tools were listed %d times", n)
		}
		if len(r.notes) > 0 { // the catalogue notifies of the change
			t.Errorf("the sink received %q", r.notes)
		}
		r.mu.Unlock()
		d.Notify("notifications/tools/list_changed", nil)
		time.Sleep(time.Minute)
		r.mu.Lock()
		defer r.mu.Unlock()
		if !slices.Contains(r.notes, "x notifications/tools/list_changed") {
			t.Errorf("the sink received %q", r.notes)
		}
	})
}

func TestSilentConnectionsAreProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, d := newInside(t, upstreamtest.Script{OldEra: true}, nil)
		r.run()
		time.Sleep(10 * time.Minute)
		if st, _ := r.StatusOf("x"); st.State != upstream.Connected || st.Lost != 0 {
			t.Errorf("status %+v", st)
		}
		if n := d.Connections(); n != 1 {
			t.Errorf("%d connections", n)
		}
	})
}

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

func TestApplyTouchesOnlyWhatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers := map[string]*dialer{}
		o := upstream.Options{InProcess: map[string]upstream.Dialer{}}
		var configs []upstream.Config
		for _, name := range []string{"a", "b", "c", "d"} {
			servers[name] = &dialer{Server: upstreamtest.New(upstreamtest.Script{})}
			o.InProcess[name] = servers[name].dial
			configs = append(configs, inside(name))
		}
		off := inside("d")
		off.Enabled = false
		configs[3] = off
		r := newFixture(t, o, configs[0], configs[1], off).run()
		r.state("a", upstream.Connected)
		r.state("b", upstream.Connected)
		if st, _ := r.StatusOf("d"); st.State != upstream.Disabled {
			t.Errorf("status of a disabled server: %+v", st)
		}
		if _, err := r.call("d", "echo", `{}`); tool.KindOf(err) != tool.ToolDisabled {
			t.Errorf("call of a disabled server: %v", err)
		}

		described := configs[0]
		described.Description, described.TimeoutMs = "new words", setting.Millis(1000)
		moved := configs[1]
		moved.Args = []string{"other"}
		on := off
		on.Enabled = true
		r.Apply([]upstream.Config{described, moved, configs[2], on}) // c is new
		synctest.Wait()
		for name, want := range map[string]int64{"a": 1, "b": 2, "c": 1, "d": 1} {
			r.ok(name, "echo", `{}`)
			if got := servers[name].tries.Load(); got != want {
				t.Errorf("%s was dialled %d times, want %d", name, got, want)
			}
		}
		if got, _ := r.Config("a"); got.Description != "new words" {
			t.Errorf("its description is %q", got.Description)
		}
		if idle, _ := r.Timeouts("a"); idle != time.Second {
			t.Errorf("Timeouts = %s", idle)
		}

		r.Apply([]upstream.Config{described, moved, configs[2], off}) // d off again
		synctest.Wait()
		r.Apply([]upstream.Config{described, moved})
		synctest.Wait()
		if _, err := r.call("c", "echo", `{}`); tool.KindOf(err) != tool.ServerNotFound {
			t.Errorf("call of a removed server: %v", err)
		}
		if _, ok := r.StatusOf("c"); ok {
			t.Error("a removed server has a status")
		}
		if _, ok := r.Config("c"); ok {
			t.Error("a removed server has a configuration")
		}
		r.mu.Lock()
		if !slices.Contains(r.removed, "c") || !slices.Contains(r.removed, "d") || slices.Contains(r.removed, "a") {
			t.Errorf("the sink received the removals %q", r.removed)
		}
		r.mu.Unlock()
		r.Apply([]upstream.Config{described, moved, configs[2]}) // and back
		r.ok("c", "echo", `{}`)

		if err := r.Restart("a"); err != nil {
			t.Fatal(err)
		}
		r.ok("a", "echo", `{}`)
		if got := servers["a"].tries.Load(); got != 2 {
			t.Errorf("after Restart a was dialled %d times", got)
		}
		if err := r.Restart("zzz"); tool.KindOf(err) != tool.ServerNotFound {
			t.Errorf("Restart of nothing: %v", err)
		}
		if err := r.Retry("zzz"); tool.KindOf(err) != tool.ServerNotFound {
			t.Errorf("Retry of nothing: %v", err)
		}
		if idle, total := r.Timeouts("zzz"); idle != 0 || total != 0 {
			t.Errorf("Timeouts of nothing = %s, %s", idle, total)
		}
	})
}

func TestApplyBeforeRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, _ := newInside(t, upstreamtest.Script{}, nil)
		r.Apply(nil)
		r.mu.Lock()
		if !slices.Equal(r.removed, []string{"x"}) {
			t.Errorf("removed: %q", r.removed)
		}
		r.mu.Unlock()
		r.Apply([]upstream.Config{inside("x")})
		r.run()
		r.ok("x", "echo", `{}`)
	})
}

func TestRetryConnectsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, d := newInside(t, upstreamtest.Script{}, nil)
		d.away.Store(true)
		r.run()
		time.Sleep(time.Hour)
		d.away.Store(false)
		if err := r.Retry("x"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if st, _ := r.StatusOf("x"); st.State != upstream.Connected {
			t.Errorf("status %+v", st)
		}
	})
}

func TestChildrenHaveEndedWhenRunReturns(t *testing.T) {
	t.Parallel()
	cfg := upstreamtest.Stdio(t, "x", upstreamtest.Script{Deaf: true})
	r := newFixture(t, upstream.Options{}, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Run(ctx) }()
	st := r.state("x", upstream.Connected)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/self"); err == nil {
		if comm, err := os.ReadFile("/proc/" + strconv.Itoa(st.PID) + "/comm"); err == nil && strings.Contains(string(comm), "upstream") {
			t.Errorf("the child still runs: %s", comm)
		}
	}
	if _, err := r.call("x", "echo", `{}`); !errors.Is(err, tool.ErrDown) {
		t.Errorf("call after the end: %v", err)
	}
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
