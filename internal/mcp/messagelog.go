package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"

	"junctor/internal/telemetry"
)

const (
	maxLogged = 4 << 10 // bytes of one message in the log
	// logMargin keeps a secret that straddles the cut recognisable until it
	// is redacted.
	logMargin = 1 << 10
)

// messageLog writes messages to the log at the level trace: redacted, and cut
// where they are long. It costs one comparison when the level is off.
type messageLog struct {
	log    *slog.Logger
	redact func(string) string // nil for none
}

func (l messageLog) write(ctx context.Context, event string, m *Message) {
	if !l.log.Enabled(ctx, telemetry.SlogTrace) {
		return
	}
	payload := m.Params
	switch {
	case m.Error != nil:
		payload, _ = json.Marshal(m.Error) // its data came as JSON
	case m.Result != nil:
		payload = m.Result
	}
	text := string(payload[:min(len(payload), maxLogged+logMargin)])
	if l.redact != nil {
		text = l.redact(text)
	}
	text = strings.ToValidUTF8(text[:min(len(text), maxLogged)], "")
	l.log.Log(ctx, telemetry.SlogTrace, event,
		"id", string(m.ID[:min(len(m.ID), 64)]), "method", m.Method[:min(len(m.Method), 128)], "bytes", len(payload), "payload", text)
}

// logMessage writes a message to or from the upstream.
func (c *Client) logMessage(direction string, m *Message) {
	messageLog{c.log, c.opts.Redact}.write(c.ctx, "message "+direction, m)
}

// logReceived and logSent write a message from and to a client.
func (s *Server) logReceived(ctx context.Context, m *Message) {
	messageLog{s.log, s.opts.Redact}.write(ctx, "client message received", m)
}

func (s *Server) logSent(ctx context.Context, m *Message) {
	messageLog{s.log, s.opts.Redact}.write(ctx, "client message sent", m)
}
