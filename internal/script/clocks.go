package script

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// cpuMeter ends a run when the engine has used its CPU time.
type cpuMeter struct {
	limit    time.Duration
	exceeded func()

	mu      sync.Mutex
	spent   time.Duration // before the current period
	clock   cpuClock      // of the current period
	start   time.Duration
	running bool
	timer   *time.Timer
}

// enter begins a period in which the calling goroutine runs the engine.
func (m *cpuMeter) enter() {
	runtime.LockOSThread()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.clock = threadClock()
	m.start = m.clock.now()
	m.running = true
	if m.timer == nil {
		m.timer = time.AfterFunc(m.limit-m.spent, m.check)
	} else {
		m.timer.Reset(m.limit - m.spent)
	}
}

// check runs when the limit may have been reached: a period takes at least as
// long as the CPU time that it uses.
func (m *cpuMeter) check() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.running {
		return
	}
	if left := m.limit - m.spent - (m.clock.now() - m.start); left > 0 {
		m.timer.Reset(max(left, time.Millisecond))
		return
	}
	m.exceeded()
}

// leave ends the period.
func (m *cpuMeter) leave() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.timer.Stop()
	m.running = false
	if m.spent += m.clock.now() - m.start; m.spent >= m.limit {
		m.exceeded()
	}
	runtime.UnlockOSThread()
}

// wallClock ends a run after a time that does not include pauses.
type wallClock struct {
	mu      sync.Mutex
	left    time.Duration
	since   time.Time
	pauses  int
	timer   *time.Timer
	stopped bool
}

func newWallClock(limit time.Duration, exceeded func()) *wallClock {
	return &wallClock{left: limit, since: time.Now(), timer: time.AfterFunc(limit, exceeded)}
}

func (w *wallClock) pause() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pauses++; w.pauses == 1 {
		w.timer.Stop()
		w.left -= time.Since(w.since)
	}
}

func (w *wallClock) resume() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pauses--; w.pauses == 0 && !w.stopped {
		w.since = time.Now()
		w.timer.Reset(max(w.left, 0))
	}
}

func (w *wallClock) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopped = true
	w.timer.Stop()
}

// Pause stops the wall clock of the run whose call has this context, until
// resume is called. It is used while a person is asked.
func Pause(ctx context.Context) (resume func()) {
	r, ok := ctx.Value(runKey{}).(*run)
	if !ok {
		return func() {}
	}
	r.wall.pause()
	return sync.OnceFunc(r.wall.resume)
}
