package main

import (
	"context"
	"fmt"
	"time"

	"junctor/internal/control"
	"junctor/internal/terminal"
)

// slowFailure is how long a server must have delayed a command to be left out
// of the next ones for a while. What fails at once is tried every time.
const slowFailure = 2 * time.Second

// rememberFailure records that a server of a gateway of our own did not connect,
// if that took long.
func (g *gateway) rememberFailure(ctx context.Context, name, reason string, took time.Duration) {
	if g.own == nil || took < slowFailure || ctx.Err() != nil {
		return
	}
	if err := g.own.RememberStartFailure(ctx, name, reason); err != nil {
		g.cli.Note("The failure of %s cannot be remembered: %v", name, err)
	}
}

// skipFailed moves the servers that recently failed from those that are still
// starting to those that are down, and returns the rest.
func (g *gateway) skipFailed(ctx context.Context, list *control.ToolList) []string {
	if g.own == nil {
		return list.Pending
	}
	var rest []string
	for _, name := range list.Pending {
		reason, at, known := g.own.StartFailure(ctx, name)
		if !known {
			rest = append(rest, name)
			continue
		}
		reason = fmt.Sprintf("%s (tried %s; junctor servers list tries again)", reason, terminal.Ago(at, time.Now()))
		list.Down = append(list.Down, control.Down{Name: name, Reason: reason})
	}
	list.Pending = rest
	return rest
}
