package chat

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"junctor/internal/llm"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// turn is one reply under way: what the person said, and everything until
// the model has nothing more to do.
type turn struct {
	id        string // the request id of everything that happens in it
	caller    tool.Caller
	cancel    context.CancelCauseFunc
	done      chan struct{}
	approvals map[string]chan Decision // by call; guarded by the session
	reasons   map[string]string        // of denials, by call; guarded by the session
	calls     int                      // guarded by the session
	usage     llm.Usage
	context   int // tokens of the last request
	session   *Session
	// ending is set when the person is told that the reply is complete: what
	// they say from then on need only wait a moment. Guarded by the session.
	ending bool
}

var errAborted = errors.New("stopped by the person")

func newID(prefix string) string { return prefix + "_" + rand.Text() }

func (t *turn) callID() string {
	t.session.mu.Lock()
	defer t.session.mu.Unlock()
	t.calls++
	return fmt.Sprintf("%s-%d", t.id, t.calls)
}

// Send says something to the model; the reply comes to the watchers. It
// returns once the message is in the history.
func (s *Session) Send(ctx context.Context, caller tool.Caller, text, model string) error {
	h := s.host
	cfg := h.config()
	switch {
	case strings.TrimSpace(text) == "":
		return invalid("the message is empty")
	case len(text) > cfg.MaxMessageBytes:
		return &tool.Error{Kind: tool.TooLarge, Msg: fmt.Sprintf("the message has %d bytes; %d are allowed", len(text), cfg.MaxMessageBytes)}
	case !utf8.ValidString(text):
		return invalid("the message is not valid UTF-8")
	}
	if model != "" {
		if set := h.Models(); set == nil || set.Get(model) == nil {
			return invalid(fmt.Sprintf("there is no model %q; GET /api/models lists them", tool.Shorten(model, 80)))
		}
	}
	t := &turn{id: newID("turn"), caller: caller, done: make(chan struct{}), approvals: map[string]chan Decision{}, reasons: map[string]string{}, session: s}
	s.mu.Lock()
	for s.turn != nil {
		before, ending := s.turn, s.turn.ending
		s.mu.Unlock()
		if !ending {
			return busy()
		}
		select {
		case <-before.done:
		case <-ctx.Done():
			return ctx.Err()
		}
		s.mu.Lock()
	}
	if s.deleted {
		s.mu.Unlock()
		return noSession()
	}
	base := telemetry.WithSession(telemetry.WithRequest(h.ctx, t.id), s.id)
	if parent, ok := telemetry.TraceOf(ctx); ok {
		base = telemetry.WithTrace(base, parent)
	}
	base, t.cancel = context.WithCancelCause(base)
	s.turn = t
	s.active = time.Now()
	s.mu.Unlock()

	if err := s.begin(ctx, t, text, model); err != nil {
		t.cancel(err)
		s.mu.Lock()
		s.turn = nil
		s.mu.Unlock()
		close(t.done)
		return err
	}
	h.turns.Go(func() { s.run(base, t) })
	return nil
}

func busy() error {
	return &tool.Error{Kind: CodeBusy, Msg: "a reply is under way; wait for it, or abort it"}
}

// begin puts the message into the history and marks the turn as under way.
func (s *Session) begin(ctx context.Context, t *turn, text, model string) error {
	h := s.host
	if h.ctx.Err() != nil {
		return &tool.Error{Kind: tool.Unavailable, Msg: "the gateway is stopping; try again in a moment"}
	}
	if err := s.claim(ctx, text, model); err != nil {
		return err
	}
	s.mu.Lock()
	before := s.meta.Turn.Event
	mark := turnMark{Active: true, Event: s.outbox.last() + 1, Before: before, Message: 1}
	if n := len(s.entries); n > 0 {
		mark.Message = s.entries[n-1].seq + 1
	}
	s.mu.Unlock()
	id := newID("msg")
	now := time.Now()
	err := s.append(ctx, llm.Text(llm.User, text), about{ID: id})
	if err == nil {
		err = s.save(ctx, func(m *metadata) { m.Turn = mark })
	}
	if err != nil {
		s.release(ctx)
		return unavailable(err)
	}
	if before > 1 { // of what was said, the last two turns are enough to come back to
		if err := h.Store.TrimEvents(ctx, s.id, before-1); err != nil {
			h.Log.WarnContext(ctx, "old messages not forgotten", telemetry.KeySession, s.id, "err", err)
		}
	}
	s.emit(TypeMessage, MessagePayload{ID: id, Text: text, Time: now.UTC()})
	return nil
}

// claim makes this process the one that writes the session, and the session
// one that is in the store.
func (s *Session) claim(ctx context.Context, text, model string) error {
	h := s.host
	s.mu.Lock()
	stored := s.stored
	if model != "" {
		s.model = model
	}
	if s.title == "" {
		s.title = titleOf(text)
	}
	rec := store.Session{ID: s.id, Owner: s.owner, Title: s.title, Model: s.model, Created: s.created}
	s.mu.Unlock()
	if !stored {
		h.makeRoom(ctx, s.owner)
		if err := h.Store.CreateSession(ctx, rec); err != nil && !errors.Is(err, store.ErrConflict) {
			return unavailable(err)
		}
		s.mu.Lock()
		s.stored = true
		s.mu.Unlock()
	}
	_, held, err := h.Store.Acquire(ctx, leaseName(s.id), h.Node, leaseTime)
	if err != nil {
		return unavailable(err)
	}
	if !held {
		return busy()
	}
	s.mu.Lock()
	reload := stored && (h.Shared || s.foreign)
	s.mu.Unlock()
	if reload { // another process may have written meanwhile
		if err := s.load(ctx); err != nil {
			s.release(ctx)
			return err
		}
		s.mu.Lock()
		s.foreign = false
		s.mu.Unlock()
		// Loading gives the lease back when it had to mend a turn.
		if _, held, err = h.Store.Acquire(ctx, leaseName(s.id), h.Node, leaseTime); err != nil {
			return unavailable(err)
		} else if !held {
			return busy()
		}
	}
	if stored && model != "" {
		if _, err := h.Store.UpdateSession(ctx, s.id, func(r *store.Session) error { r.Model = model; return nil }); err != nil {
			s.release(ctx)
			return unavailable(err)
		}
	}
	return nil
}

// Abort stops the reply under way, if there is one.
func (s *Session) Abort(ctx context.Context) bool {
	s.mu.Lock()
	t := s.turn
	elsewhere := t == nil && s.foreign && s.meta.Turn.Active
	s.mu.Unlock()
	if t != nil {
		t.cancel(errAborted)
		return true
	}
	return elsewhere && s.host.command(ctx, s.id, command{Abort: true})
}

// Wait waits until no reply is under way and everything has been sent.
func (s *Session) Wait(ctx context.Context) error {
	s.mu.Lock()
	t := s.turn
	s.mu.Unlock()
	if t != nil {
		select {
		case <-t.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// run carries a turn to its end, whatever happens.
func (s *Session) run(ctx context.Context, t *turn) {
	ctx, span := s.host.Tracer.Start(ctx, "chat.turn")
	span.Set("session", s.id)
	start := time.Now()
	renewing, stopRenewing := context.WithCancel(ctx)
	s.host.turns.Go(func() { s.renew(renewing, t) })
	stop := s.converse(ctx, t)
	stopRenewing()

	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	s.mu.Lock()
	t.ending = true
	s.meta.Usage = s.meta.Usage.Add(t.usage)
	total := s.meta.Usage
	s.mu.Unlock()
	usage := UsagePayload{Turn: t.usage, Session: total, Context: t.context}
	if m := s.host.model(s.chosen()); m != nil {
		usage.Model, usage.ContextWindow = m.Info().ID, m.Info().ContextWindow
		if s.host.Meter != nil {
			s.host.Meter.Tokens(m.Info().Model, t.usage.Input, t.usage.Output)
		}
	}
	s.emit(TypeUsage, usage)
	s.emit(TypeStatus, StatusPayload{State: "complete", Message: endings[stop], Data: &StatusData{Stop: stop}})
	s.flush()
	if err := s.save(late, func(m *metadata) { m.Turn.Active = false }); err != nil {
		s.host.Log.WarnContext(late, "end of the reply not stored", "err", err)
	}
	s.release(late)
	s.host.Log.InfoContext(late, "reply done", telemetry.KeyAction, "turn", "stop", stop, "took", time.Since(start), "calls", t.calls, "tokensIn", t.usage.Input, "tokensOut", t.usage.Output)
	span.Set("stop", stop)
	span.SetInt("calls", t.calls)
	span.End()
	t.cancel(nil)
	s.mu.Lock()
	s.turn = nil
	s.active = time.Now()
	if s.grace != nil {
		s.grace.Stop()
		s.grace = nil
	}
	s.mu.Unlock()
	close(t.done)
}

func (s *Session) chosen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model
}

// The ends of a reply.
const (
	stopEnd        = "end"
	stopLength     = "length"
	stopFilter     = "filter"
	stopAborted    = "aborted"
	stopError      = "error"
	stopSteps      = "steps"
	stopRepetition = "repetition"
)

var endings = map[string]string{
	stopEnd:        "Done",
	stopLength:     "Cut off: the reply reached the model's limit",
	stopFilter:     "Withheld by the model's provider",
	stopAborted:    "Stopped",
	stopError:      "Failed",
	stopSteps:      "Stopped: too many steps",
	stopRepetition: "Stopped: the same call again and again",
}

// maxAgain bounds how often a model is asked again after an empty or
// unreadable reply.
const maxAgain = 2

// converse asks the model and carries out its calls until it has nothing
// more to do, and returns why it ended.
func (s *Session) converse(ctx context.Context, t *turn) string {
	cfg := s.host.config()
	model := s.host.model(s.chosen())
	if model == nil {
		return s.fallback(ctx, t, CodeNoModel, capital(llm.NoModel))
	}
	s.emit(TypeStatus, StatusPayload{State: "processing", Message: "Thinking", Data: s.unavailable(t)})
	repeats := map[string]int{}
	last, again := "", 0 // last: why the model gets no more tools
	for step := 1; ; step++ {
		o := s.host.offer(&t.caller, cfg.MetaToolsAbove)
		reply, err := s.ask(ctx, t, model, o, last)
		if err != nil {
			return s.broken(ctx, t, model, reply, err)
		}
		calls := reply.Message.Calls()
		if last != "" {
			calls = nil // it was told that there are no more
			reply.Message = withoutCalls(reply.Message)
		}
		if len(calls) == 0 && strings.TrimSpace(reply.Message.Text()) == "" && reply.Stop != llm.StopFilter && reply.Stop != llm.StopLength {
			if again++; again <= maxAgain && ctx.Err() == nil {
				continue // an empty or unreadable reply: nothing was said yet
			}
			return s.fallback(ctx, t, CodeModel, "The model gave no answer. Ask again, or in other words.")
		}
		if err := s.append(context.WithoutCancel(ctx), reply.Message, about{Model: model.Info().ID, Usage: &reply.Usage}); err != nil {
			return s.unsaved(ctx, t, err)
		}
		if len(calls) == 0 {
			if last != "" {
				return last
			}
			switch reply.Stop {
			case llm.StopPause:
				continue
			case llm.StopLength:
				return stopLength
			case llm.StopFilter:
				s.emit(TypeError, ErrorPayload{Code: CodeModel, Message: "the model's provider withheld the reply (" + first(reply.Detail, "no reason given") + "); ask in other words"})
				return stopFilter
			}
			return stopEnd
		}
		results := llm.Message{Role: llm.Tool}
		for _, r := range s.runCalls(ctx, t, calls, o) {
			results.Parts = append(results.Parts, llm.Part{Result: r})
		}
		if err := s.append(context.WithoutCancel(ctx), results, about{}); err != nil {
			return s.unsaved(ctx, t, err)
		}
		if ctx.Err() != nil {
			return s.aborted(t)
		}
		for _, c := range calls {
			key := c.Name + "\x00" + canonical(c.Arguments) + "\x00" + c.Malformed
			if repeats[key]++; repeats[key] >= cfg.MaxIdenticalCalls {
				last = stopRepetition
			}
		}
		if step >= cfg.MaxSteps && last == "" {
			last = stopSteps
		}
	}
}

// ask sends one request and passes the reply on as it comes.
func (s *Session) ask(ctx context.Context, t *turn, model llm.Model, o offer, last string) (llm.Turn, error) {
	for attempt := 0; ; attempt++ {
		req, estimate, history := s.request(ctx, t, model, o)
		switch last {
		case stopSteps:
			req.Choice = llm.None
			req.System += "\n\nYou have used all the steps that you have for this reply. Use no more tools: answer with what you know now, and say what is left to do."
		case stopRepetition:
			req.Choice = llm.None
			req.System += "\n\nYou keep making the same call. Use no more tools: answer with what you know now, and say what did not work."
		}
		ctx, span := s.host.Tracer.Start(ctx, "chat.model")
		span.Set("model", model.Info().ID)
		reply, err := llm.Collect(model.Stream(ctx, req), func(ev llm.Event) {
			switch {
			case ev.Text != "":
				s.emit(TypeText, ContentPayload{ev.Text})
			case ev.Reasoning != "":
				s.emit(TypeReasoning, ContentPayload{ev.Reasoning})
			}
		})
		if err != nil {
			span.Fail(string(llm.ReasonOf(err)))
		}
		span.End()
		t.usage = t.usage.Add(reply.Usage)
		if reply.Usage.Input > 0 {
			t.context = reply.Usage.Input
			s.mu.Lock()
			s.gauge.Observe(estimate, reply.Usage.Input)
			s.mu.Unlock()
		}
		if llm.ReasonOf(err) == llm.ContextLength && attempt < 8 && history > leastBudget {
			// The window is smaller than we believe, or our count is wrong.
			s.mu.Lock()
			s.learned = max(history/2, leastBudget)
			s.mu.Unlock()
			s.host.Log.WarnContext(ctx, "history too long for the model; it gets half", "model", model.Info().ID, "tokens", estimate)
			continue
		}
		return reply, err
	}
}

// broken ends a turn whose model failed, with what it had said.
func (s *Session) broken(ctx context.Context, t *turn, model llm.Model, reply llm.Turn, err error) string {
	said := withoutCalls(reply.Message)
	notice := noticeBroken
	if ctx.Err() != nil {
		notice = noticeAborted
	}
	if strings.TrimSpace(said.Text()) != "" {
		if err := s.append(context.WithoutCancel(ctx), said, about{Model: model.Info().ID, Notice: notice}); err != nil {
			return s.unsaved(ctx, t, err)
		}
	}
	if ctx.Err() != nil {
		return s.aborted(t)
	}
	s.host.Log.WarnContext(ctx, "model failed", "model", model.Info().ID, "err", err)
	e := tool.AsError(err)
	if strings.TrimSpace(said.Text()) != "" {
		s.emit(TypeError, ErrorPayload{Code: CodeModel, Message: e.Msg, RetryAfter: e.RetryAfter.Milliseconds()})
		return stopError
	}
	return s.fallback(ctx, t, CodeModel, "I could not get an answer: "+e.Msg+".")
}

// fallback says something in the model's place, so that the person is never
// left without an answer.
func (s *Session) fallback(ctx context.Context, t *turn, code, text string) string {
	if ctx.Err() != nil {
		return s.aborted(t)
	}
	s.emit(TypeText, ContentPayload{text})
	s.emit(TypeError, ErrorPayload{Code: code, Message: text})
	if err := s.append(context.WithoutCancel(ctx), llm.Text(llm.Assistant, text), about{Notice: noticeFallback}); err != nil {
		return s.unsaved(ctx, t, err)
	}
	return stopError
}

func (s *Session) aborted(t *turn) string {
	s.emit(TypeError, ErrorPayload{Code: CodeAborted, Message: "the reply was stopped"})
	return stopAborted
}

// unsaved ends a turn that can no longer be kept: going on would make the
// model's history and the store's differ.
func (s *Session) unsaved(ctx context.Context, t *turn, err error) string {
	s.host.Log.ErrorContext(ctx, "conversation not stored", "err", err)
	s.emit(TypeError, ErrorPayload{Code: string(tool.Unavailable), Message: "the conversation cannot be stored now, so it stops here; try again in a moment"})
	return stopError
}

func (s *Session) unavailable(t *turn) *StatusData {
	if down := s.host.unavailableServers(&t.caller); len(down) > 0 {
		return &StatusData{Unavailable: down}
	}
	return nil
}

func withoutCalls(m llm.Message) llm.Message {
	out := llm.Message{Role: llm.Assistant}
	for _, p := range m.Parts {
		if p.Call == nil {
			out.Parts = append(out.Parts, p)
		}
	}
	if len(out.Parts) == len(m.Parts) {
		out.Native = m.Native
	}
	return out
}

// canonical makes arguments that mean the same look the same.
func canonical(args json.RawMessage) string {
	dec := json.NewDecoder(bytes.NewReader(args))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil {
		return string(args)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return string(args)
	}
	return string(b)
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
