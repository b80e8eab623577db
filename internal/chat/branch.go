package chat

import (
	"context"
	"fmt"
	"slices"

	"junctor/internal/chat/wire"
	"junctor/internal/llm"
	"junctor/internal/tool"
)

// A conversation is a tree: each message has a parent, the message that it
// follows. The session's entries are one path through it, from the first
// message to the current leaf; the model and the clients see only this path.
// Editing a message or regenerating a reply starts another branch; nothing is
// deleted.

// parent returns the sequence number of the message that e follows, or 0 for
// the first message.
func (e historyEntry) parent() int64 {
	if e.Parent != nil {
		return *e.Parent
	}
	return e.seq - 1
}

// find returns the message with a sequence number, or nil.
func find(all []historyEntry, seq int64) *historyEntry {
	i, ok := slices.BinarySearchFunc(all, seq, func(e historyEntry, seq int64) int { return int(e.seq - seq) })
	if !ok {
		return nil
	}
	return &all[i]
}

// pathTo returns the messages from the first one to leaf; 0 means the newest
// message.
func pathTo(all []historyEntry, leaf int64) []historyEntry {
	if len(all) == 0 {
		return nil
	}
	e := find(all, leaf)
	if e == nil {
		e = &all[len(all)-1]
	}
	var path []historyEntry
	for e != nil {
		path = append(path, *e)
		if e.parent() >= e.seq {
			break // not written by this program
		}
		e = find(all, e.parent())
	}
	slices.Reverse(path)
	return path
}

// newestLeaf returns the newest descendant of a message, or the message itself
// if it has none.
func newestLeaf(all []historyEntry, seq int64) int64 {
	for _, e := range slices.Backward(all) {
		for at := &e; at != nil && at.seq >= seq && at.parent() < at.seq; at = find(all, at.parent()) {
			if at.seq == seq {
				return e.seq // the newest of its descendants
			}
		}
	}
	return seq
}

// alternatives returns, by sequence number of the parent, the ids of the
// messages that follow it where there are several.
func alternatives(all []historyEntry) map[int64][]string {
	children := map[int64][]string{}
	for _, e := range all {
		children[e.parent()] = append(children[e.parent()], e.ID)
	}
	for parent, ids := range children {
		if len(ids) < 2 {
			delete(children, parent)
		}
	}
	return children
}

// onPath reports whether a message is on the path.
func onPath(path []historyEntry, seq int64) bool { return find(path, seq) != nil }

// basePath returns the part of the current path that a message follows: all of
// it for a new message, the part before an edited message, or the part up to
// and including the user message to be answered again. s.mu is held.
func (s *Session) basePath(m wire.SendMessage) ([]historyEntry, error) {
	id := firstNonEmpty(m.Edit, m.Again)
	if id == "" {
		return s.entries, nil
	}
	at := slices.IndexFunc(s.entries, func(e historyEntry) bool { return e.ID == id })
	if at >= 0 && m.Edit != "" && s.entries[at].message.Role == llm.User {
		return s.entries[:at:at], nil
	}
	if m.Again != "" {
		for ; at >= 0; at-- {
			if s.entries[at].message.Role == llm.User {
				return s.entries[: at+1 : at+1], nil
			}
		}
	}
	return nil, invalid(fmt.Sprintf("there is no message %q of the user in this conversation", tool.Shorten(id, 80)))
}

// Switch makes the branch of a message the current one.
func (s *Session) Switch(ctx context.Context, id string) error {
	s.mu.Lock()
	if err := s.awaitEnding(ctx); err != nil {
		s.mu.Unlock()
		return err
	}
	if s.deleted || !s.stored || s.foreign && s.meta.Turn.Active {
		s.mu.Unlock()
		return busy()
	}
	// A message sent in the meantime waits until the switch is done.
	t := &turn{session: s, done: make(chan struct{}), cancel: func(error) {}, ending: true}
	s.turn = t
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.turn = nil
		s.mu.Unlock()
		close(t.done)
	}()
	if err := s.claim(ctx, "", ""); err != nil {
		return err
	}
	defer s.release(context.WithoutCancel(ctx))
	s.mu.Lock()
	at := slices.IndexFunc(s.all, func(e historyEntry) bool { return e.ID == id })
	if at < 0 {
		s.mu.Unlock()
		return invalid(fmt.Sprintf("there is no message %q in this conversation", tool.Shorten(id, 80)))
	}
	leaf := newestLeaf(s.all, s.all[at].seq)
	s.entries = pathTo(s.all, leaf)
	s.mu.Unlock()
	s.emit(wire.TypeBranch, wire.BranchPayload{Reload: true})
	s.flush()
	return unavailable(s.save(ctx, func(m *metadata) { m.Leaf = leaf }))
}
