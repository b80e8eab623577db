package mcp

import (
	"time"

	"junctor/internal/tool"
)

// A program that endlessly prints output other than messages would keep a CPU
// busy. The connection ends after floodLimit bytes without a message within
// floodTime, which no server prints by mistake. Each line counts strayCost in
// addition to its bytes.
const (
	floodLimit = 512 << 20
	floodTime  = 10 * time.Second
	strayCost  = 1 << 10
)

// garbageCounter counts input that is not a message since the last message. A
// nil garbageCounter counts nothing.
type garbageCounter struct {
	limit int
	spent int
	since time.Time
}

// add counts input that was not a message, and returns an error if it is over
// the limit.
func (f *garbageCounter) add(n int) error {
	if f == nil {
		return nil
	}
	if f.spent == 0 {
		f.since = time.Now()
	}
	if f.spent += n; f.spent < f.limit {
		return nil
	}
	if time.Since(f.since) > floodTime {
		f.spent = 0
		return nil
	}
	return &tool.Error{Kind: tool.UpstreamFailed, Msg: "it keeps printing output that is not an MCP message; check that the command starts an MCP server that speaks stdio"}
}

// message records that a message arrived.
func (f *garbageCounter) message() {
	if f != nil {
		f.spent = 0
	}
}
