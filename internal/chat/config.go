package chat

import (
	"errors"

	"junctor/internal/setting"
)

// Config is how conversations run and how many there may be.
type Config struct {
	// The most tokens of history that a model is given; 0 means what its context window holds.
	MaxTokenCount int `json:"maxTokenCount"`
	// How many of the newest messages are always kept when history is cut.
	RetainNewestMessages int `json:"retainNewestMessages"`
	// The number of tokens of history from which older turns are summarised; 0 means three quarters of what the model is given.
	SummarizationThreshold int `json:"summarizationThreshold"`

	// How often the model may act in one turn before it is stopped.
	MaxSteps int `json:"maxSteps"`
	// How often the model may make the same call in one turn before it is stopped.
	MaxIdenticalCalls int `json:"maxIdenticalCalls"`
	// How many tool calls of one turn run at once.
	ParallelCalls int `json:"parallelCalls"`
	// The number of tools above which the model gets search and execute tools instead of all definitions.
	MetaToolsAbove int `json:"metaToolsAbove"`
	// The size of a tool's result in bytes from which it is cut before the model sees it.
	MaxResultBytes int `json:"maxResultBytes"`

	// The longest message that a person may send, in bytes.
	MaxMessageBytes int `json:"maxMessageBytes"`
	// The most bytes of attachments that a message may have.
	MaxAttachmentBytes int `json:"maxAttachmentBytes"`
	// How many messages a connection may send in a minute.
	MessagesPerMinute int `json:"messagesPerMinute"`
	// How many WebSocket connections there may be at once.
	MaxConnections int `json:"maxConnections"`
	// How many sessions one caller may have in the store; the oldest idle one that is not pinned goes first; 0 means no limit.
	MaxSessions int `json:"maxSessions"`
	// How long an unused session stays in memory; it stays in the store.
	SessionIdleMs setting.Millis `json:"sessionIdleMs"`
	// The interval of keep-alive pings.
	PingMs setting.Millis `json:"pingMs"`
	// How long a reply continues when no client is connected to its session.
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
