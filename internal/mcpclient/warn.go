package mcpclient

import (
	"sync"
	"time"

	"junctor/internal/tool"
)

// warnInterval is how often a warning of one kind is logged, and maxLogged how many
// characters of a name that a server chose.
const (
	warnInterval = 10 * time.Second
	maxLogged    = 200
)

// warnings limits what is logged about a server that misbehaves: it could fill
// the disk with lines.
type warnings struct {
	mu      sync.Mutex
	last    map[string]time.Time // of each message, a constant of this package
	skipped map[string]int
}

// warn logs a warning, unless the same one was logged just now. The next line
// has the number of those that were not.
func (c *Client) warn(msg string, args ...any) {
	w := &c.warnings
	w.mu.Lock()
	if last, ok := w.last[msg]; ok && time.Since(last) < warnInterval {
		w.skipped[msg]++
		w.mu.Unlock()
		return
	}
	if w.last == nil {
		w.last, w.skipped = map[string]time.Time{}, map[string]int{}
	}
	skipped := w.skipped[msg]
	w.last[msg], w.skipped[msg] = time.Now(), 0
	w.mu.Unlock()
	for i, a := range args {
		if text, ok := a.(string); ok {
			args[i] = tool.Shorten(text, maxLogged)
		}
	}
	if skipped > 0 {
		args = append(args, "notLogged", skipped)
	}
	c.log.Warn(msg, args...)
}
