package memory

import (
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestPercentFor(t *testing.T) {
	for name, tt := range map[string]struct {
		since   time.Duration
		live    uint64
		current int
		want    int
	}{
		"idle":                {busyInterval, 4 << 20, defaultGC, defaultGC},
		"busy, small heap":    {10 * time.Millisecond, 4 << 20, defaultGC, maxGC},
		"busy, middling heap": {10 * time.Millisecond, 32 << 20, defaultGC, 200},
		"busy, large heap":    {10 * time.Millisecond, 1 << 30, defaultGC, defaultGC},
		"busy, nothing known": {0, 0, defaultGC, maxGC},
		"set elsewhere":       {busyInterval, 4 << 20, 0, defaultGC},
		// With the raised setting the same load causes fewer collections.
		"as busy as before": {4 * (busyInterval - time.Millisecond) / 2, 4 << 20, maxGC, maxGC},
		"a middling one":    {busyInterval + time.Millisecond, 32 << 20, 200, 200},
		"no longer busy":    {maxBusyInterval, 4 << 20, maxGC, defaultGC},
	} {
		if got := percentFor(tt.since, tt.live, tt.current); got != tt.want {
			t.Errorf("%s: %d %%, want %d", name, got, tt.want)
		}
	}
}

// TestMemoryFollowsLoad: the setting of the start ends when collections run
// during calls, or with the start. Load raises the setting, idle time and stop
// restore it.
func TestMemoryFollowsLoad(t *testing.T) {
	before := debug.SetGCPercent(defaultGC)
	defer debug.SetGCPercent(before)
	var serving atomic.Bool
	m := newManager(serving.Load)
	defer m.stop()
	current := func() int { // the setting of the runtime
		p := debug.SetGCPercent(defaultGC)
		debug.SetGCPercent(p)
		return p
	}
	if got := current(); got != startGC {
		t.Fatalf("the start runs with %d %%, want %d", got, startGC)
	}
	serving.Store(true)
	for deadline := time.Now().Add(time.Minute); current() == startGC; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("a call did not end the setting of the start")
		}
		runtime.GC()
	}
	m.stop()
	m = &manager{serving: serving.Load, release: func() {}, percent: defaultGC} // not called by collections
	m.onGC(time.Now(), 4<<20)
	m.onGC(time.Now(), 4<<20)
	if got := current(); got != maxGC {
		t.Errorf("under load %d %%, want %d", got, maxGC)
	}
	m.onGC(time.Now().Add(time.Minute), 4<<20)
	if got := current(); got != defaultGC {
		t.Errorf("idle %d %%, want %d", got, defaultGC)
	}
	m.stop()
	if got := current(); got != defaultGC {
		t.Errorf("after the end %d %%, want %d", got, defaultGC)
	}
}

func TestMemoryRespectsGOGC(t *testing.T) {
	before := debug.SetGCPercent(250)
	defer debug.SetGCPercent(before)
	m := newManager(func() bool { return true })
	m.onGC(time.Now(), 1)
	m.started()
	m.stop()
	if got := debug.SetGCPercent(250); got != 250 {
		t.Errorf("GOGC=250 became %d", got)
	}
}

// TestMemoryIsReleasedAfterLoad: memory is returned to the system soon after
// load, and not during it.
func TestMemoryIsReleasedAfterLoad(t *testing.T) {
	before := debug.SetGCPercent(defaultGC)
	defer debug.SetGCPercent(before)
	synctest.Test(t, func(t *testing.T) {
		var count atomic.Int32
		m := &manager{serving: func() bool { return true }, release: func() { count.Add(1) }, percent: defaultGC}
		state := func() (released int32, percent int) {
			m.mu.Lock()
			defer m.mu.Unlock()
			return count.Load(), m.percent
		}
		for range 100 {
			time.Sleep(100 * time.Millisecond)
			m.onGC(time.Now(), 4<<20)
		}
		if released, percent := state(); released > 0 || percent != maxGC {
			t.Fatalf("under load: released %d times, %d %%", released, percent)
		}
		time.Sleep(idleAfter)
		synctest.Wait()
		if released, percent := state(); released != 1 || percent != defaultGC {
			t.Fatalf("%s later: released %d times, %d %%", idleAfter, released, percent)
		}
		m.onGC(time.Now(), 4<<20) // the collection of the release itself
		time.Sleep(time.Hour)
		synctest.Wait()
		if released, _ := state(); released != 1 {
			t.Fatalf("released %d times while idle", released)
		}
		m.stop()
	})
}
