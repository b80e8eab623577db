package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"junctor/internal/control"
	"junctor/internal/guard"
	"junctor/internal/launch"
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
			return c.withChanges(cmd.Context(), args, func(_ *launch.Gateway, changes []control.Change) error {
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
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c *cli) serversApprove() *cobra.Command {
	return &cobra.Command{
		Use: "approve NAME[:TOOL]", Short: "Approve changed tool definitions", Args: oneArg,
		Example: "  junctor servers approve github\n  junctor servers approve github:create_issue",
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			server, only, one := strings.Cut(args[0], ":")
			return c.withChanges(ctx, []string{server}, func(g *launch.Gateway, changes []control.Change) error {
				seen := map[string]string{}
				for _, ch := range changes {
					if ch.Offered && (!one || ch.Tool == only) {
						c.printChange(ch)
						seen[ch.Tool] = ch.Fingerprint
					}
				}
				if len(seen) == 0 {
					if one {
						if _, err := g.Tool(ctx, args[0], true); err != nil {
							return err
						}
					}
					c.Note("Nothing to approve: %s has not changed.", args[0])
					return nil
				}
				var done struct {
					Approved []string `json:"approved"`
				}
				if err := g.Post(ctx, "/api/servers/"+url.PathEscape(server)+"/approve", map[string]any{"tools": seen}, &done); err != nil {
					return err
				}
				c.Note("Approved: %s", terminal.OneLine(strings.Join(done.Approved, ", ")))
				return nil
			})
		},
	}
}

// withChanges calls f with the changed tools of the given server, or of all
// servers.
func (c *cli) withChanges(ctx context.Context, servers []string, f func(*launch.Gateway, []control.Change) error) error {
	q := url.Values{"wait": {""}}
	if len(servers) > 0 {
		q.Set("server", servers[0])
	}
	return c.withGateway(ctx, func(g *launch.Gateway) error {
		var list struct {
			Changes []control.Change `json:"changes"`
		}
		stop := g.ShowConnecting(ctx)
		err := g.Get(ctx, "/api/changes", q, &list)
		stop()
		if err != nil {
			return err
		}
		return f(g, list.Changes)
	}, servers...)
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
