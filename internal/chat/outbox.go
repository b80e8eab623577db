package chat

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"junctor/internal/chat/wire"
	"junctor/internal/store"
	"junctor/internal/telemetry"
)

// outbox is the queue of a session's outgoing messages. Messages wait in it
// while earlier ones are being stored. Queued text messages are merged, so that
// a slow store leads to larger messages rather than a longer queue.
type outbox struct {
	waiting []wire.Outgoing
	sent    int64 // the last sequence number that was stored and sent
	busy    bool
	idle    chan struct{} // closed when the queue is empty; nil when idle
}

func (o *outbox) start(seq int64) { o.sent = max(o.sent, seq) }

// last returns the sequence number of the last message, sent or waiting.
func (o *outbox) last() int64 { return o.sent + int64(len(o.waiting)) }

// emit sends a message to all watchers of the session.
func (s *Session) emit(kind string, payload any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &s.outbox
	if c, ok := payload.(wire.ContentPayload); ok {
		if n := len(o.waiting); n > 0 && o.waiting[n-1].Type == kind {
			before := o.waiting[n-1].Payload.(wire.ContentPayload)
			o.waiting[n-1].Payload = wire.ContentPayload{Content: before.Content + c.Content}
			return
		}
	}
	o.waiting = append(o.waiting, wire.Outgoing{Type: kind, Payload: payload})
	if !o.busy {
		o.busy, o.idle = true, make(chan struct{})
		s.host.turns.Go(s.deliver)
	}
}

// flush waits until all messages have been sent.
func (s *Session) flush() {
	s.mu.Lock()
	idle := s.outbox.idle
	s.mu.Unlock()
	if idle != nil {
		<-idle
	}
}

// deliver stores and sends messages until the queue is empty.
func (s *Session) deliver() {
	o := &s.outbox
	for {
		s.mu.Lock()
		if len(o.waiting) == 0 {
			o.busy = false
			close(o.idle)
			o.idle = nil
			s.mu.Unlock()
			return
		}
		batch := o.waiting
		o.waiting = nil
		s.mu.Unlock()
		out := s.storeMessages(batch)
		s.mu.Lock()
		o.sent += int64(len(batch))
		s.broadcast(out)
		s.mu.Unlock()
	}
}

// storeMessages numbers, encodes and stores messages and returns the encoded
// ones. If another process has used the numbers, its messages are forwarded
// first and the batch is renumbered.
func (s *Session) storeMessages(batch []wire.Outgoing) [][]byte {
	ctx, cancel := context.WithTimeout(telemetry.WithSession(context.Background(), s.id), 10*time.Second)
	defer cancel()
	now := time.Now()
	out := make([][]byte, len(batch))
	events := make([]store.Event, len(batch))
	for {
		s.mu.Lock()
		first := s.outbox.sent + 1
		s.mu.Unlock()
		for i, m := range batch {
			m.Seq = first + int64(i)
			data, err := json.Marshal(m)
			if err != nil { // cannot happen: raw JSON from tools is validated earlier
				data, _ = json.Marshal(wire.Outgoing{Type: wire.TypeError, Seq: m.Seq, Payload: wire.ErrorPayload{Code: "INTERNAL", Message: "a message could not be encoded"}})
			}
			out[i] = data
			events[i] = store.Event{Session: s.id, Seq: m.Seq, Time: now, Data: data}
		}
		err := s.host.Store.AppendEvents(ctx, s.id, events...)
		if errors.Is(err, store.ErrConflict) {
			if _, err = s.forward(ctx, true); err == nil {
				continue
			}
		}
		// A client that reconnects must find the messages it has seen. But a
		// store that is down must not stop the conversation.
		if err != nil {
			s.host.Log.WarnContext(ctx, "cannot store messages; clients that reconnect will not receive them", "err", err)
		}
		return out
	}
}

// broadcast passes messages to the watchers and drops those that are too slow.
// s.mu is held.
func (s *Session) broadcast(out [][]byte) {
	for w := range s.watchers {
		for _, data := range out {
			if !w.push(data) {
				w.drop()
				delete(s.watchers, w)
				if s.host.Meter != nil {
					s.host.Meter.Dropped("chat client")
				}
				break
			}
		}
	}
}
