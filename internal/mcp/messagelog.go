package mcp

import (
	"encoding/json"
	"strings"

	"junctor/internal/telemetry"
)

const (
	maxLogged = 4 << 10 // bytes of one message in the log
	// logMargin keeps a secret that straddles the cut recognisable until it
	// is redacted.
	logMargin = 1 << 10
)

// logMessage writes a message to the log at the level trace: redacted, and cut
// where it is long. It costs one comparison when the level is off.
func (c *Client) logMessage(direction string, m *Message) {
	if !c.log.Enabled(c.ctx, telemetry.SlogTrace) {
		return
	}
	payload := m.Params
	switch {
	case m.Error != nil:
		payload, _ = json.Marshal(m.Error) // it came as JSON
	case m.Result != nil:
		payload = m.Result
	}
	text := string(payload[:min(len(payload), maxLogged+logMargin)])
	if c.opts.Redact != nil {
		text = c.opts.Redact(text)
	}
	text = strings.ToValidUTF8(text[:min(len(text), maxLogged)], "")
	c.log.Log(c.ctx, telemetry.SlogTrace, "message "+direction,
		"id", string(m.ID[:min(len(m.ID), 64)]), "method", m.Method[:min(len(m.Method), 128)], "bytes", len(payload), "payload", text)
}
