package executor

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"junctor/internal/mcp"
	"junctor/internal/rawjson"
	"junctor/internal/tool"
)

// timeouts are the idle timeout and the total timeout of one call to an
// upstream. Progress restarts the idle timeout, and an open question to the
// user pauses it. Both restart when a queued call is sent.
type timeouts struct {
	idle, total time.Duration // 0 means none

	mu         sync.Mutex
	idleTimer  *time.Timer
	totalTimer *time.Timer
	questions  int // open questions to the user
	queued     bool
	ended      bool
}

func newTimeouts(idle time.Duration, onIdle func(), total time.Duration, onTotal func()) *timeouts {
	t := &timeouts{idle: idle, total: total}
	t.mu.Lock() // the timers may fire before they are set
	defer t.mu.Unlock()
	if idle > 0 {
		t.idleTimer = time.AfterFunc(idle, onIdle)
	}
	if total > 0 {
		t.totalTimer = time.AfterFunc(total, onTotal)
	}
	return t
}

// watch wraps the callbacks of an exchange to observe progress, questions and
// queueing. Progress without a token was not requested by the caller and is not
// passed on. Questions are cancelled by x.StopWaiting.
func (t *timeouts) watch(e *tool.Exchange, x *Executor) {
	notify, ask := e.Notify, e.Ask
	e.Notify = func(method string, params json.RawMessage) {
		if method == mcp.MethodProgress {
			t.update(0)
			if rawjson.Field(params, "progressToken") == nil {
				return
			}
		}
		if notify != nil {
			notify(method, params)
		}
	}
	if ask != nil {
		e.Ask = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			t.update(+1)
			defer t.update(-1)
			ctx, cancel := x.stoppable(ctx)
			defer cancel()
			answer, err := ask(ctx, method, params)
			if err != nil && errors.Is(context.Cause(ctx), tool.ErrStopping) {
				return nil, &mcp.Error{Code: tool.Unavailable.JSONRPC(), Message: "the gateway is stopping before the question was answered"}
			}
			return answer, err
		}
	}
	e.Queued = t.setQueued
}

// update restarts the idle timeout after progress. questions is the change in
// the number of open questions; while there is one the timeout is paused.
func (t *timeouts) update(questions int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.questions += questions
	t.restartIdle()
}

// restartIdle restarts the idle timer, or stops it while the call is queued or a
// question is open. The caller holds t.mu.
func (t *timeouts) restartIdle() {
	switch {
	case t.idleTimer == nil || t.ended:
	case t.questions > 0 || t.queued:
		t.idleTimer.Stop()
	default:
		t.idleTimer.Reset(t.idle)
	}
}

// setQueued stops both timeouts while the call is queued, and restarts them
// when it is sent.
func (t *timeouts) setQueued(queued bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queued = queued
	t.restartIdle()
	switch {
	case t.totalTimer == nil || t.ended:
	case queued:
		t.totalTimer.Stop()
	default:
		t.totalTimer.Reset(t.total)
	}
}

func (t *timeouts) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	for _, timer := range []*time.Timer{t.idleTimer, t.totalTimer} {
		if timer != nil {
			timer.Stop()
		}
	}
}
