package upstream_test

import (
	"context"
	"errors"
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
