package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"junctor/internal/control"
	"junctor/internal/guard"
	"junctor/internal/terminal"
)

func (c *cli) serversDiff() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "diff [NAME]", Short: "Show the tools whose definition changed since it was approved", Args: maxArgs(1),
		Long: `Show the tools whose definition is not the one that was first seen or last
approved, with the differences. A definition that changes after it was approved can be an
attack; security.onToolChange sets what happens then.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			g, changes, err := c.changes(cmd.Context(), args)
			if err != nil {
				return err
			}
			defer g.close()
			if asJSON {
				return c.PrintJSON(changes)
			}
			for _, ch := range changes {
				c.printChange(ch)
			}
			if len(changes) == 0 {
				c.Note("No tool definition has changed.")
			} else {
				c.Note("\nApprove with: junctor servers approve %s", changes[0].Server)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "for programs")
	return cmd
}

func (c *cli) serversApprove() *cobra.Command {
	return &cobra.Command{
		Use: "approve NAME[:TOOL]", Short: "Approve changed tool definitions", Args: exactArgs(1),
		Example: "  junctor servers approve github\n  junctor servers approve github:create_issue",
		RunE: func(cmd *cobra.Command, args []string) error {
			server, only, one := strings.Cut(args[0], ":")
			g, changes, err := c.changes(cmd.Context(), []string{server})
			if err != nil {
				return err
			}
			defer g.close()
			seen := map[string]string{}
			for _, ch := range changes {
				if ch.Offered && (!one || ch.Tool == only) {
					c.printChange(ch)
					seen[ch.Tool] = ch.Fingerprint
				}
			}
			if len(seen) == 0 {
				if one {
					if _, err := g.details(cmd, args[0], true); err != nil {
						return err
					}
				}
				c.Note("Nothing to approve: %s has not changed.", args[0])
				return nil
			}
			var done struct {
				Approved []string `json:"approved"`
			}
			err = g.Post(cmd.Context(), "/api/servers/"+url.PathEscape(server)+"/approve", "application/json", map[string]any{"tools": seen},
				func(body io.Reader) error { return json.NewDecoder(body).Decode(&done) })
			if err != nil {
				return err
			}
			c.Note("Approved: %s", strings.Join(done.Approved, ", "))
			return nil
		},
	}
}

// changes asks for the tools of the server, or of all, that changed.
func (c *cli) changes(ctx context.Context, servers []string) (*gateway, []control.Change, error) {
	g, err := c.open(ctx, servers...)
	if err != nil {
		return nil, nil, err
	}
	q := url.Values{"wait": {""}}
	if len(servers) > 0 {
		q.Set("server", servers[0])
	}
	var list struct {
		Changes []control.Change `json:"changes"`
	}
	stop := g.waiting(ctx)
	err = g.Get(ctx, "/api/changes", q, &list)
	stop()
	if err != nil {
		g.close()
		return nil, nil, err
	}
	return g, list.Changes, nil
}

func (c *cli) printChange(ch control.Change) {
	now := time.Now()
	state := "changed " + terminal.Ago(ch.Since, now) + ", approved " + terminal.Ago(ch.ApprovedAt, now)
	switch {
	case ch.Blocked:
		state += ", blocked"
	case !ch.Offered:
		state += ", not listed by the server now"
	}
	fmt.Fprintf(c.Out, "%s  %s\n", c.Paint(c.Out, terminal.Bold, terminal.OneLine(ch.Name)), c.Paint(c.Out, terminal.Dim, state))
	for _, d := range ch.Differences {
		fmt.Fprintf(c.Out, "  %s\n", terminal.OneLine(d.Where))
		if d.Before != nil {
			fmt.Fprintf(c.Out, "    %s\n", c.Paint(c.Out, terminal.Red, "- "+terminal.OneLine(guard.Visible(string(d.Before)))))
		}
		if d.After != nil {
			fmt.Fprintf(c.Out, "    %s\n", c.Paint(c.Out, terminal.Green, "+ "+terminal.OneLine(guard.Visible(string(d.After)))))
		}
	}
	for _, f := range ch.Flags {
		fmt.Fprintf(c.Out, "  %s %s\n", c.Paint(c.Out, terminal.Yellow, "unsafe?"), terminal.OneLine(f))
	}
}
