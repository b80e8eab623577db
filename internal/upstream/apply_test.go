package upstream_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"junctor/internal/setting"
	"junctor/internal/tool"
	"junctor/internal/upstream"
	"junctor/internal/upstream/upstreamtest"
)

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
