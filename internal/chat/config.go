package chat

import (
	"errors"

	"junctor/internal/setting"
)

// Config has the limits and timeouts of chat sessions.
type Config struct {
	// Maximum number of tokens of history that the model receives; 0 means as many as its context window allows.
	MaxTokenCount int `json:"maxTokenCount"`
	// Number of newest messages to keep when older ones are summarised, as long as they fit.
	RetainNewestMessages int `json:"retainNewestMessages"`
	// Number of tokens of history above which older turns are summarised; 0 means three quarters of the maximum.
	SummarizationThreshold int `json:"summarizationThreshold"`

	// Maximum number of steps in a turn, each of which is a reply of the model with tool calls. Then the model must answer without tools.
	MaxSteps int `json:"maxSteps"`
	// Maximum number of identical calls in a turn. Then the model must answer without tools.
	MaxIdenticalCalls int `json:"maxIdenticalCalls"`
	// Maximum number of concurrent tool calls in a turn.
	ParallelCalls int `json:"parallelCalls"`
	// Number of tools above which the model receives search and execute tools instead of all definitions.
	MetaToolsAbove int `json:"metaToolsAbove"`
	// Maximum size of a tool result that the model receives, in bytes. Longer results are truncated.
	MaxResultBytes int `json:"maxResultBytes"`

	// Maximum size of a person's message, in bytes.
	MaxMessageBytes int `json:"maxMessageBytes"`
	// Maximum total size of the attachments of a message, in bytes.
	MaxAttachmentBytes int `json:"maxAttachmentBytes"`
	// Maximum number of messages per connection and minute.
	MessagesPerMinute int `json:"messagesPerMinute"`
	// Maximum number of WebSocket connections.
	MaxConnections int `json:"maxConnections"`
	// Maximum number of stored sessions per caller; 0 means no limit. Above it, the oldest sessions that are neither pinned nor in use are deleted.
	MaxSessions int `json:"maxSessions"`
	// How long an idle session stays in memory. It remains in the store.
	SessionIdleMs setting.Millis `json:"sessionIdleMs"`
	// Interval of keep-alive pings.
	PingMs setting.Millis `json:"pingMs"`
	// How long a reply continues while no client is connected to its session.
	DisconnectGraceMs setting.Millis `json:"disconnectGraceMs"`
}

// DefaultConfig returns the specified defaults, and values for a single machine
// where none are specified.
func DefaultConfig() Config {
	return Config{
		RetainNewestMessages: 10,
		MaxSteps:             25,
		MaxIdenticalCalls:    5,
		ParallelCalls:        8,
		MetaToolsAbove:       100,
		MaxResultBytes:       64 << 10,
		MaxMessageBytes:      256 << 10,
		MaxAttachmentBytes:   10 << 20,
		MessagesPerMinute:    60,
		MaxConnections:       10_000,
		SessionIdleMs:        30 * 60_000,
		PingMs:               30_000,
		DisconnectGraceMs:    60_000,
	}
}

// Validate reports everything that is wrong with the configuration.
func (c Config) Validate() error {
	errs := []error{
		setting.NotNegative("maxTokenCount", c.MaxTokenCount),
		setting.NotNegative("retainNewestMessages", c.RetainNewestMessages),
		setting.NotNegative("summarizationThreshold", c.SummarizationThreshold),
		setting.NotNegative("metaToolsAbove", c.MetaToolsAbove),
		setting.NotNegative("maxSessions", c.MaxSessions),
		setting.NotNegative("maxAttachmentBytes", c.MaxAttachmentBytes),
		setting.CheckMillis("sessionIdleMs", c.SessionIdleMs),
		setting.CheckMillis("pingMs", c.PingMs),
		setting.CheckMillis("disconnectGraceMs", c.DisconnectGraceMs),
	}
	for _, n := range []struct {
		key   string
		value int
		min   int
	}{
		{"maxSteps", c.MaxSteps, 1},
		{"maxIdenticalCalls", c.MaxIdenticalCalls, 1},
		{"parallelCalls", c.ParallelCalls, 1},
		{"maxResultBytes", c.MaxResultBytes, 1024},
		{"maxMessageBytes", c.MaxMessageBytes, 1},
		{"messagesPerMinute", c.MessagesPerMinute, 1},
		{"maxConnections", c.MaxConnections, 1},
		{"pingMs", int(c.PingMs), 100},
	} {
		if n.value < n.min {
			errs = append(errs, setting.Wrong(n.key, "must be at least %d", n.min))
		}
	}
	if c.MaxTokenCount > 0 && c.SummarizationThreshold > c.MaxTokenCount {
		errs = append(errs, setting.Wrong("summarizationThreshold", "is %d, more than maxTokenCount (%d)", c.SummarizationThreshold, c.MaxTokenCount))
	}
	return errors.Join(errs...)
}
