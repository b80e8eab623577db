package mcpclient

import (
	"sync"
	"time"

	"junctor/internal/tool"
)

// warnInterval is the minimum interval between warnings of one kind. maxLogged
// bounds the logged characters of text that a server chose.
const (
	warnInterval = 10 * time.Second
	maxLogged    = 200
)

// warnings limits the rate of log lines about a misbehaving server, which could
// otherwise fill the disk.
type warnings struct {
	mu      sync.Mutex
	last    map[string]time.Time // of each message, a constant of this package
	skipped map[string]int
}

// warn logs a warning, unless the same one was logged within warnInterval. The
// next line reports how many were skipped.
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
