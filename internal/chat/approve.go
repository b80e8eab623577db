package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"junctor/internal/approval"
	"junctor/internal/chat/wire"
	"junctor/internal/llm"
	"junctor/internal/tool"
)

var errNoAnswer = errors.New("approval timed out")

// approve asks the user whether a call may run, unless it was allowed for this
// session. The executor has already applied permanent approvals.
func (s *Session) approve(ctx context.Context, t *turn, c *llm.ToolCall, n tool.Name, args json.RawMessage) (bool, error) {
	name, subject := n.String(), s.host.Approvals.Subject(n)
	s.mu.Lock()
	known := slices.Contains(s.meta.Allow, subject)
	s.mu.Unlock()
	if known {
		return true, nil
	}
	wait := s.host.ApprovalTimeout()
	answer := make(chan wire.Decision, 1)
	s.changeWaiting(func() { t.approvals[c.ID] = answer })
	defer s.changeWaiting(func() { delete(t.approvals, c.ID) })
	s.emit(wire.TypeApproval, wire.ApprovalPayload{CallID: c.ID, Tool: name, Arguments: args,
		Message: fmt.Sprintf("%s wants to run. Allow it?", name), Expires: time.Now().Add(wait).UTC()})
	d, err := await(ctx, t, answer, wait)
	if errors.Is(err, approval.ErrAnswered) { // which closes the question
		s.emit(wire.TypeStatus, wire.StatusPayload{State: "processing", Tool: name, Message: name + " was decided by an administrator", Data: &wire.StatusData{CallID: c.ID}})
	}
	if err != nil {
		return false, err
	}
	if d.Approve {
		if err := s.remember(ctx, t, subject, d.Scope); err != nil {
			s.host.Log.WarnContext(ctx, "cannot store the approval; the person will be asked again", "tool", name, "err", err)
		}
	}
	s.mu.Lock()
	t.reasons[c.ID] = d.Reason
	s.mu.Unlock()
	return d.Approve, nil
}

func (s *Session) remember(ctx context.Context, t *turn, name string, scope wire.Scope) error {
	switch scope {
	case wire.ForSession:
		return s.save(ctx, func(m *metadata) { m.Allow = append(m.Allow, name) })
	case wire.Always:
		return s.host.Approvals.AllowAlways(ctx, t.caller, name)
	}
	return nil
}

// Decide answers an approval request. It reports false if there is no such
// request: it was answered already, or has timed out.
func (s *Session) Decide(ctx context.Context, callID string, d wire.Decision) bool {
	s.mu.Lock()
	var answer chan wire.Decision
	if s.turn != nil {
		answer = s.turn.approvals[callID]
		delete(s.turn.approvals, callID)
	}
	elsewhere, seen := s.turn == nil && s.foreign, s.seen()
	s.mu.Unlock()
	if answer != nil {
		answer <- d
		return true
	}
	return elsewhere && s.host.command(ctx, s.id, command{Seen: seen, CallID: callID, Decision: &d})
}
