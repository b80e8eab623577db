package mcp

import (
	"time"

	"junctor/internal/tool"
)

// A program that prints without end what is no message would keep a processor
// busy for as long as it is listened to. So much in a row, in so short a time,
// no server prints by mistake; a line costs more than its bytes.
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

// add counts something that was no message, and is an error when that was too
// much.
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
	return &tool.Error{Kind: tool.UpstreamFailed, Msg: "it prints output without end that is not an MCP message; check that the command starts an MCP server that speaks stdio"}
}

// message records that a message arrived.
func (f *garbageCounter) message() {
	if f != nil {
		f.spent = 0
	}
}
