package chat

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"junctor/internal/chat/wire"
	"junctor/internal/llm"
	"junctor/internal/store"
)

// load reads the session from the store. If its process died during a turn, the
// turn is ended, so that the history is valid and marked as interrupted.
func (s *Session) load(ctx context.Context) error {
	rec, err := s.host.Store.Session(ctx, s.id)
	if errors.Is(err, store.ErrNotFound) {
		return noSession()
	}
	if err != nil {
		return unavailable(err)
	}
	messages, err := s.host.Store.Messages(ctx, s.id, 0, 0)
	if err != nil {
		return unavailable(err)
	}
	meta, err := metadataOf(&rec)
	if err != nil {
		return unavailable(err)
	}
	s.mu.Lock()
	s.title, s.model, s.meta = rec.Title, rec.Model, meta
	s.keepProfiles(meta.Profiles)
	s.all = nil
	for _, m := range messages {
		s.all = append(s.all, decode(m))
	}
	s.entries = pathTo(s.all, meta.Leaf)
	if len(s.watchers) == 0 { // earlier messages have no receivers
		s.outbox.start(meta.Seq)
	}
	s.mu.Unlock()
	if err := s.catchUp(ctx); err != nil {
		return unavailable(err)
	}
	if !meta.Turn.Active {
		return nil
	}
	return s.recover(ctx)
}

// refresh reads the session again if another process may have written it.
func (s *Session) refresh(ctx context.Context) error {
	s.mu.Lock()
	stale := s.host.Shared && s.stored && s.turn == nil && !s.outbox.busy
	s.mu.Unlock()
	if !stale {
		return nil
	}
	s.recovering.Lock()
	defer s.recovering.Unlock()
	return s.load(ctx)
}

// catchUp forwards the messages that another process has sent in this session.
func (s *Session) catchUp(ctx context.Context) error {
	s.mu.Lock()
	sent, narrowed := s.outbox.sent, false
	for w := range s.watchers {
		narrowed = narrowed || len(w.caller.Profiles) > 0
	}
	s.mu.Unlock()
	events, err := s.host.Store.Events(ctx, s.id, sent, 0)
	if err == nil && narrowed && len(events) > 0 {
		err = s.updateProfiles(ctx)
	}
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outbox.busy || s.outbox.sent != sent {
		return nil // another goroutine has done it
	}
	out := make([][]byte, len(events))
	for i, e := range events {
		out[i] = e.Data
		s.outbox.sent = e.Seq
		switch { // a turn that another process began and ended
		case s.turn != nil:
		case isTurnEnd(e.Data):
			s.meta.Turn.Active = false
		case isTurnStart(e.Data):
			s.meta.Turn.Active, s.foreign = true, true
		}
	}
	s.broadcast(out)
	return nil
}

// isTurnStart reports whether an event begins a turn: the user's message, or
// that one is answered again.
func isTurnStart(data []byte) bool {
	var out struct {
		Type    string             `json:"type"`
		Payload wire.BranchPayload `json:"payload"`
	}
	return json.Unmarshal(data, &out) == nil && (out.Type == wire.TypeMessage || out.Type == wire.TypeBranch && out.Payload.Again)
}

// isTurnEnd reports whether an event is the end of a reply.
func isTurnEnd(data []byte) bool {
	var out struct {
		Type    string             `json:"type"`
		Payload wire.StatusPayload `json:"payload"`
	}
	return json.Unmarshal(data, &out) == nil && out.Type == wire.TypeStatus && out.Payload.Tool == "" && out.Payload.State == "complete"
}

// recover ends a turn whose process died.
func (s *Session) recover(ctx context.Context) error {
	_, held, err := s.host.Store.Acquire(ctx, leaseName(s.id), s.host.Node, leaseTime)
	if err != nil {
		return unavailable(err)
	}
	s.mu.Lock()
	s.foreign = !held
	s.mu.Unlock()
	if !held {
		return nil // it still runs in another process
	}
	defer s.release(ctx)
	s.mu.Lock()
	entries, from := s.entries, s.meta.Turn.Event
	s.mu.Unlock()
	events, err := s.host.Store.Events(ctx, s.id, from-1, 0)
	if err != nil {
		return unavailable(err)
	}
	said := sentText(events)
	if n := len(entries); n > 0 && entries[n-1].message.Role == llm.Assistant {
		if calls := entries[n-1].message.Calls(); len(calls) > 0 {
			results := llm.Message{Role: llm.Tool}
			for _, c := range calls {
				results.Parts = append(results.Parts, llm.Part{Result: llm.TextResult(c, "no result: the gateway was stopped before the call was finished", true)})
			}
			if err := s.append(ctx, results, messageMeta{Notice: noticeInterrupted}); err != nil {
				return unavailable(err)
			}
		}
	}
	const note = "(The reply was interrupted: the gateway stopped before it was finished.)"
	text := note
	if said != "" {
		text = said + "\n\n" + note
	}
	if err := s.append(ctx, llm.Text(llm.Assistant, text), messageMeta{Notice: noticeInterrupted}); err != nil {
		return unavailable(err)
	}
	s.emit(wire.TypeError, wire.ErrorPayload{Code: wire.CodeInterrupted, Message: "the gateway was stopped before the reply was finished; ask again"})
	s.emit(wire.TypeStatus, wire.StatusPayload{State: "complete", Message: "Interrupted", Data: &wire.StatusData{Stop: "error"}})
	s.flush()
	return s.save(ctx, func(m *metadata) { m.Turn.Active = false })
}

// sentText returns the text that was sent after the last call of a turn.
func sentText(events []store.Event) string {
	var b strings.Builder
	for _, e := range events {
		var out struct {
			Type    string `json:"type"`
			Payload struct {
				Content string `json:"content"`
				Tool    string `json:"tool"`
			} `json:"payload"`
		}
		if json.Unmarshal(e.Data, &out) != nil {
			continue
		}
		switch {
		case out.Type == wire.TypeText:
			b.WriteString(out.Payload.Content)
		case out.Type == wire.TypeStatus && out.Payload.Tool != "":
			b.Reset() // the history contains the message with that call
		}
	}
	return b.String()
}

func decode(m store.Message) historyEntry {
	e := historyEntry{seq: m.Seq, time: m.Time}
	if json.Unmarshal(m.Content, &e.messageMeta) != nil {
		e.messageMeta = messageMeta{Parts: []llm.Part{{Text: "(this message cannot be read)"}}}
	}
	e.message = llm.Message{Role: llm.Role(m.Role), Parts: e.Parts}
	if len(m.Native) > 0 {
		var n llm.Native
		if json.Unmarshal(m.Native, &n) == nil {
			e.message.Native = &n
		}
	}
	return e
}
