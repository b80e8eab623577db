package chat

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"junctor/internal/chat/wire"
	"junctor/internal/llm"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// turn is one reply in progress: from the user's message until the model has
// finished.
type turn struct {
	id        string // the request id of all calls in the turn
	caller    tool.Caller
	cancel    context.CancelCauseFunc
	done      chan struct{}
	approvals map[string]chan wire.Decision // by call; guarded by the session
	reasons   map[string]string             // the reasons of denials, by call; guarded by the session
	questions map[string]*question          // by id; guarded by the session
	event     int64                         // its first event, 0 until it has begun; guarded by the session
	calls     int                           // guarded by the session
	samples   int                           // sampling requests; guarded by the session
	begun     int                           // calls so far
	usage     llm.Usage                     // guarded by the session
	context   int                           // tokens of the last request
	session   *Session
	// ending is set before clients are notified that the reply is complete, so
	// that a message sent right after it waits briefly instead of being
	// refused. Guarded by the session.
	ending bool
}

var errAborted = errors.New("stopped by the person")

// whyStopped returns the message to the user about why a reply was stopped.
func whyStopped(cause error) string {
	if errors.Is(cause, tool.ErrCredentialEnded) || errors.Is(cause, tool.ErrStopping) {
		return "the reply was stopped: " + cause.Error()
	}
	return "the reply was stopped"
}

func newID(prefix string) string { return prefix + "_" + rand.Text() }

func (t *turn) callID() string {
	t.session.mu.Lock()
	defer t.session.mu.Unlock()
	t.calls++
	return fmt.Sprintf("%s-%d", t.id, t.calls)
}

// Send adds a message of the user; the reply is sent to the watchers. It
// returns when the message is in the history.
func (s *Session) Send(ctx context.Context, caller tool.Caller, text, model string) error {
	return s.Post(ctx, caller, wire.SendMessage{Text: text, Model: model})
}

// check validates a message and returns its content.
func (s *Session) check(m wire.SendMessage) ([]llm.Part, error) {
	h := s.host
	cfg := h.config()
	switch {
	case m.Again != "":
	case strings.TrimSpace(m.Text) == "" && len(m.Attachments) == 0:
		return nil, invalid("the message is empty")
	case len(m.Text) > cfg.MaxMessageBytes:
		return nil, &tool.Error{Kind: tool.TooLarge, Msg: fmt.Sprintf("the message has %d bytes; %d are allowed", len(m.Text), cfg.MaxMessageBytes)}
	case !utf8.ValidString(m.Text):
		return nil, invalid("the message is not valid UTF-8")
	}
	if err := h.checkModel(m.Model); err != nil {
		return nil, err
	}
	var parts []llm.Part
	if m.Text != "" {
		parts = append(parts, llm.Part{Text: m.Text})
	}
	files, err := attachmentParts(m.Attachments, cfg.MaxAttachmentBytes, h.model(firstNonEmpty(m.Model, s.modelID())))
	return append(parts, files...), err
}

// Post is like Send, but for every kind of message: with attachments, an edited
// one, or one to be answered again.
func (s *Session) Post(ctx context.Context, caller tool.Caller, m wire.SendMessage) error {
	h := s.host
	if err := caller.PermitChat(); err != nil {
		return err
	}
	parts, err := s.check(m)
	if err != nil {
		return err
	}
	if caller, err = h.narrow(caller, s.preferences()); err != nil {
		return err
	}
	if err := s.writtenBy(ctx, &caller); err != nil {
		return err
	}
	t := &turn{id: newID("turn"), caller: caller, done: make(chan struct{}), session: s,
		approvals: map[string]chan wire.Decision{}, reasons: map[string]string{}, questions: map[string]*question{}}
	s.mu.Lock()
	if err := s.awaitEnding(ctx); err != nil {
		s.mu.Unlock()
		return err
	}
	if s.deleted {
		s.mu.Unlock()
		return noSession()
	}
	base := telemetry.WithSession(telemetry.WithRequest(tool.WithCaller(h.ctx, caller), t.id), s.id)
	if parent := telemetry.TraceOf(ctx); parent.IsValid() {
		base = telemetry.WithTrace(base, parent)
	}
	base, t.cancel = context.WithCancelCause(base)
	context.AfterFunc(base, tool.OnCredentialEnd(ctx, func() { t.cancel(tool.ErrCredentialEnded) }))
	s.turn = t
	s.active = time.Now()
	s.mu.Unlock()

	if err := s.begin(ctx, m, parts); err != nil {
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

// awaitEnding waits for a turn that is ending, because its client may already
// have seen that the reply is complete. During any other turn it returns an
// error. s.mu is held, except while it waits.
func (s *Session) awaitEnding(ctx context.Context) error {
	for s.turn != nil {
		if !s.turn.ending {
			return busy()
		}
		done := s.turn.done
		s.mu.Unlock()
		select {
		case <-done:
			s.mu.Lock()
		case <-ctx.Done():
			s.mu.Lock()
			return ctx.Err()
		}
	}
	return nil
}

func busy() error {
	return &tool.Error{Kind: wire.CodeBusy, Msg: "a reply is in progress; wait for it, or abort it"}
}

// begin adds the message to the history and marks the turn as in progress.
func (s *Session) begin(ctx context.Context, m wire.SendMessage, parts []llm.Part) error {
	h, model := s.host, m.Model
	if h.ctx.Err() != nil {
		return &tool.Error{Kind: tool.Unavailable, Msg: "the gateway is stopping; try again in a moment"}
	}
	if err := s.claim(ctx, firstNonEmpty(m.Text, attachmentNames(m.Attachments)), model); err != nil {
		return err
	}
	s.mu.Lock()
	kept, err := s.basePath(m)
	if err != nil {
		s.mu.Unlock()
		s.release(ctx)
		return err
	}
	path, branched := s.entries, len(kept) < len(s.entries) || m.Again != ""
	s.entries = kept
	before := s.meta.Turn.Event
	mark := turnMark{Active: true, Event: s.outbox.last() + 1, Before: before, Message: s.nextSeq()}
	s.turn.event = mark.Event
	s.mu.Unlock()
	id := newID("msg")
	now := time.Now()
	if m.Again == "" {
		err = s.append(ctx, llm.Message{Role: llm.User, Parts: parts}, messageMeta{ID: id})
	}
	if err == nil {
		err = s.save(ctx, func(m *metadata) { m.Turn, m.Leaf = mark, 0 })
	}
	if err != nil {
		s.mu.Lock()
		s.entries = path
		s.mu.Unlock()
		s.release(ctx)
		return unavailable(err)
	}
	if before > 1 { // events of the last two turns are enough to resume
		if err := h.Store.TrimEvents(ctx, s.id, before-1); err != nil {
			h.Log.WarnContext(ctx, "cannot delete the old events", telemetry.KeySession, s.id, "err", err)
		}
	}
	if branched {
		after := ""
		if n := len(kept); n > 0 {
			after = kept[n-1].ID
		}
		s.emit(wire.TypeBranch, wire.BranchPayload{After: after, Replaces: m.Edit, Again: m.Again != ""})
	}
	if m.Again == "" {
		s.emit(wire.TypeMessage, wire.MessagePayload{ID: id, Text: m.Text, Time: now.UTC(), Attachments: attached(parts)})
	}
	if before == 0 || model != "" { // watchers do not have the title or the model yet
		s.announce()
	}
	return nil
}

// attachmentNames lists the names of attachments, for a title.
func attachmentNames(list []wire.Attachment) string {
	var names []string
	for _, a := range list {
		names = append(names, a.Name)
	}
	return strings.Join(names, ", ")
}

// claim acquires the lease of the session for this process, and creates the
// session in the store if needed.
func (s *Session) claim(ctx context.Context, text, model string) error {
	h := s.host
	s.recordMu.Lock()
	defer s.recordMu.Unlock()
	s.mu.Lock()
	stored := s.stored
	if model != "" && !stored {
		s.model = model
	}
	if s.title == "" {
		s.title = titleOf(text)
	}
	rec := store.Session{ID: s.id, Owner: s.owner, Title: s.title, Model: s.model, Created: s.created}
	chosen := s.meta // set before the first message
	s.mu.Unlock()
	if !stored {
		if err := changeMetadata(&rec, func(m *metadata) { *m = chosen }); err != nil {
			return err
		}
		h.deleteOldest(ctx, s.owner)
		if err := h.Store.CreateSession(ctx, rec); err != nil && !errors.Is(err, store.ErrConflict) {
			return unavailable(err)
		}
		s.mu.Lock()
		s.stored = true
		s.startFollowing()
		s.mu.Unlock()
	}
	if err := s.acquire(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	reload := stored && (h.Shared || s.foreign)
	s.mu.Unlock()
	if reload { // another process may have written in the meantime
		if err := s.load(ctx); err != nil {
			s.release(ctx)
			return err
		}
		s.mu.Lock()
		s.foreign = false
		s.mu.Unlock()
		// load releases the lease if it had to end a turn. If another process
		// has acquired it since, the session is out of date again, so this does
		// not wait for the lease.
		if _, held, err := h.Store.Acquire(ctx, leaseName(s.id), h.Node, h.leaseTime); err != nil {
			return unavailable(err)
		} else if !held {
			return busy()
		}
	}
	if stored && model != "" {
		rec, err := h.Store.UpdateSession(ctx, s.id, func(r *store.Session) error { r.Model = model; return nil })
		if err == nil {
			err = s.applyRecord(&rec)
		}
		if err != nil {
			s.release(ctx)
			return unavailable(err)
		}
	}
	return nil
}

// Abort stops the reply in progress and reports whether there was one.
func (s *Session) Abort(ctx context.Context) bool {
	s.mu.Lock()
	t := s.turn
	elsewhere, seen := t == nil && s.foreign && s.meta.Turn.Active, s.seen()
	s.mu.Unlock()
	if t != nil {
		t.cancel(errAborted)
		return true
	}
	return elsewhere && s.host.command(ctx, s.id, command{Seen: seen, Abort: true})
}

// run runs a turn to its end.
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
	usage := wire.UsagePayload{Turn: t.usage, Session: s.meta.Usage, Context: t.context}
	s.mu.Unlock()
	if m := s.host.model(s.modelID()); m != nil {
		usage.Model, usage.ContextWindow = m.Info().ID, m.Info().ContextWindow
		if s.host.Meter != nil {
			s.host.Meter.Tokens(m.Info().Model, usage.Turn.Input, usage.Turn.Output)
		}
	}
	s.emit(wire.TypeUsage, usage)
	s.emit(wire.TypeStatus, wire.StatusPayload{State: "complete", Message: endings[stop], Data: &wire.StatusData{Stop: stop}})
	s.flush()
	if err := s.save(late, func(m *metadata) { m.Turn.Active, m.Usage = false, usage.Session }); err != nil {
		s.host.Log.WarnContext(late, "cannot store the end of the reply", "err", err)
	}
	s.release(late)
	s.host.Log.InfoContext(late, "reply done", telemetry.KeyAction, "turn", "stop", stop, "took", time.Since(start), "calls", t.calls, "tokensIn", usage.Turn.Input, "tokensOut", usage.Turn.Output)
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

func (s *Session) modelID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model
}
