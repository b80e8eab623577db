package executor

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"junctor/internal/tool"
)

// patience is how long a call waits for a sign of life of its upstream. Each
// progress is one, and the clock stands still while someone is being asked.
type patience struct {
	lasts time.Duration

	mu    sync.Mutex
	clock *time.Timer
	asked int // questions that are open
	ended bool
}

func newPatience(lasts time.Duration, over func()) *patience {
	return &patience{lasts: lasts, clock: time.AfterFunc(lasts, over)}
}

// watch hears the progress and the questions of an exchange.
func (p *patience) watch(e *tool.Exchange) {
	notify, ask := e.Notify, e.Ask
	e.Notify = func(method string, params json.RawMessage) {
		if method == "notifications/progress" {
			p.note(0)
		}
		if notify != nil {
			notify(method, params)
		}
	}
	if ask != nil {
		e.Ask = func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
			p.note(+1)
			defer p.note(-1)
			return ask(ctx, method, params)
		}
	}
}

// note takes a sign of life, by which so many more questions are open.
func (p *patience) note(questions int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked += questions
	switch {
	case p.ended:
	case p.asked > 0:
		p.clock.Stop()
	default:
		p.clock.Reset(p.lasts)
	}
}

func (p *patience) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.clock.Stop()
}
