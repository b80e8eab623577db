package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"junctor/internal/audit"
	"junctor/internal/authserver"
	"junctor/internal/store"
	"junctor/internal/terminal"
	"junctor/internal/tool"
)

func (c *cli) clientsCommand() *cobra.Command {
	return parent("clients", "Manage the programs that users authorized with OAuth", c.clientsList(), c.clientsRevoke())
}

func (c *cli) clientsList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the consents that users gave to programs", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withStore(cmd.Context(), func(s store.Store) error {
				all, err := authserver.List(cmd.Context(), s)
				if err != nil {
					return err
				}
				t := terminal.NewTable("ID", "PROGRAM", "FROM", "PERSON", "PROFILE", "SINCE", "LAST USED")
				now := time.Now()
				for _, g := range all {
					t.Row(g.ID, terminal.Cell{Text: g.ClientName, Colour: terminal.Cyan}, cmp.Or(g.ClientHost, g.Redirect), g.Name, g.Profile, g.Created.Format(time.DateOnly), terminal.Ago(g.Used, now))
				}
				return c.PrintList(asJSON, all, t, "No program has signed in. Turn on sign-in with auth.server; see docs/web-clients.md")
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c *cli) clientsRevoke() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "revoke [ID…]", Short: "Revoke consents; takes effect everywhere within two seconds",
		Long: `Revoke consents by their id, or by the beginning of it. The programs are signed
out, their open streams end, and they have to ask again.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if all == (len(args) > 0) {
				return usageError{fmt.Errorf("name the consents to revoke, or use --all; junctor clients list shows them")}
			}
			return c.withStore(cmd.Context(), func(s store.Store) error {
				grants, err := authserver.List(cmd.Context(), s)
				if err != nil {
					return err
				}
				for _, arg := range args {
					n := 0
					for _, g := range grants {
						if strings.HasPrefix(g.ID, arg) {
							n++
						}
					}
					if n != 1 {
						return fmt.Errorf("%d consents have an id that begins with %q; junctor clients list shows them", n, arg)
					}
				}
				for _, g := range grants {
					if !all && !slices.ContainsFunc(args, func(arg string) bool { return strings.HasPrefix(g.ID, arg) }) {
						continue
					}
					if err := authserver.Revoke(tool.WithCaller(cmd.Context(), tool.Local), s, g, audit.New(s, nil, slog.Default()).Audit); err != nil {
						return err
					}
					c.Note("Revoked %s for %s.", terminal.OneLine(g.ClientName), terminal.OneLine(g.Name))
				}
				return nil
			})
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "revoke all consents")
	return cmd
}
