package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"junctor/internal/app"
	"junctor/internal/config"
	"junctor/internal/control"
	"junctor/internal/launch"
	"junctor/internal/terminal"
	"junctor/internal/upstream"
)

// maxNames bounds the tool names that are printed after the first connection.
const maxNames = 20

// firstConnection waits for the first connection of a server that was just
// added, and prints its tools, or why there are none. before is the
// configuration without the server; nil if it could not be read.
func (c *cli) firstConnection(ctx context.Context, before *config.Config, name string, wait bool) error {
	cfg, err := c.load(c.completionOptions())
	if err != nil { // the server was added; other errors of the file are not its fault
		c.Note("%q was not tested: %v", name, err)
		return nil
	}
	if before != nil && app.HasBuiltin(before) && !app.HasBuiltin(cfg) {
		c.Note(`The built-in server "junctor" is off now that there is another one; to keep it, set "builtin": true in %s.`, cfg.Place().Path)
	}
	var g *launch.Gateway
	if before != nil && c.Running(ctx, before) != nil {
		g = c.AwaitServer(ctx, before, cfg, name)
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
	defer g.Close()
	limit := 10 * time.Second
	if s, ok := cfg.Server(name); ok {
		limit += s.StartLimit()
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	began := time.Now()
	g.Run()
	s, err := g.AwaitConnection(ctx, name)
	if errors.Is(err, context.DeadlineExceeded) {
		c.Note("%q is still starting; its state: junctor servers list", name)
		return nil
	}
	if err != nil {
		return err
	}
	return c.showFirst(ctx, g, s, time.Since(began))
}

// showFirst prints the result of a server's first connection.
func (c *cli) showFirst(ctx context.Context, g *launch.Gateway, s control.Server, took time.Duration) error {
	switch s.State {
	case upstream.Connected:
	case upstream.AuthRequired:
		c.Note("%q needs a sign-in: junctor servers login %s", s.Name, s.Name)
		return nil
	default:
		c.Note("%q does not connect: %s", s.Name, terminal.OneLine(s.Reason))
		c.printProblems(s)
		c.Note("It stays in the configuration. Test it: junctor servers test %s. Remove it: junctor servers remove %s", s.Name, s.Name)
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
	c.printProblems(s)
	return nil
}
