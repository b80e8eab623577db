package chat

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"junctor/internal/chat/wire"
	"junctor/internal/store"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// defaultLeaseTime is the duration of a session lease. It is short because
// users wait for the lease of a dead process to expire.
const defaultLeaseTime = 1500 * time.Millisecond

func leaseName(session string) string { return "chat/" + session }

// acquire acquires the lease of the session for a reply. Another process may
// hold it only briefly, to check whether a reply has ended (endOrphanedReply).
// So acquire retries for up to one lease time, unless a reply is in progress.
func (s *Session) acquire(ctx context.Context) error {
	h := s.host
	for end := time.Now().Add(h.leaseTime); ; {
		_, held, err := h.Store.Acquire(ctx, leaseName(s.id), h.Node, h.leaseTime)
		if err != nil {
			return unavailable(err)
		}
		if held {
			return nil
		}
		rec, err := h.Store.Session(ctx, s.id)
		if errors.Is(err, store.ErrNotFound) {
			return noSession()
		}
		if err != nil {
			return unavailable(err)
		}
		meta, err := metadataOf(&rec)
		if err != nil {
			return unavailable(err)
		}
		if meta.Turn.Active || time.Now().After(end) {
			return busy()
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return unavailable(ctx.Err())
		}
	}
}

// renew renews the lease while the turn runs. A process that has lost the lease
// must stop, because another one may be writing.
func (s *Session) renew(ctx context.Context, t *turn) {
	tick := time.NewTicker(s.host.leaseTime / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			_, held, err := s.host.Store.Acquire(ctx, leaseName(s.id), s.host.Node, s.host.leaseTime)
			if err == nil && !held {
				s.host.Log.WarnContext(ctx, "another process has taken over the session; the reply ends here")
				t.cancel(errAborted)
				return
			}
		}
	}
}

// endOrphanedReply ends a reply whose process died.
func (s *Session) endOrphanedReply(ctx context.Context) error {
	s.recordMu.Lock()
	defer s.recordMu.Unlock()
	s.mu.Lock()
	due := s.turn == nil && s.foreign && s.meta.Turn.Active && !s.outbox.busy
	s.mu.Unlock()
	if !due {
		return nil
	}
	_, held, err := s.host.Store.Acquire(ctx, leaseName(s.id), s.host.Node, s.host.leaseTime)
	if err != nil || !held {
		return err
	}
	defer s.release(ctx)
	return s.load(ctx)
}

// endDeadTurns ends the replies that were in progress when an earlier process
// on this store died. A lease that has not expired may belong to a live
// process, so it is checked again after a lease time, at most twice.
func (h *Host) endDeadTurns(ctx context.Context) {
	for range 3 {
		list, err := h.Store.Sessions(ctx, store.SessionQuery{Limit: store.MaxLimit})
		if err != nil {
			if ctx.Err() == nil {
				h.Log.WarnContext(ctx, "cannot end the replies of an earlier process; each one ends when its conversation is opened", "err", err)
			}
			return
		}
		alive := false
		for _, rec := range list {
			if meta, err := metadataOf(&rec); err != nil || !meta.Turn.Active {
				continue
			}
			s, err := h.Open(ctx, tool.Caller{ID: rec.Owner}, rec.ID)
			if err == nil {
				err = s.endOrphanedReply(ctx)
			}
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				h.Log.WarnContext(ctx, "cannot end a reply of an earlier process", telemetry.KeySession, rec.ID, "err", err)
				continue
			}
			s.mu.Lock()
			alive = alive || s.foreign && s.meta.Turn.Active
			s.mu.Unlock()
		}
		if !alive {
			return
		}
		select {
		case <-time.After(h.leaseTime):
		case <-ctx.Done():
			return
		}
	}
}

// watchLeaseTTL is the duration of the lease by which a process shows that it
// has watchers of a session.
const watchLeaseTTL = 10 * time.Second

func watchName(session string) string { return "chat-watch/" + session }

// renewWatchLease signals to the process that runs the reply that the session
// has watchers here; without watchers anywhere the reply is stopped. It reports
// whether another process runs a reply that is watched here.
func (s *Session) renewWatchLease(ctx context.Context) (bool, error) {
	s.mu.Lock()
	due := s.turn == nil && s.foreign && s.meta.Turn.Active && len(s.watchers) > 0
	s.mu.Unlock()
	if !due {
		return false, nil
	}
	_, _, err := s.host.Store.Acquire(ctx, watchName(s.id), s.host.Node, watchLeaseTTL)
	return true, err
}

// releaseWatchLease releases that lease.
func (s *Session) releaseWatchLease(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := s.host.Store.Release(ctx, watchName(s.id), s.host.Node); err != nil {
		s.host.Log.WarnContext(ctx, "cannot release the lease of a watched session; it will expire", "after", watchLeaseTTL, "err", err)
	}
}

// watchedElsewhere reports whether the session has watchers in another process.
// It returns true if that cannot be determined, so that the reply is not
// stopped.
func (s *Session) watchedElsewhere() bool {
	if !s.host.Shared {
		return false
	}
	ctx, cancel := context.WithTimeout(telemetry.WithSession(s.host.ctx, s.id), 5*time.Second)
	defer cancel()
	_, free, err := s.host.Store.Acquire(ctx, watchName(s.id), s.host.Node, watchLeaseTTL)
	if err != nil {
		return true
	}
	if free {
		s.releaseWatchLease(ctx)
	}
	return !free
}

func (s *Session) release(ctx context.Context) {
	if err := s.host.Store.Release(ctx, leaseName(s.id), s.host.Node); err != nil {
		s.host.Log.WarnContext(ctx, "cannot release the session; another process must wait until its lease expires", telemetry.KeySession, s.id, "after", s.host.leaseTime, "err", err)
	}
}

// commandSpace is the store's space of commands to the process that runs a
// reply. They are needed because the user may be connected to another node.
const commandSpace = "chat-commands"

// commandTTL bounds how long a command waits for that process.
const commandTTL = time.Minute

type command struct {
	Seen       int64          `json:"seen"` // the last message that the sender had seen; the command does not apply to later replies
	Abort      bool           `json:"abort,omitempty"`
	CallID     string         `json:"callId,omitempty"`
	Decision   *wire.Decision `json:"decision,omitempty"`
	QuestionID string         `json:"questionId,omitempty"`
	Answer     *wire.Answer   `json:"answer,omitempty"`
}

// seen returns the number of the newest message that this process has seen.
// s.mu is held.
func (s *Session) seen() int64 { return max(s.outbox.sent, s.meta.Turn.Event) }

// command stores a command for the process that runs a session's reply.
func (h *Host) command(ctx context.Context, session string, c command) bool {
	data, err := json.Marshal(c)
	if err != nil {
		return false
	}
	name := session + "/" + newID("cmd")
	if _, err := h.Store.PutValue(ctx, store.Value{Space: commandSpace, Name: name, Data: data, Expires: time.Now().Add(commandTTL)}, store.AnyVersion); err != nil {
		h.Log.WarnContext(ctx, "cannot store a command to another process", telemetry.KeySession, session, "err", err)
		return false
	}
	return true
}

// runCommands executes the commands that other processes stored for the replies
// of this process.
func (h *Host) runCommands(ctx context.Context) {
	values, err := h.Store.Values(ctx, commandSpace)
	if err != nil {
		if ctx.Err() == nil {
			h.Log.WarnContext(ctx, "cannot read the commands of other processes", "err", err)
		}
		return
	}
	for _, v := range values {
		id, _, _ := strings.Cut(v.Name, "/")
		s := h.loaded(id)
		if s == nil {
			continue
		}
		s.mu.Lock()
		t, event := s.turn, int64(0)
		if t != nil {
			event = t.event
		}
		s.mu.Unlock()
		var c command
		if event == 0 || json.Unmarshal(v.Data, &c) != nil {
			continue
		}
		if err := h.Store.DeleteValue(ctx, commandSpace, v.Name, v.Version); err != nil {
			continue // another process has taken it
		}
		if c.Seen < event { // the reply that it was for has ended
			continue
		}
		if c.Abort {
			t.cancel(errAborted)
		}
		if c.Decision != nil {
			s.Decide(ctx, c.CallID, *c.Decision)
		}
		if c.Answer != nil {
			if err := s.Answer(ctx, c.QuestionID, *c.Answer); err != nil { // the sender is a watcher and sees the outcome
				e := tool.AsError(err)
				s.emit(wire.TypeError, wire.ErrorPayload{Code: string(e.Kind), Message: e.Msg, QuestionID: c.QuestionID})
			}
		}
	}
}

// deleteOldest deletes the oldest sessions of a caller that has too many. Pinned
// ones stay; Change bounds their number.
func (h *Host) deleteOldest(ctx context.Context, owner string) {
	limit := h.config().MaxSessions
	if limit <= 0 {
		return
	}
	list, err := h.Store.Sessions(ctx, store.SessionQuery{Owner: owner, Limit: limit + 50})
	if err != nil {
		h.Log.WarnContext(ctx, "cannot count the old sessions", "err", err)
		return
	}
	list = slices.DeleteFunc(list, func(rec store.Session) bool {
		meta, _ := metadataOf(&rec) // a record that cannot be parsed is not pinned
		if meta.Pinned {
			limit--
		}
		return meta.Pinned
	})
	for i := len(list) - 1; i >= limit-1 && i >= 0; i-- {
		if s := h.loaded(list[i].ID); s != nil && s.idleSince(time.Now()) == 0 {
			continue // in use
		}
		if err := h.remove(ctx, list[i].ID); err != nil {
			h.Log.WarnContext(ctx, "cannot delete an old session", telemetry.KeySession, list[i].ID, "err", err)
		}
	}
}

// remove deletes a session and ends its reply in progress.
func (h *Host) remove(ctx context.Context, id string) error {
	h.mu.Lock()
	s := h.sessions[id]
	delete(h.sessions, id)
	h.mu.Unlock()
	if s != nil {
		s.mu.Lock()
		s.deleted = true
		t := s.turn
		s.mu.Unlock()
		if t != nil {
			t.cancel(errAborted)
			select {
			case <-t.done:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		s.mu.Lock()
		for w := range s.watchers {
			w.drop()
		}
		s.mu.Unlock()
	}
	return h.Store.DeleteSession(ctx, id)
}
