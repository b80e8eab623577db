// Package memory sets how often garbage is collected: often while the program
// starts, rarely while it is under load and its heap is small, and with Go's
// default otherwise. GOGC in the environment turns this off.
package memory

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// startPhase is how long after the first connections of all servers the
	// start is considered finished. Deferred work may take as long again.
	startPhase = 1500 * time.Millisecond

	// startGC is the GC percentage during the start, which allocates much that
	// does not stay in use. With late collections the live objects would be
	// scattered over a heap three times their size.
	startGC = 30

	defaultGC = 100 // Go's own default
	maxGC     = 800 // of a small heap under load

	// headroom is how much garbage a busy gateway may accumulate between two
	// collections. Above that much live heap the default applies.
	headroom = 64 << 20

	// busyInterval is the interval between two collections below which the
	// program is considered under load, with the default setting. With a higher
	// setting the limit is proportionally longer, up to maxBusyInterval, which
	// must be shorter than idleAfter.
	busyInterval    = time.Second
	maxBusyInterval = 2500 * time.Millisecond

	// minLoadedGCs is the number of consecutive collections during calls that
	// end the setting of the start, which would slow calls down.
	minLoadedGCs = 8

	// idleAfter is how long after the last collection under load unused memory
	// is returned to the system.
	idleAfter = 3 * time.Second
)

// manager adapts the setting after each collection, so that it costs nothing
// while the program is idle.
type manager struct {
	serving func() bool // reports whether a call is in flight
	release func()      // collects garbage and returns memory to the system

	mu        sync.Mutex
	idleTimer *time.Timer // runs during and shortly after load; nil before the first load
	percent   int         // the current setting; 0 if the environment sets it
	starting  bool
	loadedGCs int       // consecutive collections during the start with a call in flight
	last      time.Time // time of the previous collection
	stopped   atomic.Bool
}

// newManager returns a manager that sets GOGC, unless the environment does.
func newManager(serving func() bool) *manager {
	m := &manager{serving: serving, release: debug.FreeOSMemory, starting: true, percent: startGC, last: time.Now()}
	if previous := debug.SetGCPercent(startGC); previous != defaultGC { // GOGC is set
		debug.SetGCPercent(previous)
		m.percent = 0
		return m
	}
	m.watchNextGC()
	return m
}

// watchNextGC calls onGC after the next collection.
func (m *manager) watchNextGC() {
	sentinel := new([16]byte)
	runtime.AddCleanup(sentinel, func(m *manager) {
		if m.stopped.Load() {
			return
		}
		m.onGC(time.Now(), liveHeap())
		m.watchNextGC()
	}, m)
}

// onGC adapts the setting after a collection.
func (m *manager) onGC(now time.Time, live uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	since := now.Sub(m.last)
	m.last = now
	if m.starting {
		// The setting of the start must not slow down calls. Single calls while
		// servers connect are not load.
		if m.loadedGCs++; !m.serving() {
			m.loadedGCs = 0
		}
		if m.loadedGCs >= minLoadedGCs {
			m.set(defaultGC)
		}
		return
	}
	m.set(percentFor(since, live, m.percent))
	switch {
	case m.percent <= defaultGC: // not under load, or GOGC decides
	case m.idleTimer == nil:
		m.idleTimer = time.AfterFunc(idleAfter, m.onIdle)
	default:
		m.idleTimer.Reset(idleAfter)
	}
}

// onIdle ends the setting for load and returns unused memory to the system.
func (m *manager) onIdle() {
	m.mu.Lock()
	m.set(defaultGC)
	m.mu.Unlock()
	if !m.stopped.Load() {
		m.release()
	}
}

// percentFor returns the GC percentage for the time between the last two
// collections, the live heap and the current setting.
func percentFor(since time.Duration, live uint64, current int) int {
	if since >= min(busyInterval*time.Duration(max(current, defaultGC))/defaultGC, maxBusyInterval) {
		return defaultGC
	}
	return int(min(max(headroom*100/max(live, 1), defaultGC), maxGC))
}

// set changes the setting if the difference is large enough, because each
// change briefly stops the program. The caller holds m.mu.
func (m *manager) set(percent int) {
	if m.percent == 0 || max(percent, m.percent)-min(percent, m.percent) < m.percent/8 {
		return
	}
	m.percent = percent
	debug.SetGCPercent(percent)
}

// started marks the end of the start and restores the default setting.
func (m *manager) started() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.starting {
		m.starting = false
		m.set(defaultGC)
	}
}

// stop restores the default setting.
func (m *manager) stop() {
	m.stopped.Store(true)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.idleTimer != nil {
		m.idleTimer.Stop()
	}
	m.set(defaultGC)
}

// liveHeap returns the size of the live heap at the last collection.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return headroom
	}
	return sample[0].Value.Uint64()
}

// Run keeps memory usage low while the program starts and is idle, and makes
// collections less frequent under load, until ctx is done. started waits for
// the first connections, and inFlight returns the number of pending requests:
// if there are none after the start, unused memory is returned to the system.
func Run(ctx context.Context, started func(context.Context), inFlight func() int) error {
	m := newManager(func() bool { return inFlight() > 0 })
	defer m.stop()
	started(ctx)
	for range 2 {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(startPhase):
		}
		m.started()
		if inFlight() == 0 {
			debug.FreeOSMemory()
		}
	}
	<-ctx.Done()
	return nil
}
