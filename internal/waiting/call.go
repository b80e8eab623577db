package waiting

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"junctor/internal/store"
	"junctor/internal/tool"
)

// Call is a record in the process that owns it. It is safe for concurrent use.
type Call struct {
	s      *Service
	id     string
	caller string
	ttl    time.Duration

	mu        sync.Mutex
	answers   map[string]chan Input // by the input's id
	ended     bool
	task      tool.ServerTask
	cancelled chan struct{}

	end *callEnd // until it is stored; guarded by s.mu
}

// callEnd is how a call ended. It does not change.
type callEnd struct {
	result  tool.Result
	failure error
	expires time.Time // when the outcome is dropped
}

// ID returns the id of the record.
func (c *Call) ID() string { return c.id }

// Context returns ctx with the record in it, for [From]. It is cancelled, with
// the cause [ErrCancelled], when the record is cancelled.
func (c *Call) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithValue(ctx, contextKey{}, c))
	go func() {
		select {
		case <-c.cancelled:
			cancel(ErrCancelled)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// Cancelled returns a channel that is closed when the record is cancelled or no
// longer exists.
func (c *Call) Cancelled() <-chan struct{} { return c.cancelled }

// Show sets the tool and the redacted arguments that are shown to the person
// who is asked about the call.
func (c *Call) Show(ctx context.Context, name string, arguments json.RawMessage) error {
	_, err := c.s.update(ctx, c.id, func(r *Record) error {
		if r.Status.Final() {
			return ErrCancelled
		}
		r.Tool, r.Arguments = name, truncateArguments(arguments)
		return nil
	})
	return err
}

// SetMessage sets the message of the status, unless the call has ended.
func (c *Call) SetMessage(ctx context.Context, message string) {
	_, err := c.s.update(ctx, c.id, func(r *Record) error {
		if r.Status.Final() || r.Message == message {
			return errUnchanged
		}
		r.Message = message
		return nil
	})
	if err != nil {
		c.s.log.DebugContext(ctx, "cannot store a message of a waiting call", "err", err)
	}
}

// Ask adds a question to the record and waits for its answer, which may be
// given on any node. It returns ErrExpired if no answer arrives in time. If ctx
// ends, the question is withdrawn.
func (c *Call) Ask(ctx context.Context, in Input) (Input, error) {
	if len(in.Params) > maxParams {
		return in, &tool.Error{Kind: tool.TooLarge, Msg: fmt.Sprintf("the question has %d bytes; %d are allowed", len(in.Params), maxParams)}
	}
	in.ID, in.Asked, in.Answer = rand.Text(), time.Now().UTC(), nil
	answer := make(chan Input, 1)
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return in, ErrCancelled
	}
	c.answers[in.ID] = answer
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.answers, in.ID)
		c.mu.Unlock()
	}()
	_, err := c.s.update(ctx, c.id, func(r *Record) error {
		switch {
		case r.Status.Final():
			return ErrCancelled
		case len(r.Inputs) >= maxInputs:
			return &tool.Error{Kind: tool.RateLimited, Msg: fmt.Sprintf("the call is already waiting for %d answers", maxInputs)}
		}
		r.Inputs = append(r.Inputs, in)
		return nil
	})
	if err != nil {
		return in, err
	}
	var expired <-chan time.Time
	if !in.Expires.IsZero() {
		t := time.NewTimer(time.Until(in.Expires))
		defer t.Stop()
		expired = t.C
	}
	select {
	case got := <-answer:
		err = c.removeInput(ctx, in.ID)
		return got, err
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-c.cancelled:
		err = ErrCancelled
	case <-expired:
		err = ErrExpired
	}
	// The question is removed because nothing waits for its answer any longer.
	// An answer that arrives at this moment has no effect.
	return in, errors.Join(err, c.removeInput(context.WithoutCancel(ctx), in.ID))
}

// removeInput removes an input from the record.
func (c *Call) removeInput(ctx context.Context, input string) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	_, err := c.s.update(ctx, c.id, func(r *Record) error {
		if r.Input(input) == nil {
			return errUnchanged
		}
		r.Inputs = slices.DeleteFunc(r.Inputs, func(in Input) bool { return in.ID == input })
		return nil
	})
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	return err
}

// poll reads the record and delivers its answers and its cancellation.
func (c *Call) poll(ctx context.Context) {
	r, err := c.s.read(ctx, c.id)
	if err != nil && !errors.Is(err, ErrNotFound) {
		c.s.log.DebugContext(ctx, "cannot read a waiting call", "err", err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || r.Status == Cancelled {
		c.cancel()
		return
	}
	for _, in := range r.Inputs {
		if wait := c.answers[in.ID]; wait != nil && in.Answer != nil {
			delete(c.answers, in.ID)
			wait <- in
		}
	}
}

// cancel notifies the owner that the record was cancelled. c.mu is held.
func (c *Call) cancel() {
	if !c.ended {
		c.ended = true
		close(c.cancelled)
	}
}

// Finish ends the call and stores its result or error for the time to live. If
// the store fails, it returns an error, and Run stores the outcome later. If
// another process can take the call over because this one is stopping, Finish
// only gives up the record.
func (c *Call) Finish(ctx context.Context, result tool.Result, failure error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if c.canBeTakenOver(failure) {
		c.disown()
		return nil
	}
	if failure == nil && len(result.Raw) > maxResult {
		failure = &tool.Error{Kind: tool.TooLarge, Msg: fmt.Sprintf("the call was carried out, but its result has %d bytes and at most %d can be stored for later; if it is safe to repeat the call, call the tool again and wait for its result", len(result.Raw), maxResult)}
	}
	if failure != nil {
		result = tool.Result{}
	}
	end := &callEnd{result, failure, time.Now().Add(c.ttl).UTC()}
	c.s.mu.Lock()
	c.end = end
	c.s.mu.Unlock()
	c.s.evictResults(ctx, c.caller, storedResult{c.id, len(result.Raw), end.expires})
	return c.write(ctx, end)
}

// write stores the outcome of the call and gives up the ownership of the
// record. If the store is not available, the call stays owned, so that
// writeEnds retries.
func (c *Call) write(ctx context.Context, end *callEnd) error {
	err := c.store(ctx, end)
	if err == nil || errors.Is(err, ErrNotFound) || c.s.stopping() || !time.Now().Before(end.expires) {
		c.disown()
	}
	return err
}

func (c *Call) store(ctx context.Context, end *callEnd) error {
	if end.failure == nil {
		_, err := c.s.store.PutValue(ctx, store.Value{Space: spaceResults, Name: c.id, Data: end.result.Raw, Expires: end.expires}, store.AnyVersion)
		if err != nil {
			return fmt.Errorf("store the result of a call: %w", err)
		}
	}
	_, err := c.s.update(ctx, c.id, func(r *Record) error {
		if r.Status.Final() { // cancelled in the meantime
			return errUnchanged
		}
		r.Inputs, r.Expires = nil, end.expires
		if end.failure == nil {
			r.Status, r.Message, r.IsError = Completed, "", end.result.IsError
			return nil
		}
		r.fail(end.failure)
		return nil
	})
	return err
}

// writeEnds retries to store the outcomes that the store did not accept before.
func (s *Service) writeEnds(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	ends := map[*Call]*callEnd{}
	s.mu.Lock()
	for _, c := range s.own {
		if c.end != nil {
			ends[c] = c.end
		}
	}
	s.mu.Unlock()
	for c, end := range ends {
		if err := c.write(ctx, end); err != nil {
			s.log.DebugContext(ctx, "cannot store the end of a call yet", "err", err)
		}
	}
}

// fail sets the status to failed, with err as the reason.
func (r *Record) fail(err error) {
	e := tool.AsError(err)
	r.Status, r.Message, r.Error = Failed, e.Msg, &Failure{Code: e.Kind, Message: e.Msg}
	if details, err := json.Marshal(e.Details); err == nil && e.Details != nil && len(details) <= maxDetails {
		r.Error.Details = details
	}
}

// Release deletes the record of a call whose client has the result.
func (c *Call) Release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	c.disown()
	return c.s.store.DeleteValue(ctx, space, c.id, store.AnyVersion)
}

// disown gives up the ownership of the record.
func (c *Call) disown() {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if c.s.own[c.id] == c {
		delete(c.s.own, c.id)
		c.s.closeOne(c.caller)
	}
}

// errResultDropped is the failure of a call whose result was evicted before it
// could be stored.
var errResultDropped = &tool.Error{Kind: tool.Unavailable, Msg: "the call has ended, but its result was dropped: the store was unavailable, and newer results of this caller replaced it"}

// evictResults adds an ended call to those of the caller. It deletes the
// caller's oldest ended calls if they are too many, or their results too large
// in total.
func (s *Service) evictResults(ctx context.Context, caller string, add storedResult) {
	now := time.Now()
	s.mu.Lock()
	kept := slices.DeleteFunc(s.kept[caller], func(k storedResult) bool { return k.expires.Before(now) })
	total := add.bytes
	for _, k := range kept {
		total += k.bytes
	}
	var evicted []string
	for len(kept) > 0 && (total > maxKept || len(kept) >= s.maxEnded) {
		old := kept[0]
		total, kept = total-old.bytes, kept[1:]
		if c := s.own[old.id]; c != nil && c.end != nil {
			c.end = &callEnd{failure: errResultDropped, expires: old.expires}
		} else {
			evicted = append(evicted, old.id)
		}
	}
	s.kept[caller] = append(kept, add)
	maps.DeleteFunc(s.kept, func(_ string, list []storedResult) bool { // all of them have expired
		return !slices.ContainsFunc(list, func(k storedResult) bool { return !k.expires.Before(now) })
	})
	s.mu.Unlock()
	for _, id := range evicted {
		err := errors.Join(s.store.DeleteValue(ctx, spaceResults, id, store.AnyVersion), s.store.DeleteValue(ctx, space, id, store.AnyVersion))
		if err != nil {
			s.log.DebugContext(ctx, "cannot delete an old result", "err", err)
		}
	}
}
