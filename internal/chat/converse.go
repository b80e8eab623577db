package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"

	"junctor/internal/chat/wire"
	"junctor/internal/llm"
	"junctor/internal/tool"
)

// The stop reasons of a reply.
const (
	stopEnd        = "end"
	stopLength     = "length"
	stopFilter     = "filter"
	stopAborted    = "aborted"
	stopError      = "error"
	stopSteps      = "max_steps"
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

// maxModelRetries bounds the retries after an empty or malformed reply.
const maxModelRetries = 2

// converse sends requests to the model and executes its calls until the reply
// is complete. It returns the stop reason.
func (s *Session) converse(ctx context.Context, t *turn) string {
	cfg := s.host.config()
	model := s.host.model(s.modelID())
	if model == nil {
		return s.fallback(ctx, wire.CodeNoModel, capitalize(llm.NoModel))
	}
	s.emit(wire.TypeStatus, wire.StatusPayload{State: "processing", Message: "Thinking", Data: s.unavailable(t)})
	repeats := map[string]int{}
	last, retries := "", 0 // last is why the model gets no more tools
	for step := 1; ; step++ {
		o := s.host.toolsFor(ctx, &t.caller, cfg.MetaToolsAbove, s.preferences())
		reply, err := s.ask(ctx, t, model, o, last)
		if err != nil {
			return s.endWithModelError(ctx, model, reply, err)
		}
		calls := reply.Message.Calls()
		if last != "" {
			calls = nil // the model was told that there are no more tools
			reply.Message = withoutCalls(reply.Message)
		}
		if len(calls) == 0 && strings.TrimSpace(reply.Message.Text()) == "" && reply.Stop != llm.StopFilter && reply.Stop != llm.StopLength {
			if retries++; retries <= maxModelRetries && ctx.Err() == nil {
				continue // an empty or malformed reply: nothing was sent yet
			}
			switch last { // it keeps calling tools that are no longer available
			case stopRepetition:
				return s.sendFallback(ctx, last, "I stopped: the model made the same call again and again, and gave no answer without it. Ask in other words.")
			case stopSteps:
				return s.sendFallback(ctx, last, "I stopped: the model used all the steps of this reply (chat.maxSteps), and gave no answer without more. Say what to do next, or ask for less.")
			}
			return s.fallback(ctx, wire.CodeModel, "The model gave no answer. Ask again, or in other words.")
		}
		if err := s.append(context.WithoutCancel(ctx), reply.Message, messageMeta{Model: model.Info().ID, Usage: &reply.Usage}); err != nil {
			return s.unsaved(ctx, err)
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
				s.emit(wire.TypeError, wire.ErrorPayload{Code: wire.CodeModel, Message: "the model's provider withheld the reply (" + firstNonEmpty(reply.Detail, "no reason given") + "); ask in other words"})
				return stopFilter
			}
			return stopEnd
		}
		results := llm.Message{Role: llm.Tool}
		for _, r := range s.runCalls(ctx, t, calls, o) {
			results.Parts = append(results.Parts, llm.Part{Result: r})
		}
		if err := s.append(context.WithoutCancel(ctx), results, messageMeta{}); err != nil {
			return s.unsaved(ctx, err)
		}
		if ctx.Err() != nil {
			return s.aborted(ctx)
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

// ask sends one request and forwards the reply as it arrives.
func (s *Session) ask(ctx context.Context, t *turn, model llm.Model, o requestTools, last string) (llm.Turn, error) {
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
		reply, err := llm.Ask(ctx, s.host.Executor, &t.caller, model, req, func(ev llm.Event) {
			switch {
			case ev.Text != "":
				s.emit(wire.TypeText, wire.ContentPayload{Content: ev.Text})
			case ev.Reasoning != "":
				s.emit(wire.TypeReasoning, wire.ContentPayload{Content: ev.Reasoning})
			}
		})
		if err != nil {
			span.Fail(string(llm.ReasonOf(err)))
		}
		span.End()
		s.mu.Lock()
		t.usage = t.usage.Add(reply.Usage)
		if reply.Usage.Input > 0 {
			t.context = reply.Usage.Input
			s.gauge.Observe(estimate, reply.Usage.Input)
		}
		s.mu.Unlock()
		if llm.ReasonOf(err) == llm.ContextLength && attempt < 8 && history > minBudget {
			// The context window is smaller than assumed, or the estimate is
			// wrong.
			s.mu.Lock()
			s.reduced = reducedBudget{model: model.Info().ID, tokens: max(history/2, minBudget)}
			s.mu.Unlock()
			s.host.Log.WarnContext(ctx, "history too long for the model; it gets half", "model", model.Info().ID, "tokens", estimate)
			continue
		}
		return reply, err
	}
}

// endWithModelError ends a turn whose model failed and keeps the partial reply.
func (s *Session) endWithModelError(ctx context.Context, model llm.Model, reply llm.Turn, err error) string {
	partial := withoutCalls(reply.Message)
	notice := noticeBroken
	if ctx.Err() != nil {
		notice = noticeAborted
	}
	if strings.TrimSpace(partial.Text()) != "" {
		if err := s.append(context.WithoutCancel(ctx), partial, messageMeta{Model: model.Info().ID, Notice: notice}); err != nil {
			return s.unsaved(ctx, err)
		}
	}
	if ctx.Err() != nil {
		return s.aborted(ctx)
	}
	s.host.Log.WarnContext(ctx, "model failed", "model", model.Info().ID, "err", err)
	e := tool.AsError(err)
	if llm.ReasonOf(err) == "" && (e.Kind == tool.RateLimited || e.Kind == tool.Denied) { // refused by the gateway, not by the model
		return s.fallback(ctx, string(e.Kind), capitalize(e.Msg)+".")
	}
	if strings.TrimSpace(partial.Text()) != "" {
		s.emit(wire.TypeError, wire.ErrorPayload{Code: wire.CodeModel, Message: e.Msg, RetryAfter: e.RetryAfter.Milliseconds()})
		return stopError
	}
	return s.fallback(ctx, wire.CodeModel, "I could not get an answer: "+e.Msg+".")
}

// fallback sends a message in place of the model's reply, so that the user
// always gets an answer.
func (s *Session) fallback(ctx context.Context, code, text string) string {
	if ctx.Err() != nil {
		return s.aborted(ctx)
	}
	stop := s.sendFallback(ctx, stopError, text)
	s.emit(wire.TypeError, wire.ErrorPayload{Code: code, Message: text})
	return stop
}

// sendFallback sends a message in place of the model's reply, with the stop
// reason.
func (s *Session) sendFallback(ctx context.Context, stop, text string) string {
	if ctx.Err() != nil {
		return s.aborted(ctx)
	}
	s.emit(wire.TypeText, wire.ContentPayload{Content: text})
	if err := s.append(context.WithoutCancel(ctx), llm.Text(llm.Assistant, text), messageMeta{Notice: wire.NoticeFallback}); err != nil {
		return s.unsaved(ctx, err)
	}
	return stop
}

func (s *Session) aborted(ctx context.Context) string {
	s.emit(wire.TypeError, wire.ErrorPayload{Code: wire.CodeAborted, Message: whyStopped(context.Cause(ctx))})
	return stopAborted
}

// unsaved ends a turn that cannot be stored. Otherwise the model's history and
// the stored one would differ.
func (s *Session) unsaved(ctx context.Context, err error) string {
	s.host.Log.ErrorContext(ctx, "cannot store the conversation", "err", err)
	s.emit(wire.TypeError, wire.ErrorPayload{Code: string(tool.Unavailable), Message: "the conversation cannot be stored now, so it stops here; try again in a moment"})
	return stopError
}

func (s *Session) unavailable(t *turn) *wire.StatusData {
	if down := s.host.unavailableServers(&t.caller); len(down) > 0 {
		return &wire.StatusData{Unavailable: down}
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

// canonical returns arguments in a form in which equal values have equal text.
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

func capitalize(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
