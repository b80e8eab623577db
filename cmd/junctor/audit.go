package main

import (
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"junctor/internal/audit"
	"junctor/internal/terminal"
)

func (c *cli) auditCommand() *cobra.Command {
	var asJSON bool
	var limit int
	var actor, action string
	cmd := &cobra.Command{
		Use: "audit", Short: "Show who made, changed, used or revoked what", Args: noArgs,
		Example: "  junctor audit\n  junctor audit --action key --limit 500\n  junctor audit --actor alice --json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			g, err := c.prepare(cmd.Context())
			if err != nil {
				return err
			}
			defer g.Close()
			query := url.Values{"limit": {strconv.Itoa(limit)}, "actor": {actor}, "action": {action}}
			var list struct {
				Entries []audit.Entry `json:"entries"`
			}
			if err := g.Get(cmd.Context(), "/api/audit", query, &list); err != nil {
				return err
			}
			t := terminal.NewTable("TIME", "WHO", "ACTION", "TARGET", "DETAIL")
			for _, e := range list.Entries {
				t.Row(e.Time.Local().Format("2006-01-02 15:04:05"), e.Name, e.Action, e.Target, terminal.Clip(string(e.Detail), 80))
			}
			return c.PrintList(asJSON, list.Entries, t, "No entries.")
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().IntVar(&limit, "limit", 100, "show at most this many entries, newest first")
	cmd.Flags().StringVar(&actor, "actor", "", "only what this caller did: a name or an id")
	cmd.Flags().StringVar(&action, "action", "", "only this action, such as key.add, or all of an object, such as key")
	return cmd
}
