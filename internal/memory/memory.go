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
	// startPhase is how long after the last server's first connection the start
	// counts as over, and again until what it left to do later is done.
	startPhase = 1500 * time.Millisecond

	// startGC is how much garbage the start may make, in percent of what
	// lives. It makes much for the little that stays: collected late, that
	// little would lie scattered over a heap three times its size.
	startGC = 30

	defaultGC = 100 // Go's own default
	maxGC     = 800 // of a small heap under load

	// headroom is how much garbage a busy gateway may gather between two
	// collections. Above that much live heap the default applies.
	headroom = 64 << 20

	// busyInterval distinguishes load from idling: under load, collections follow
	// each other faster than this with the default setting. With a higher one
	// the same load collects as much later, up to maxBusyInterval, which must be
	// shorter than calmAfter.
	busyInterval    = time.Second
	maxBusyInterval = 2500 * time.Millisecond

	// servingInRow collections with a call in progress are service, which the
	// setting of the start must not slow down.
	servingInRow = 8

	// calmAfter is how long after the last collection under load the garbage
	// that has gathered since goes back to the system.
	calmAfter = 3 * time.Second
)

// manager adapts the setting after each collection, so it costs an idle program
// nothing.
type manager struct {
	serving func() bool // a call is in progress
	release func()      // collects and gives memory back to the system

	mu       sync.Mutex
	calm     *time.Timer // runs while there is, or was just, load; nil before
	percent  int         // as last set; 0 if it was set elsewhere
	starting bool
	inRow    int       // collections during the start that saw a call in progress
	last     time.Time // of the collection before
	stopped  atomic.Bool
}

// newManager manages GOGC, unless the environment sets it.
func newManager(serving func() bool) *manager {
	m := &manager{serving: serving, release: debug.FreeOSMemory, starting: true, percent: startGC, last: time.Now()}
	if usual := debug.SetGCPercent(startGC); usual != defaultGC { // someone knows better
		debug.SetGCPercent(usual)
		m.percent = 0
		return m
	}
	m.afterNext()
	return m
}

// afterNext has the setting looked at after the next collection.
func (m *manager) afterNext() {
	sentinel := new([16]byte)
	runtime.AddCleanup(sentinel, func(m *manager) {
		if m.stopped.Load() {
			return
		}
		m.collected(time.Now(), liveHeap())
		m.afterNext()
	}, m)
}

// collected adapts the setting to what a collection has shown.
func (m *manager) collected(now time.Time, live uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	since := now.Sub(m.last)
	m.last = now
	if m.starting {
		// Whoever calls already must not pay for the start; but single calls
		// while servers connect are no load.
		if m.inRow++; !m.serving() {
			m.inRow = 0
		}
		if m.inRow >= servingInRow {
			m.set(defaultGC)
		}
		return
	}
	m.set(percentFor(since, live, m.percent))
	switch {
	case m.percent <= defaultGC: // not under load, or GOGC decides
	case m.calm == nil:
		m.calm = time.AfterFunc(calmAfter, m.calmed)
	default:
		m.calm.Reset(calmAfter)
	}
}

// calmed ends the setting for load, and gives its garbage back.
func (m *manager) calmed() {
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
	if m.calm != nil {
		m.calm.Stop()
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
