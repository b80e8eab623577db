package chat

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"junctor/internal/chat/wire"
	"junctor/internal/llm"
	"junctor/internal/store"
)

// load reads the session from the store. If its process died during a turn, the
// turn is ended, so that the history is valid and marked as interrupted.
func (s *Session) load(ctx context.Context) error {
	active, err := s.read(ctx)
	if err != nil || !active {
		return err
	}
	_, held, err := s.host.Store.Acquire(ctx, leaseName(s.id), s.host.Node, s.host.leaseTime)
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
	// The turn may have ended before the lease was acquired.
	if active, err = s.read(ctx); err != nil || !active {
		return err
	}
	return s.recover(ctx)
}

// read reads the session from the store and reports whether a turn is marked as
// in progress.
func (s *Session) read(ctx context.Context) (active bool, err error) {
	rec, err := s.host.Store.Session(ctx, s.id)
	if errors.Is(err, store.ErrNotFound) {
		return false, noSession()
	}
	if err != nil {
		return false, unavailable(err)
	}
	messages, err := s.host.Store.Messages(ctx, s.id, 0, 0)
	if err != nil {
		return false, unavailable(err)
	}
	meta, err := metadataOf(&rec)
	if err != nil {
		return false, unavailable(err)
	}
	s.mu.Lock()
	known := s.meta
	s.meta = meta
	if !s.updated.IsZero() { // applyNewer decides
		s.meta.Preferences, s.meta.Profiles = known.Preferences, known.Profiles
	}
	s.applyNewer(&rec, &meta)
	s.all = nil
	for _, m := range messages {
		s.all = append(s.all, decode(m))
	}
	s.entries = pathTo(s.all, meta.Leaf)
	if len(s.watchers) == 0 && !s.outbox.busy { // earlier messages have no receivers
		s.outbox.start(meta.Seq)
	}
	s.mu.Unlock()
	return meta.Turn.Active, unavailable(s.catchUp(ctx))
}

// refresh reloads the session if another process may have changed it.
func (s *Session) refresh(ctx context.Context) error {
	if !s.host.Shared {
		return nil
	}
	s.recordMu.Lock() // a reply that begins after the check waits for it in claim
	defer s.recordMu.Unlock()
	s.mu.Lock()
	stale := s.stored && s.turn == nil && !s.outbox.busy
	s.mu.Unlock()
	if !stale {
		return nil
	}
	return s.load(ctx)
}

// catchUp forwards the messages that other processes have sent in this session,
// unless messages of this process are being stored.
func (s *Session) catchUp(ctx context.Context) error {
	_, err := s.forward(ctx, false)
	return err
}

// forward forwards the messages that other processes have sent. storing means
// that it is called while messages of this process are being stored. It
// forwards nothing and reports false if another goroutine sent messages in the
// meantime or is sending them.
func (s *Session) forward(ctx context.Context, storing bool) (bool, error) {
	s.mu.Lock()
	sent, narrowed := s.outbox.sent, false
	for w := range s.watchers {
		narrowed = narrowed || len(w.caller.Profiles) > 0
	}
	s.mu.Unlock()
	events, err := s.host.Store.Events(ctx, s.id, sent, 0)
	if err != nil {
		return false, err
	}
	seen := make([]eventHead, len(events))
	for i, e := range events {
		_ = json.Unmarshal(e.Data, &seen[i]) // an event that cannot be parsed changes nothing
	}
	if len(events) > 0 && (narrowed || slices.ContainsFunc(seen, eventHead.changesRecord)) {
		if err := s.readRecord(ctx); err != nil {
			return false, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.outbox.busy != storing || s.outbox.sent != sent {
		return false, nil
	}
	out := make([][]byte, len(events))
	for i, e := range events {
		out[i] = e.Data
		s.outbox.sent = e.Seq
		switch { // a turn that another process began and ended
		case s.turn != nil:
		case seen[i].endsTurn():
			s.meta.Turn.Active = false
		case seen[i].startsTurn():
			s.meta.Turn.Active, s.foreign = true, true
		}
	}
	s.broadcast(out)
	return true, nil
}

// eventHead holds the fields that forward needs of a message sent by another
// process.
type eventHead struct {
	Type    string `json:"type"`
	Payload struct {
		Again bool   `json:"again"` // of a branch
		Tool  string `json:"tool"`  // of a status
		State string `json:"state"`
	} `json:"payload"`
}

// startsTurn reports whether the message begins a turn: a message of the user,
// or a request to answer one again.
func (e eventHead) startsTurn() bool {
	return e.Type == wire.TypeMessage || e.Type == wire.TypeBranch && e.Payload.Again
}

func (e eventHead) endsTurn() bool {
	return e.Type == wire.TypeStatus && e.Payload.Tool == "" && e.Payload.State == "complete"
}

func (e eventHead) changesRecord() bool { return e.Type == wire.TypeSession }

// recover ends a turn whose process died. This process has the lease.
func (s *Session) recover(ctx context.Context) error {
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
