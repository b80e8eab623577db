package waiting

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"junctor/internal/tool"
)

// Resume waits for the task of a record whose process has died. Questions of
// the task are passed to ask.
type Resume func(ctx context.Context, r *Record, ask func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error)) (tool.Result, error)

// SetResume sets the function that waits for the tasks of dead processes. It
// must be called before Run.
func (s *Service) SetResume(f Resume) { s.resume = f }

// SetTask records the server's task that the call waits for, so that another
// process can wait for it if this one ends.
func (c *Call) SetTask(ctx context.Context, t tool.ServerTask) {
	if t.ID == "" || len(t.ID)+len(t.Server) > maxTask {
		return
	}
	c.mu.Lock()
	c.task = t
	c.mu.Unlock()
	_, err := c.s.update(ctx, c.id, func(r *Record) error {
		r.Task = t
		return nil
	})
	if err != nil {
		c.s.log.DebugContext(ctx, "cannot store the task of a waiting call; it ends with this process", "err", err)
	}
}

// canBeTakenOver reports whether a call failed because this process is
// stopping, and waits for a task that another process can wait for.
func (c *Call) canBeTakenOver(failure error) bool {
	if failure == nil {
		return false
	}
	c.mu.Lock()
	kept := c.task.ID != ""
	c.mu.Unlock()
	return kept && c.s.resume != nil && (c.s.stopped() || errors.Is(failure, tool.ErrStopping))
}

// allowTakeovers lets this process take over calls until ctx ends. The returned
// function prevents further takeovers and waits for the calls that were taken
// over.
func (s *Service) allowTakeovers(ctx context.Context) (end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.runCtx = ctx
	return func() {
		s.mu.Lock()
		s.ended = true
		s.mu.Unlock()
		s.resumed.Wait()
	}
}

// stopped reports whether Run has not begun, has ended or is about to.
func (s *Service) stopped() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runCtx == nil || s.runCtx.Err() != nil
}

// stopping reports whether Run has ended or is about to.
func (s *Service) stopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.runCtx != nil && s.runCtx.Err() != nil
}

// takeOver makes this process the owner of a record whose process has died, and
// waits for the server's task in the background. Another process may be faster.
func (s *Service) takeOver(ctx context.Context, r Record) (Record, error) {
	if s.stopped() {
		return r, nil
	}
	if err := s.renew(ctx); err != nil { // so that others do not consider the new owner dead
		return r, err
	}
	mine, earlier := false, &earlierAnswers{}
	taken, err := s.update(ctx, r.ID, func(w *Record) error {
		if mine = !w.Status.Final() && w.Owner == r.Owner; !mine {
			return errUnchanged
		}
		earlier.inputs = slices.DeleteFunc(w.Inputs, func(in Input) bool { return in.Answer == nil })
		w.Owner, w.Inputs = s.owner, nil
		return nil
	})
	if err != nil || !mine {
		return taken, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended { // else the next process finds the record
		c := s.call(&taken)
		s.own[c.id] = c
		s.open[c.caller]++
		s.resumed.Go(func() { c.awaitTask(s.runCtx, taken, earlier) })
	}
	return taken, nil
}

// earlierAnswers are the answers that the previous owner of a record did not
// receive, because its process had died. The server asks the same questions
// again.
type earlierAnswers struct {
	mu     sync.Mutex
	inputs []Input
}

// take removes and returns the answer to a question, or nil.
func (e *earlierAnswers) take(kind string, params json.RawMessage) json.RawMessage {
	e.mu.Lock()
	defer e.mu.Unlock()
	same := func(a, b json.RawMessage) bool { // the store may have escaped characters
		a, errA := json.Marshal(a)
		b, errB := json.Marshal(b)
		return errors.Join(errA, errB) == nil && bytes.Equal(a, b)
	}
	for i, in := range e.inputs {
		if in.Kind == kind && same(in.Params, params) {
			e.inputs = slices.Delete(e.inputs, i, i+1)
			return in.Answer
		}
	}
	return nil
}

// awaitTask waits for the task of a record that was taken over.
func (c *Call) awaitTask(runCtx context.Context, r Record, earlier *earlierAnswers) {
	ctx, cancel := c.Context(runCtx)
	defer cancel()
	result, err := c.s.resume(ctx, &r, func(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
		if answer := earlier.take(method, params); answer != nil {
			return answer, nil
		}
		in, err := c.Ask(ctx, Input{Kind: method, Params: params})
		return in.Answer, err
	})
	if err != nil {
		e := *tool.AsError(err)
		e.Msg = fmt.Sprintf("the process of the gateway that executed this call has ended, and the result of the server's task could not be retrieved: %s", e.Msg)
		err = &e
	}
	if err := c.Finish(ctx, result, err); err != nil {
		c.s.log.DebugContext(ctx, "cannot store the result of a task", "err", err)
	}
}

// takeOverTasks takes over the tasks of processes that have died.
func (s *Service) takeOverTasks(ctx context.Context) {
	if s.resume == nil {
		return
	}
	records, err := s.List(ctx, func(r *Record) bool { return !r.Status.Final() && r.Task.ID != "" && r.Owner != s.owner })
	if err != nil {
		s.log.DebugContext(ctx, "cannot read the tasks of other processes", "err", err)
		return
	}
	for _, r := range records {
		if _, err := s.Get(ctx, r.ID); err != nil && !errors.Is(err, ErrNotFound) {
			s.log.DebugContext(ctx, "cannot take over a task", "err", err)
		}
	}
}
