package executor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/catalog"
	"junctor/internal/mcp"
	"junctor/internal/setting"
	"junctor/internal/tool"
)

var fsWrite = tool.Name{Server: "fs", Tool: "write"}

// fail and succeed are upstreams that always fail and always succeed.
func fail(context.Context, string, tool.Request) (json.RawMessage, error) { return nil, io.EOF }
func succeed(context.Context, string, tool.Request) (json.RawMessage, error) {
	return json.RawMessage(`{}`), nil
}

func TestCircuitOpensAndRecovers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &meter{}
		r := newFixture(t, func(o *Options) { o.Meter = m })
		r.do = fail
		for i := range 5 {
			if _, err := r.Call(t.Context(), call("write", `{}`)); tool.KindOf(err) != tool.UpstreamFailed {
				t.Fatalf("call %d: %v", i, err)
			}
		}
		_, err := r.Call(t.Context(), call("write", `{}`))
		if e := tool.AsError(err); e.Kind != tool.CircuitOpen || e.RetryAfter != time.Minute {
			t.Fatalf("after 5 failures: %v, retry after %s", err, tool.AsError(err).RetryAfter)
		}
		if r.calls != 5 {
			t.Errorf("an open circuit let a call through")
		}
		if got := r.Stats(fsWrite).Circuit; got != Open {
			t.Errorf("circuit = %s", got)
		}
		if _, err := r.Call(t.Context(), call("read", `{"path":"a"}`)); tool.KindOf(err) == tool.CircuitOpen {
			t.Error("the circuit of one tool stops another")
		}

		time.Sleep(time.Minute)
		if got := r.Stats(fsWrite).Circuit; got != HalfOpen {
			t.Errorf("after the cool-down circuit = %s", got)
		}
		r.Call(t.Context(), call("write", `{}`)) // the trial fails
		if _, err := r.Call(t.Context(), call("write", `{}`)); tool.KindOf(err) != tool.CircuitOpen {
			t.Errorf("after a failed trial: %v", err)
		}

		time.Sleep(time.Minute)
		r.do = succeed
		if _, err := r.Call(t.Context(), call("write", `{}`)); err != nil {
			t.Errorf("trial: %v", err)
		}
		if got := r.Stats(fsWrite); got.Circuit != Closed || got.Failures != 6 || got.Successes != 1 || got.LastFailure.IsZero() {
			t.Errorf("after a good trial: %+v", got)
		}
		if got := fmt.Sprint(m.circuits); got != "[fs:write 2 fs:write 0]" {
			t.Errorf("counted %s", got)
		}
	})
}

// TestPendingApprovalDoesNotBlockTrialCall: the circuit admits a call only
// after its approval.
func TestPendingApprovalDoesNotBlockTrialCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t)
		r.catalog.Configure(catalog.Settings{Rules: []catalog.ToolRule{{Pattern: []string{"fs:write"}, Approval: catalog.AskApproval}}}, nil)
		approve := func(answer func(context.Context) bool) tool.Call {
			c := call("fs:write", `{}`)
			c.Exchange.Approve = func(ctx context.Context, _ tool.Name, _ json.RawMessage) (bool, error) { return answer(ctx), nil }
			return c
		}
		yes := approve(func(context.Context) bool { return true })
		r.do = fail
		for range 5 {
			r.Call(t.Context(), yes)
		}
		asked := 0
		count := approve(func(context.Context) bool { asked++; return true })
		if _, err := r.Call(t.Context(), count); tool.KindOf(err) != tool.CircuitOpen || asked != 0 {
			t.Errorf("error = %v, asked %d times; want an open circuit and no question", err, asked)
		}
		time.Sleep(time.Minute)
		r.do = succeed
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			r.Call(ctx, approve(func(ctx context.Context) bool { <-ctx.Done(); return false }))
		})
		synctest.Wait()
		if _, err := r.Call(t.Context(), yes); err != nil {
			t.Errorf("while another waits for approval: %v", err)
		}
		cancel()
		wg.Wait()
		if got := r.Stats(fsWrite).Circuit; got != Closed {
			t.Errorf("circuit = %s", got)
		}
	})
}

func TestLateResultsDoNotChangeCircuit(t *testing.T) {
	cfg := DefaultConfig().Circuit
	start := time.Now()
	later := start.Add(61 * time.Second)
	// opened returns an open circuit and permits from before it opened.
	opened := func() (*breaker, []permit) {
		b := &breaker{}
		var old []permit
		for range 10 {
			p, _ := b.admit(cfg, start)
			old = append(old, p)
		}
		for _, p := range old[5:] {
			b.done(cfg, p, failed, start, 0)
		}
		return b, old[:5]
	}
	t.Run("a success does not close", func(t *testing.T) {
		b, old := opened()
		trial, wait := b.admit(cfg, later)
		if wait > 0 || !trial.trial {
			t.Fatalf("no trial after the cool-down: %+v, %s", trial, wait)
		}
		b.done(cfg, old[0], succeeded, later, 0)
		if got := b.snapshot(cfg, later).Circuit; got != HalfOpen {
			t.Errorf("circuit = %s, want half-open until the trial ends", got)
		}
		b.done(cfg, trial, succeeded, later, 0)
		if got := b.snapshot(cfg, later).Circuit; got != Closed {
			t.Errorf("circuit = %s after the trial", got)
		}
	})
	t.Run("a cancelled call gives no second trial", func(t *testing.T) {
		b, old := opened()
		b.admit(cfg, later)
		b.done(cfg, old[0], inconclusive, later, 0)
		if _, wait := b.admit(cfg, later); wait == 0 {
			t.Error("two trials at once")
		}
	})
	t.Run("failures do not extend", func(t *testing.T) {
		b, old := opened()
		half := start.Add(30 * time.Second)
		for _, p := range old {
			b.done(cfg, p, failed, half, 0)
		}
		if wait := b.refuses(cfg, half); wait != 30*time.Second {
			t.Errorf("the cool-down ends in %s, want 30s", wait)
		}
	})
	t.Run("failures do not open after a good trial", func(t *testing.T) {
		b, old := opened()
		trial, _ := b.admit(cfg, later)
		b.done(cfg, trial, succeeded, later, 0)
		for _, p := range old {
			b.done(cfg, p, failed, later, 0)
		}
		if got := b.snapshot(cfg, later); got.Circuit != Closed || got.Failures != 10 {
			t.Errorf("stats = %+v, want a closed circuit and 10 failures", got)
		}
	})
}

func TestOneTrialAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t)
		r.do = fail
		for range 5 {
			r.Call(t.Context(), call("write", `{}`))
		}
		time.Sleep(time.Minute)
		r.do = func(context.Context, string, tool.Request) (json.RawMessage, error) {
			time.Sleep(time.Second)
			return json.RawMessage(`{}`), nil
		}
		before := r.calls
		var wg sync.WaitGroup
		var mu sync.Mutex
		refused := 0
		for range 10 {
			wg.Go(func() {
				if _, err := r.Call(t.Context(), call("write", `{}`)); tool.KindOf(err) == tool.CircuitOpen {
					mu.Lock()
					refused++
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		if refused != 9 || r.calls != before+1 {
			t.Errorf("%d of 10 were refused, %d went through; want 9 and 1", refused, r.calls-before)
		}
	})
}

func TestUnsentTrialCallIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t)
		r.do = fail
		for range 6 {
			r.Call(t.Context(), call("read", `{"path":"a"}`))
		}
		time.Sleep(time.Minute)
		if _, err := r.Call(t.Context(), call("read", `{}`)); tool.KindOf(err) != tool.InvalidArguments {
			t.Fatalf("error = %v", err)
		}
		r.do = succeed
		if _, err := r.Call(t.Context(), call("read", `{"path":"a"}`)); err != nil {
			t.Errorf("bad arguments used the trial up: %v", err)
		}
	})
}

// TestURLElicitationDoesNotOpenCircuit: a tool that requires the user to open a
// URL first is not failing.
func TestURLElicitationDoesNotOpenCircuit(t *testing.T) {
	r := newFixture(t)
	r.do = func(context.Context, string, tool.Request) (json.RawMessage, error) {
		return nil, &mcp.Error{Code: mcp.CodeURLElicitation, Message: "sign in first"}
	}
	for range 10 {
		if _, err := r.Call(t.Context(), call("write", `{}`)); tool.KindOf(err) != tool.UpstreamFailed {
			t.Fatalf("error = %v", err)
		}
	}
	if st := r.Stats(tool.Name{Server: "fs", Tool: "write"}); st.Circuit != Closed {
		t.Errorf("its circuit is %s", st.Circuit)
	}
}

func TestSuccessReducesFailureCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t)
		for i := range 40 { // one good, one bad: never more than one counts
			r.do = fail
			if i%2 == 0 {
				r.do = succeed
			}
			if _, err := r.Call(t.Context(), call("write", `{}`)); tool.KindOf(err) == tool.CircuitOpen {
				t.Fatalf("opened at call %d", i)
			}
		}
	})
}

func TestOldFailuresAreForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t)
		r.do = fail
		for range 4 {
			r.Call(t.Context(), call("write", `{}`))
		}
		time.Sleep(61 * time.Second)
		r.Call(t.Context(), call("write", `{}`))
		if got := r.Stats(fsWrite).Circuit; got != Closed {
			t.Errorf("old failures count: %s", got)
		}
	})
}

func TestMeanLatency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t)
		for _, d := range []time.Duration{100 * time.Millisecond, 200 * time.Millisecond} {
			r.do = func(context.Context, string, tool.Request) (json.RawMessage, error) {
				time.Sleep(d)
				return json.RawMessage(`{}`), nil
			}
			r.Call(t.Context(), call("write", `{}`))
		}
		if got := r.Stats(fsWrite).MeanLatency; got != 120*time.Millisecond {
			t.Errorf("mean latency = %s, want 100 + 0.2·(200-100) = 120 ms", got)
		}
		if got := r.Stats(tool.Name{Server: "no", Tool: "one"}); got.Circuit != Closed || got.Calls != 0 {
			t.Errorf("a tool never called has %+v", got)
		}
	})
}

func TestRateLimitsPerCallerAndTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newFixture(t, func(o *Options) {
			o.Config.Limits.CallerRate = &setting.Rate{Calls: 2, PerMs: 1000}
			o.Config.Limits.ToolRate = &setting.Rate{Calls: 3, PerMs: 1000}
		})
		as := func(id, name, args string) error {
			c := call(name, args)
			c.Caller = tool.Caller{ID: id}
			_, err := r.Call(t.Context(), c)
			return err
		}
		for i, want := range []tool.Kind{"", "", tool.RateLimited} {
			if err := as("a", "write", `{}`); tool.KindOf(err) != want {
				t.Fatalf("a's call %d: %v", i, err)
			}
		}
		if err := as("b", "write", `{}`); err != nil {
			t.Errorf("b pays for a: %v", err)
		}
		err := as("b", "write", `{}`)
		if e := tool.AsError(err); e.Kind != tool.RateLimited || e.RetryAfter <= 0 || !strings.Contains(e.Msg, "fs:write") {
			t.Errorf("the tool's own rate: %v", err)
		}
		if err := as("b", "read", `{"path":"x"}`); err != nil {
			t.Errorf("what the tool's limit refused was charged to the caller: %v", err)
		}
		time.Sleep(time.Second)
		if err := as("a", "write", `{}`); err != nil {
			t.Errorf("after the wait: %v", err)
		}
	})
}

func TestLimitersAreBounded(t *testing.T) {
	var l limiter
	cfg := LimitConfig{CallerRate: &setting.Rate{Calls: 1000, PerMs: 1}}
	for i := range maxLimiters + 10 {
		if err := l.allow(&tool.Caller{ID: fmt.Sprint(i)}, fsWrite, cfg); err != nil {
			t.Fatal(err)
		}
	}
	if len(l.buckets) > maxLimiters {
		t.Errorf("%d buckets are kept", len(l.buckets))
	}
}

func TestBoundKeepsJSONValid(t *testing.T) {
	long := strings.Repeat("ä", 3000)
	for name, tt := range map[string]struct {
		raw   string
		limit int
		same  bool
		has   []string
		not   []string
	}{
		"within":      {`{"content":[]}`, 100, true, nil, nil},
		"no limit":    {`{"content":["` + long + `"]}`, 0, true, nil, nil},
		"text":        {`{"content":[{"type":"text","text":"` + long + `"}],"isError":true,"structuredContent":{"x":"` + long + `"}}`, 2000, false, []string{`"isError":true`, "ääää", "maxResultBytes"}, []string{"structuredContent"}},
		"image":       {`{"content":[{"type":"text","text":"small"},{"type":"image","data":"` + long + `"}],"_meta":{"k":1}}`, 2000, false, []string{"small", "1 of 2", `"_meta":{"k":1}`}, []string{`"image"`}},
		"no room":     {`{"content":[{"type":"text","text":"` + long[:1900] + `"},{"type":"text","text":"` + long + `"}]}`, 2000, false, []string{"1 of 2"}, nil},
		"no content":  {`{"structuredContent":"` + long + `"}`, 2000, false, []string{"maxResultBytes"}, []string{"ää"}},
		"odd content": {`{"content":"` + long + `"}`, 2000, false, []string{"maxResultBytes"}, []string{"ää"}},
		"large meta":  {`{"content":[],"_meta":{"k":"` + long + `"}}`, 2000, false, []string{"maxResultBytes"}, []string{"_meta"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := string(truncateResult(json.RawMessage(tt.raw), tt.limit, ""))
			if tt.same != (got == tt.raw) || !json.Valid([]byte(got)) {
				t.Fatalf("bound = %.200s", got)
			}
			if !tt.same && len(got) > tt.limit+700 {
				t.Errorf("%d bytes remain", len(got))
			}
			for _, want := range tt.has {
				if !strings.Contains(got, want) {
					t.Errorf("%q is missing in %.300s", want, got)
				}
			}
			for _, bad := range tt.not {
				if strings.Contains(got, bad) {
					t.Errorf("%q is in %.300s", bad, got)
				}
			}
		})
	}
}

func BenchmarkCall(b *testing.B) {
	r := newFixture(b)
	r.do = succeed
	b.ReportAllocs()
	for b.Loop() {
		if _, err := r.Call(b.Context(), call("read", `{"path":"a"}`)); err != nil {
			b.Fatal(err)
		}
		r.records = r.records[:0]
		r.out.Reset()
	}
}
