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

	"junctor/internal/tool"
)

func TestWaitsForAnUpstreamThatStarts(t *testing.T) {
	r := newFixture(t)
	r.await = func(servers ...string) []string {
		if fmt.Sprint(servers) != "[late]" {
			t.Errorf("awaited %v", servers)
		}
		r.offer(t, "late", `{"name":"tool","inputSchema":{}}`)
		return nil
	}
	c := call("tool", `{}`)
	c.Server = "late"
	if _, err := r.Call(t.Context(), c); err != nil {
		t.Errorf("Call = %v", err)
	}

	r.connecting = []string{"p1", "p2", "p3", "p4", "p5", "p6"}
	r.await = func(servers ...string) []string { return servers }
	_, err := r.Call(t.Context(), call("nowhere", `{}`))
	if tool.KindOf(err) != tool.ToolNotFound || !strings.Contains(err.Error(), "p1") || !strings.Contains(err.Error(), "1 more") {
		t.Errorf("a pending upstream is not named: %v", err)
	}
	hidden := call("tool", `{}`)
	hidden.Server, hidden.Caller = "secret", tool.Caller{ID: "k", Servers: []string{"fs"}}
	r.await = func(...string) []string { t.Error("awaited a server that the caller may not see"); return nil }
	if _, err := r.Call(t.Context(), hidden); tool.KindOf(err) != tool.ServerNotFound {
		t.Errorf("error = %v", err)
	}
	// A name without a server does not wait for hidden servers or disclose
	// them.
	for _, caller := range []tool.Caller{{ID: "k", Servers: []string{"fs"}}, {ID: "k", Tools: []string{"fs:*"}}} {
		hidden = call("nowhere", `{}`)
		hidden.Caller = caller
		if _, err := r.Call(t.Context(), hidden); tool.KindOf(err) != tool.ToolNotFound || strings.Contains(err.Error(), "p1") {
			t.Errorf("error = %v", err)
		}
	}
}

func TestTimeouts(t *testing.T) {
	hang := func(ctx context.Context, _ string, _ tool.Request) (json.RawMessage, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	t.Run("silence", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t)
			r.do = hang
			begun := time.Now()
			_, err := r.Call(t.Context(), call("write", `{}`))
			if tool.KindOf(err) != tool.Timeout || time.Since(begun) != 30*time.Second || !strings.Contains(err.Error(), "within 30s (the server's timeoutMs)") {
				t.Errorf("after %s: %v", time.Since(begun), err)
			}
		})
	})
	t.Run("the call's own", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t)
			r.do = hang
			begun := time.Now()
			c := call("write", `{}`)
			c.Timeout = time.Second
			if _, err := r.Call(t.Context(), c); tool.KindOf(err) != tool.Timeout || time.Since(begun) != time.Second {
				t.Errorf("after %s: %v", time.Since(begun), err)
			}
		})
	})
	t.Run("progress extends, up to the maximum", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t)
			received := 0
			r.do = func(ctx context.Context, _ string, req tool.Request) (json.RawMessage, error) {
				for {
					select {
					case <-ctx.Done():
						return nil, ctx.Err()
					case <-time.After(20 * time.Second):
						req.Exchange.Notify("notifications/progress", json.RawMessage(`{"progressToken":1}`))
					}
				}
			}
			c := call("write", `{}`)
			c.Exchange.Notify = func(string, json.RawMessage) { received++ }
			begun := time.Now()
			_, err := r.Call(t.Context(), c)
			if tool.KindOf(err) != tool.Timeout || time.Since(begun) != 10*time.Minute || received < 29 || !strings.Contains(err.Error(), "within 10m0s (the server's maxTimeoutMs)") {
				t.Errorf("after %s and %d notifications: %v", time.Since(begun), received, err)
			}
		})
	})
	t.Run("progress that the caller did not ask for", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t)
			r.do = func(ctx context.Context, _ string, req tool.Request) (json.RawMessage, error) {
				for range 10 {
					select {
					case <-ctx.Done():
						return nil, ctx.Err()
					case <-time.After(20 * time.Second):
						req.Exchange.Notify("notifications/progress", json.RawMessage(`{"progress":1}`))
					}
				}
				return json.RawMessage(`{}`), nil
			}
			c := call("write", `{}`)
			c.Exchange.Notify = func(string, json.RawMessage) { t.Error("it reached the caller") }
			if _, err := r.Call(t.Context(), c); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("waiting for its turn is not silence", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t)
			r.do = func(ctx context.Context, _ string, req tool.Request) (json.RawMessage, error) {
				req.Exchange.Queued(true)
				time.Sleep(time.Hour)
				req.Exchange.Queued(false)
				return hang(ctx, "", req)
			}
			begun := time.Now()
			_, err := r.Call(t.Context(), call("write", `{}`))
			if tool.KindOf(err) != tool.Timeout || time.Since(begun) != time.Hour+30*time.Second {
				t.Errorf("after %s: %v", time.Since(begun), err)
			}
		})
	})
	t.Run("two questions, and the second is slow to be answered", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t)
			r.do = func(ctx context.Context, _ string, req tool.Request) (json.RawMessage, error) {
				var both sync.WaitGroup
				for _, method := range []string{"quick", "slow"} {
					both.Go(func() { _, _ = req.Exchange.Ask(ctx, method, nil) })
				}
				both.Wait()
				return json.RawMessage(`{}`), ctx.Err()
			}
			c := call("write", `{}`)
			c.Exchange.Ask = func(_ context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
				if method == "slow" {
					time.Sleep(5 * time.Minute)
				}
				return json.RawMessage(`{}`), nil
			}
			if _, err := r.Call(t.Context(), c); err != nil {
				t.Error(err)
			}
		})
	})
	t.Run("a question stops the clock", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t)
			r.do = func(ctx context.Context, _ string, req tool.Request) (json.RawMessage, error) {
				return req.Exchange.Ask(ctx, "elicitation/create", nil)
			}
			c := call("write", `{}`)
			c.Exchange.Ask = func(context.Context, string, json.RawMessage) (json.RawMessage, error) {
				time.Sleep(5 * time.Minute)
				return json.RawMessage(`{"action":"accept"}`), nil
			}
			if res, err := r.Call(t.Context(), c); err != nil || string(res.Raw) != `{"action":"accept"}` {
				t.Errorf("Call = %s, %v", res.Raw, err)
			}
		})
	})
	t.Run("a caller that goes away", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t)
			r.do = hang
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			_, err := r.Call(ctx, call("write", `{}`))
			if tool.KindOf(err) != tool.Canceled {
				t.Errorf("error = %v", err)
			}
			if rec := r.only(t); rec.Kind != "CANCELED" {
				t.Errorf("record = %+v", rec)
			}
			if s := r.Stats(tool.Name{Server: "fs", Tool: "write"}); s.Failures != 0 {
				t.Errorf("a cancelled call counts as the tool's failure: %+v", s)
			}
		})
	})
	t.Run("no retry for a caller that is gone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			r := newFixture(t)
			ctx, cancel := context.WithCancel(t.Context())
			r.do = func(context.Context, string, tool.Request) (json.RawMessage, error) {
				time.AfterFunc(10*time.Millisecond, cancel)
				return nil, io.EOF
			}
			r.Call(ctx, call("read", `{"path":"a"}`))
			if r.calls != 1 {
				t.Errorf("%d attempts", r.calls)
			}
		})
	})
}
