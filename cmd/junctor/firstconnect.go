package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"junctor/internal/app"
	"junctor/internal/config"
	"junctor/internal/control"
	"junctor/internal/terminal"
	"junctor/internal/upstream"
)

const (
	// pickUpTimeout is how long a running gateway gets to see a changed file.
	pickUpTimeout = 3 * time.Second
	// statePoll is how often the state of a server that connects is read.
	statePoll = 50 * time.Millisecond
	// maxNames is how many tools are named after the first connection.
	maxNames = 20
)

// firstConnection waits until a server that was just added has connected for
// the first time, and prints its tools, or why there are none. before is the
// configuration without it; nil when that could not be read.
func (c *cli) firstConnection(ctx context.Context, before *config.Config, name string, wait bool) error {
	cfg, err := c.load(c.quietly())
	if err != nil { // the server is in the file; what else is wrong there is no fault of it
		c.Note("%q was not tried: %v", name, err)
		return nil
	}
	if before != nil && app.HasBuiltin(before) && !app.HasBuiltin(cfg) {
		c.Note(`The built-in server "junctor" is off now that there is another one; to keep it, set "builtin": true in %s.`, cfg.Place().Path)
	}
	var g *gateway
	if before != nil && c.running(ctx, before) != nil {
		g = c.awaitTaken(ctx, cfg, name)
	}
	if !wait {
		c.Note("Try it: junctor servers test %s", name)
		return nil
	}
	if g == nil {
		if g, err = c.prepareWith(ctx, cfg, name); err != nil {
			return err
		}
	}
	defer g.close()
	limit := 10 * time.Second
	if s, ok := cfg.Server(name); ok {
		limit += s.StartLimit()
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	g.run()
	s, err := g.awaitConnection(ctx, name)
	if err == nil && s.State != upstream.Connected {
		g.rememberFailure(ctx, name, s.Reason, time.Since(began))
	}
	if errors.Is(err, context.DeadlineExceeded) {
		c.Note("%q is still starting; its state: junctor servers list", name)
		return nil
	}
	if err != nil {
		return err
	}
	return c.showFirst(ctx, g, s, time.Since(began))
}

// awaitConnection waits until the first connection of a server is made or has
// failed.
func (g *gateway) awaitConnection(ctx context.Context, name string) (s control.Server, err error) {
	if _, ok := g.cli.Width(g.cli.Err); !ok {
		g.cli.Note("Connecting to %q …", name)
	}
	defer g.waiting(ctx)()
	for {
		s = control.Server{}
		err := g.Get(ctx, "/api/servers/"+url.PathEscape(name), nil, &s)
		if err != nil || s.State != upstream.Connecting {
			return s, err
		}
		select {
		case <-ctx.Done():
			return s, ctx.Err()
		case <-time.After(statePoll):
		}
	}
}

// showFirst prints what the first connection of a server led to.
func (c *cli) showFirst(ctx context.Context, g *gateway, s control.Server, took time.Duration) error {
	switch s.State {
	case upstream.Connected:
	case upstream.AuthRequired:
		c.Note("%q needs a sign-in: junctor servers login %s", s.Name, s.Name)
		return nil
	default:
		c.Note("%q does not connect: %s", s.Name, terminal.OneLine(s.Reason))
		c.trouble(s)
		c.Note("It stays in the configuration. Examine it: junctor servers test %s. Remove it: junctor servers remove %s", s.Name, s.Name)
		return nil
	}
	var list control.ToolList
	if err := g.Get(ctx, "/api/tools", url.Values{"server": {s.Name}}, &list); err != nil {
		return err
	}
	var names []string
	for _, t := range list.Tools[:min(len(list.Tools), maxNames)] {
		names = append(names, terminal.OneLine(t.Tool))
	}
	if more := len(list.Tools) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	fmt.Fprintf(c.Out, "%s connected in %.1f s, %s", s.Name, took.Seconds(), terminal.Count(len(list.Tools), "tool"))
	if len(names) > 0 {
		fmt.Fprint(c.Out, ": "+strings.Join(names, ", "))
	}
	fmt.Fprintln(c.Out)
	c.trouble(s)
	return nil
}

// awaitTaken gives a gateway that is running the moment it needs to see the
// changed file, and returns it; nil when it does not have the server in time.
// It is found where the variables of the changed file say.
func (c *cli) awaitTaken(ctx context.Context, cfg *config.Config, name string) *gateway {
	ctx, cancel := context.WithTimeout(ctx, pickUpTimeout)
	defer cancel()
	for {
		if running := c.running(ctx, cfg); running != nil {
			var server json.RawMessage
			g := c.attached(running)
			if g.Get(ctx, "/api/servers/"+url.PathEscape(name), nil, &server) == nil {
				return g
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(20 * time.Millisecond):
		}
	}
}
