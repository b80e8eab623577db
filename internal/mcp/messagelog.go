package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
)

const (
	maxLogged = 4 << 10 // bytes of one message in the log
	// logMargin keeps a secret that straddles the cut recognisable until it
	// is redacted.
	logMargin = 1 << 10
)

// MessageLog writes messages to the log at a level: redacted, and cut where
// they are long. It costs one comparison when the level is off.
type MessageLog struct {
	Log    *slog.Logger
	Level  slog.Level
	Redact func(string) string // nil for none
}

// Write writes m to the log, under the name of the event.
func (l MessageLog) Write(ctx context.Context, event string, m *Message) {
	if !l.Log.Enabled(ctx, l.Level) {
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
	if l.Redact != nil {
		text = l.Redact(text)
	}
	text = strings.ToValidUTF8(text[:min(len(text), maxLogged)], "")
	l.Log.Log(ctx, l.Level, event,
		"id", string(m.ID[:min(len(m.ID), 64)]), "method", m.Method[:min(len(m.Method), 128)], "bytes", len(payload), "payload", text)
}
