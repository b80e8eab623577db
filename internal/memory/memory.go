// Package memory sets how often the garbage is collected: often while the
// program starts, seldom while it is under load and its heap is small, and with
// Go's default otherwise. GOGC in the environment turns it off.
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
	// startPhase is how long after the first connections of all servers the start
	// ends, and how long after that its deferred work is done.
	startPhase = 1500 * time.Millisecond

	// startGC is the GC percentage during the start, which allocates much of
	// which little stays in use. With late collections the live objects would
	// be scattered over a heap three times their size.
	startGC = 30

	defaultGC = 100 // Go's own default
	maxGC     = 800 // of a small heap under load

	// headroom is how much garbage a busy gateway may gather between two
	// collections. Above that much live heap the default applies.
	headroom = 64 << 20

	// busyInterval is the longest interval between two collections under load,
	// with the default setting. With a higher setting the intervals are longer,
	// up to maxBusyInterval, which must be shorter than idleAfter.
	busyInterval    = time.Second
	maxBusyInterval = 2500 * time.Millisecond

	// minLoadedGCs is how many consecutive collections during a call end the
	// setting of the start, which would slow calls down.
	minLoadedGCs = 8

	// idleAfter is how long after the last collection under load unused memory
	// is returned to the system.
	idleAfter = 3 * time.Second
)

// manager adapts the setting after each collection, so it costs an idle program
// nothing.
type manager struct {
	serving func() bool // a call is in progress
	release func()      // collects and gives memory back to the system

	mu        sync.Mutex
	idleTimer *time.Timer // runs while there is, or was just, load; nil before
	percent   int         // as last set; 0 if it was set elsewhere
	starting  bool
	loadedGCs int       // collections during the start that saw a call in progress
	last      time.Time // of the collection before
	stopped   atomic.Bool
}

// newManager manages GOGC, unless the environment sets it.
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
		// The setting of the start must not slow down calls that are made
		// already. Single calls while servers connect are not load.
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

// percentFor is how much garbage may gather, in percent of the live heap, when
// the last two collections were so far apart under the current setting.
func percentFor(since time.Duration, live uint64, current int) int {
	if since >= min(busyInterval*time.Duration(max(current, defaultGC))/defaultGC, maxBusyInterval) {
		return defaultGC
	}
	return int(min(max(headroom*100/max(live, 1), defaultGC), maxGC))
}

// set changes the setting where that makes a difference: each change stops
// the program for a moment. m.mu is held.
func (m *manager) set(percent int) {
	if m.percent == 0 || max(percent, m.percent)-min(percent, m.percent) < m.percent/8 {
		return
	}
	m.percent = percent
	debug.SetGCPercent(percent)
}

// started ends the setting of the start.
func (m *manager) started() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.starting {
		m.starting = false
		m.set(defaultGC)
	}
}

// stop gives the setting back.
func (m *manager) stop() {
	m.stopped.Store(true)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.idleTimer != nil {
		m.idleTimer.Stop()
	}
	m.set(defaultGC)
}

// liveHeap is what the last collection found to be in use.
func liveHeap() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindUint64 {
		return headroom
	}
	return sample[0].Value.Uint64()
}

// Run keeps the program small while it starts and idles, and lets it collect
// less often under load, until ctx is done. started waits for the end of the
// start, and inFlight counts the requests that somebody waits for: when there
// are none, what only the start needed goes back to the system.
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
