package chat

import (
	"context"
	"encoding/json"
	"sync"
	"sync/atomic"
	"time"

	"junctor/internal/chat/wire"
	"junctor/internal/llm"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// queueLength bounds the messages that wait for one client.
const queueLength = 256

// Watcher receives the messages of one session.
type Watcher struct {
	session *Session
	caller  tool.Caller
	queue   chan []byte
	done    chan struct{} // closed when the watcher has ended
	once    sync.Once

	first  [][]byte               // sent before the queue
	onDrop atomic.Pointer[func()] // may be nil; must not block
}

func (w *Watcher) push(data []byte) bool {
	select {
	case w.queue <- data:
		return true
	default:
		return false
	}
}

// drop ends a watcher that is too slow, that may no longer read its session, or
// whose session was deleted.
func (w *Watcher) drop() {
	w.once.Do(func() {
		close(w.done)
		if f := w.onDrop.Load(); f != nil {
			(*f)()
		}
	})
}

// Close ends the watcher. Without watchers, a reply in progress is stopped
// after the configured grace period.
func (w *Watcher) Close() {
	w.once.Do(func() { close(w.done) }) // a client that leaves is not notified
	s := w.session
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.watchers, w)
	s.active = time.Now()
	s.startGrace()
}

// startGrace starts the grace period when the last watcher has left. s.mu is
// held.
func (s *Session) startGrace() {
	if len(s.watchers) > 0 {
		return
	}
	if s.follow != nil {
		s.follow()
		s.follow = nil
	}
	if s.turn == nil || s.grace != nil {
		return
	}
	t := s.turn
	s.grace = time.AfterFunc(s.host.config().DisconnectGraceMs.Duration(), func() {
		s.mu.Lock()
		alone := s.turn == t && len(s.watchers) == 0
		s.grace = nil
		s.mu.Unlock()
		if !alone {
			return
		}
		if s.watchedElsewhere() {
			s.mu.Lock()
			s.startGrace()
			s.mu.Unlock()
			return
		}
		t.cancel(errAborted)
	})
}

// Watch subscribes to the session. With after >= 0 it starts with the messages
// after that sequence number, or with the history if they are no longer
// available; with -1 it starts with the history. A reply in progress is sent
// from its beginning.
func (s *Session) Watch(ctx context.Context, caller tool.Caller, after int64) (*Watcher, error) {
	w := &Watcher{session: s, caller: caller, queue: make(chan []byte, queueLength), done: make(chan struct{})}
	s.mu.Lock()
	s.watchers[w] = struct{}{}
	s.active = time.Now()
	if s.grace != nil {
		s.grace.Stop()
		s.grace = nil
	}
	sent := s.outbox.sent
	mark := s.meta.Turn
	running := s.turn != nil && !s.turn.ending || s.foreign && mark.Active
	state := "connected"
	if after >= 0 {
		state = "reconnecting"
	}
	greeting := wire.ConnectionPayload{State: state, Message: "connected", SessionID: s.id, Title: s.title, Active: running, Preferences: s.meta.Preferences}
	known := s.stored
	s.startFollowing()
	s.mu.Unlock()

	greeting.Model = s.Model()
	if greeting.Model == "" {
		greeting.Message = "connected, but " + llm.NoModel
	}
	greeting.Unavailable = s.host.unavailableServers(&caller)
	cfg := s.host.config()
	greeting.Limits = wire.Limits{MessageBytes: cfg.MaxMessageBytes, AttachmentBytes: cfg.MaxAttachmentBytes}
	w.sendFirst(wire.TypeConnection, sent, greeting)
	if !known {
		return w, nil
	}
	from := after
	oldest := mark.Before // events before it have been deleted
	if oldest == 0 {
		oldest = mark.Event
	}
	if after < 0 || after+1 < oldest || after > sent {
		s.mu.Lock()
		from = sent
		before := int64(0)
		if running {
			from, before = mark.Event-1, mark.Message
		}
		history := s.history(before)
		s.mu.Unlock()
		w.sendFirst(wire.TypeHistory, from, trimHistory(history, maxHistory))
	}
	events, err := s.host.Store.Events(ctx, s.id, from, 0)
	if err = unavailable(err); err == nil {
		err = s.checkReadable(ctx, &caller)
	}
	if err != nil {
		w.Close()
		return nil, err
	}
	for _, e := range events {
		if e.Seq <= sent { // later events are delivered through the queue
			w.first = append(w.first, e.Data)
		}
	}
	return w, nil
}

// Send sends a message to this watcher only.
func (w *Watcher) Send(kind string, payload any) {
	s := w.session
	s.mu.Lock()
	seq := s.outbox.sent
	s.mu.Unlock()
	data, err := json.Marshal(wire.Outgoing{Type: kind, Seq: seq, Payload: payload})
	if err == nil && !w.push(data) {
		w.drop()
	}
}

func (w *Watcher) sendFirst(kind string, seq int64, payload any) {
	data, err := json.Marshal(wire.Outgoing{Type: kind, Seq: seq, Payload: payload})
	if err == nil {
		w.first = append(w.first, data)
	}
}

// startFollowing follows other processes while there are watchers. s.mu is held.
func (s *Session) startFollowing() {
	if s.follow != nil || !s.stored || len(s.watchers) == 0 || !s.host.Shared && !s.foreign {
		return
	}
	var ctx context.Context
	ctx, s.follow = context.WithCancel(telemetry.WithSession(s.host.ctx, s.id))
	s.host.turns.Go(func() { s.forwardChanges(ctx) })
}

// forwardChanges forwards the messages that another process sends in this session.
func (s *Session) forwardChanges(ctx context.Context) {
	changed := s.host.Store.Watch(ctx, store.TopicSession(s.id))
	tick := time.NewTicker(defaultLeaseTime / 6) // detects a dead process within 2 s
	defer tick.Stop()
	seen := time.NewTicker(watchLeaseTTL / 4)
	defer seen.Stop()
	missed, since := true, int64(0) // missed: there may be unread changes since that message, most of them this process's own
	marked, err := s.renewWatchLease(ctx)
	catchUp := func() {
		var done bool
		done, err = s.forward(ctx, false)
		missed = !done && err == nil // the store wakes watchers after it was unavailable
	}
	defer func() {
		if marked {
			s.releaseWatchLease(ctx)
		}
	}()
	for {
		if err != nil && ctx.Err() == nil {
			s.host.Log.WarnContext(ctx, "cannot follow the session of another process", "err", err)
		}
		err = nil
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err = s.endOrphanedReply(ctx); err != nil || !missed {
				break
			}
			// A message of this process is stored only after all earlier ones
			// were forwarded, so nothing is missed while it is sending.
			if sent, mine := s.sendState(); mine && sent != since {
				since = sent
				break
			}
			catchUp()
		case <-seen.C:
			var again bool
			again, err = s.renewWatchLease(ctx)
			marked = marked || again
		case <-changed:
			sent, mine := s.sendState()
			if !missed {
				missed, since = true, sent
			}
			if !mine {
				catchUp()
			}
		}
	}
}

// sendState returns the number of the last message that was sent, and whether
// this process is sending messages now.
func (s *Session) sendState() (sent int64, mine bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.outbox.sent, s.turn != nil || s.outbox.busy
}
