package mcp

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
)

const (
	maxLogged = 4 << 10 // bytes of one message in the log
	// logMargin is redacted in addition to maxLogged, so that a secret across
	// the cut is recognized.
	logMargin = 1 << 10
)

// MessageLog logs messages at a level, redacted and truncated. It costs one
// comparison if the level is disabled.
type MessageLog struct {
	Log    *slog.Logger
	Level  slog.Level
	Redact func(string) string // nil for none
}

// Write logs m with event as the log message.
func (l MessageLog) Write(ctx context.Context, event string, m *Message) {
	if !l.Log.Enabled(ctx, l.Level) {
		return
	}
	payload := m.Params
	switch {
	case m.Error != nil:
		payload, _ = json.Marshal(m.Error) // its data is valid JSON
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
