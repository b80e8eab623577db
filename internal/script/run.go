package script

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Host contains the functions through which a program reaches the outside.
type Host struct {
	// Call executes __host.call on a separate goroutine. An [Exception] is
	// thrown in the program unchanged, any other error as an error without a
	// code.
	Call func(ctx context.Context, name string, argument json.RawMessage) (json.RawMessage, error)
	// Sync executes __host.sync; it must not block.
	Sync func(name string, argument json.RawMessage) (json.RawMessage, error)
}

// Exception is an error that a program can catch. Its JSON members become
// properties of the JavaScript error.
type Exception struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message"`
	Details any    `json:"details,omitempty"`
}

// Error returns the message.
func (e *Exception) Error() string { return e.Message }

// Program is one program and its limits.
type Program struct {
	Source string // the body of an async function
	Host   Host
	Limits Limits
	Owner  string // whose share of the memory the program uses; may be empty
}

// Outcome is how a program ended.
type Outcome struct {
	Value   json.RawMessage // what the program returned; null for nothing
	Log     []string        // lines written with console.log
	Dropped int             // number of lines over the limit
	Calls   int
	CPU     time.Duration
}

// maxSleeps bounds the timers of a program.
const maxSleeps = 1000

// run is a running program. One goroutine runs the engine. Each call runs on
// its own goroutine and reports to completed.
type run struct {
	ctx      context.Context
	cancel   context.CancelCauseFunc
	host     Host
	limits   Limits
	owner    string
	cpu      cpuMeter
	wall     *wallClock
	instance *instance

	out      Outcome
	logged   int
	finished bool
	failure  *Error

	calls     sync.WaitGroup
	completed chan completion
	active    int // calls in progress
	sleeps    int
	queue     []pendingCall
	waiting   int // bytes of arguments in queue
}

type pendingCall struct{ id, name, argument string }

type completion struct {
	id      string
	outcome string // encoded for the prelude
	sleep   bool
}

// Run runs a program until it ends. Any error is an [*Error]; the outcome then
// still contains what is known of the run.
func (e *Engine) Run(ctx context.Context, p Program) (Outcome, error) {
	r := &run{host: p.Host, owner: p.Owner, limits: p.Limits.withDefaults()}
	if len(p.Source) > r.limits.Source {
		return r.out, limitError(SourceLimit, "the script has %d bytes, more than %d", len(p.Source), r.limits.Source)
	}
	if err := e.Warm(); err != nil {
		e := &Error{Code: Failed, Message: "the script engine cannot be started", Err: err}
		if errors.Is(err, ErrNotBuilt) {
			e.Message = ErrNotBuilt.Error()
		}
		return r.out, e
	}
	ctx, r.cancel = context.WithCancelCause(ctx)
	r.ctx = context.WithValue(ctx, runKey{}, r)
	r.completed = make(chan completion, r.limits.Parallel+maxSleeps) // so that reporting never blocks
	r.cpu.limit, r.cpu.exceeded = r.limits.CPU, func() { r.cancel(r.limits.cpuError()) }
	r.wall = newWallClock(r.limits.Wall, func() { r.cancel(r.limits.wallError()) })
	defer r.calls.Wait()
	defer r.cancel(nil)
	defer r.wall.stop()

	err := e.execute(r, p.Source)
	r.out.CPU = r.cpu.spent
	if err == nil {
		return r.out, nil
	}
	r.out.Value = nil
	if known, ok := errors.AsType[*Error](err); ok {
		return r.out, known
	}
	if cause := context.Cause(r.ctx); cause != nil {
		if known, ok := errors.AsType[*Error](cause); ok {
			return r.out, known
		}
		return r.out, &Error{Code: Canceled, Message: "the script was cancelled", Err: cause}
	}
	return r.out, &Error{Code: Failed, Message: "the script engine failed; the gateway's log has the cause", Err: err}
}

func (e *Engine) execute(r *run, source string) error {
	function, err := e.prepare(r, source)
	if err != nil {
		return err
	}
	in := r.instance
	defer e.release(in, e.programs)
	dispatch := e.programs.value
	r.cpu.enter()
	in.apply(dispatch, in.text("begin"), function)
	in.drain()
	r.cpu.leave()
	for in.err == nil && r.ctx.Err() == nil {
		if r.active+r.sleeps+len(r.queue) == 0 || r.finished && r.active+len(r.queue) == 0 {
			break
		}
		select {
		case <-r.ctx.Done():
		case c := <-r.completed:
			r.complete(c)
			if r.finished {
				continue // a call whose result is not awaited
			}
			r.cpu.enter()
			in.apply(dispatch, in.text("settle"), in.text(c.id), in.text(c.outcome))
			in.drain()
			r.cpu.leave()
		}
	}
	switch {
	case in.err != nil:
		return in.err
	case r.ctx.Err() != nil:
		return context.Cause(r.ctx)
	case r.failure != nil:
		return r.failure
	case !r.finished:
		return limitError(NeverSettled, "the script awaits a promise that never settles")
	}
	return nil
}

// complete processes a completed call or sleep, and starts the next queued
// call.
func (r *run) complete(c completion) {
	if c.sleep {
		r.sleeps--
		return
	}
	r.active--
	if len(r.queue) > 0 {
		next := r.queue[0]
		r.queue = r.queue[1:]
		r.waiting -= len(next.argument)
		r.start(next)
	}
}

func (r *run) start(c pendingCall) {
	r.active++
	r.calls.Go(func() {
		value, err := r.host.Call(r.ctx, c.name, json.RawMessage(c.argument))
		r.completed <- completion{id: c.id, outcome: outcome(value, err)}
	})
}

func outcome(value json.RawMessage, err error) string {
	if err == nil {
		return "=" + string(value)
	}
	thrown, ok := errors.AsType[*Exception](err)
	if !ok {
		thrown = &Exception{Message: err.Error()}
	}
	b, err := json.Marshal(thrown)
	if err != nil {
		b, _ = json.Marshal(&Exception{Code: thrown.Code, Message: thrown.Message})
	}
	return "!" + string(b)
}

// operation executes an operation that the program requested of the host.
func (r *run) operation(args [4]string) string {
	switch args[0] {
	case "call":
		if r.out.Calls++; r.out.Calls > r.limits.Calls {
			r.out.Calls--
			r.cancel(r.limits.callError())
			return ""
		}
		c := pendingCall{id: args[1], name: args[2], argument: args[3]}
		if r.active < r.limits.Parallel {
			r.start(c)
			return ""
		}
		if r.waiting += len(c.argument); r.waiting > r.limits.Memory {
			r.cancel(r.limits.memoryError())
			return ""
		}
		r.queue = append(r.queue, c)
	case "sleep":
		if r.sleeps++; r.sleeps > maxSleeps {
			r.cancel(limitError(CallLimit, "the script has more than %d sleeps at a time", maxSleeps))
			return ""
		}
		ms, _ := strconv.ParseFloat(args[3], 64)
		d := time.Duration(min(max(ms, 0), float64(r.limits.Wall.Milliseconds()))) * time.Millisecond
		r.calls.Go(func() { r.sleep(args[1], d) })
	case "sync":
		return outcome(r.host.Sync(args[1], json.RawMessage(args[2])))
	case "random":
		return strconv.FormatFloat(rand.Float64(), 'g', -1, 64)
	case "log":
		if r.logged += len(args[1]) + 1; r.logged > r.limits.Output {
			r.logged -= len(args[1]) + 1
			r.out.Dropped++
			return ""
		}
		r.out.Log = append(r.out.Log, args[1])
	case "done":
		r.finished = true
		if len(args[1]) > r.limits.Value {
			r.failure = limitError(ValueLimit, "the script returned %d bytes, more than %d; return less, or keep it with store.set", len(args[1]), r.limits.Value)
			return ""
		}
		r.out.Value = json.RawMessage(args[1])
	case "fail":
		r.finished = true
		r.failure = thrown(args[1])
	}
	return ""
}

func (r *run) sleep(id string, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-r.ctx.Done():
	case <-t.C:
		r.completed <- completion{id: id, outcome: "=", sleep: true}
	}
}

// thrown returns the error of an exception that the program did not catch.
func thrown(facts string) *Error {
	var e struct{ Name, Message, Code, Stack string }
	if err := json.Unmarshal([]byte(facts), &e); err != nil {
		return &Error{Code: Thrown, Message: "the script threw a value that cannot be shown"}
	}
	message := e.Message
	if e.Name != "" && e.Name != "Error" {
		message = e.Name + ": " + message
	}
	return &Error{Code: Thrown, Message: message, Cause: e.Code, Stack: position(e.Stack)}
}

// position returns the lines of a stack that are in the program.
func position(stack string) string {
	var lines []string
	for line := range strings.Lines(stack) {
		if strings.Contains(line, sourceName) && len(lines) < 10 {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "\n")
}
