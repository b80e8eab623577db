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
				return c.printJSON(changes)
			}
			for _, ch := range changes {
				c.printChange(ch)
			}
			if len(changes) == 0 {
				c.note("No tool definition has changed.")
			} else {
				c.note("\nApprove with: junctor servers approve %s", changes[0].Server)
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
				c.note("Nothing to approve: %s has not changed.", args[0])
				return nil
			}
			var done struct {
				Approved []string `json:"approved"`
			}
			err = g.post(cmd.Context(), "/api/servers/"+url.PathEscape(server)+"/approve", "application/json", map[string]any{"tools": seen},
				func(body io.Reader) error { return json.NewDecoder(body).Decode(&done) })
			if err != nil {
				return err
			}
			c.note("Approved: %s", strings.Join(done.Approved, ", "))
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
	err = g.get(ctx, "/api/changes", q, &list)
	stop()
	if err != nil {
		g.close()
		return nil, nil, err
	}
	return g, list.Changes, nil
}

func (c *cli) printChange(ch control.Change) {
	now := time.Now()
	state := "changed " + ago(ch.Since, now) + ", approved " + ago(ch.ApprovedAt, now)
	switch {
	case ch.Blocked:
		state += ", blocked"
	case !ch.Offered:
		state += ", not listed by the server now"
	}
	fmt.Fprintf(c.out, "%s  %s\n", c.paint(c.out, bold, oneLine(ch.Name)), c.paint(c.out, dim, state))
	for _, d := range ch.Differences {
		fmt.Fprintf(c.out, "  %s\n", oneLine(d.Where))
		if d.Before != nil {
			fmt.Fprintf(c.out, "    %s\n", c.paint(c.out, red, "- "+oneLine(guard.Visible(string(d.Before)))))
		}
		if d.After != nil {
			fmt.Fprintf(c.out, "    %s\n", c.paint(c.out, green, "+ "+oneLine(guard.Visible(string(d.After)))))
		}
	}
	for _, f := range ch.Flags {
		fmt.Fprintf(c.out, "  %s %s\n", c.paint(c.out, yellow, "unsafe?"), oneLine(f))
	}
}
