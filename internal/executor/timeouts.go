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
// upstream. Progress restarts the idle timeout, and it is paused while the user
// is asked. Both start again when a queued call is sent.
type timeouts struct {
	idle, total time.Duration // 0 means none

	mu        sync.Mutex
	idleTimer *time.Timer
	allTimer  *time.Timer
	asked     int // questions that are open
	queued    bool
	ended     bool
}

func newTimeouts(idle time.Duration, silent func(), total time.Duration, tooLong func()) *timeouts {
	t := &timeouts{idle: idle, total: total}
	t.mu.Lock() // the timers may fire before they are set
	defer t.mu.Unlock()
	if idle > 0 {
		t.idleTimer = time.AfterFunc(idle, silent)
	}
	if total > 0 {
		t.allTimer = time.AfterFunc(total, tooLong)
	}
	return t
}

// watch wraps the callbacks of an exchange to observe progress, questions and
// queueing. Progress without a token was not requested by the caller. Questions
// end when x stops waiting.
func (t *timeouts) watch(e *tool.Exchange, x *Executor) {
	notify, ask := e.Notify, e.Ask
	e.Notify = func(method string, params json.RawMessage) {
		if method == mcp.MethodProgress {
			t.note(0)
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
			t.note(+1)
			defer t.note(-1)
			ctx, cancel := x.untilStopping(ctx)
			defer cancel()
			answer, err := ask(ctx, method, params)
			if err != nil && errors.Is(context.Cause(ctx), tool.ErrStopping) {
				return nil, &mcp.Error{Code: tool.Unavailable.JSONRPC(), Message: "the gateway is stopping before the question was answered"}
			}
			return answer, err
		}
	}
	e.Queued = t.wait
}

// note restarts the idle timeout after a sign of progress. questions is the change
// in the number of open questions, during which the timeout is paused.
func (t *timeouts) note(questions int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asked += questions
	t.restartIdle()
}

// restartIdle sets the idle timer as the state asks. The lock is held.
func (t *timeouts) restartIdle() {
	switch {
	case t.idleTimer == nil || t.ended:
	case t.asked > 0 || t.queued:
		t.idleTimer.Stop()
	default:
		t.idleTimer.Reset(t.idle)
	}
}

// wait stops both timeouts while the call waits for its turn.
func (t *timeouts) wait(queued bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queued = queued
	t.restartIdle()
	switch {
	case t.allTimer == nil || t.ended:
	case queued:
		t.allTimer.Stop()
	default:
		t.allTimer.Reset(t.total)
	}
}

func (t *timeouts) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = true
	for _, timer := range []*time.Timer{t.idleTimer, t.allTimer} {
		if timer != nil {
			timer.Stop()
		}
	}
}
