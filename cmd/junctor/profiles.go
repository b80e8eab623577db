package main

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"junctor/internal/control"
	"junctor/internal/launch"
	"junctor/internal/terminal"
)

func (c *cli) profilesCommand() *cobra.Command {
	return parent("profiles", "Show the profiles: named parts of the gateway", c.profilesList(), c.profilesShow())
}

func (c *cli) profilesList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the profiles with their servers and number of tools", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list struct {
				Profiles []control.Profile `json:"profiles"`
			}
			err := c.withGateway(cmd.Context(), func(g *launch.Gateway) error {
				return g.Get(cmd.Context(), "/api/profiles", url.Values{"wait": {""}}, &list)
			})
			if err != nil {
				return err
			}
			t := terminal.NewTable("NAME", "SERVERS", "TOOLS", "DESCRIPTION")
			for _, p := range list.Profiles {
				t.Row(p.Name, terminal.Clip(strings.Join(p.Servers, ","), 40), strconv.Itoa(p.ToolCount), terminal.Clip(p.Description, 60))
			}
			return c.PrintList(asJSON, list.Profiles, t, `No profiles. Define one in the configuration: "profiles": {"coding": {"servers": ["github", "fs"]}}`)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c *cli) profilesShow() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show what a profile sees: its servers, tools and terms", Args: oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			var p control.Profile
			err := c.withGateway(cmd.Context(), func(g *launch.Gateway) error {
				return g.Get(cmd.Context(), "/api/profiles/"+url.PathEscape(args[0]), url.Values{"wait": {""}}, &p)
			})
			if err != nil {
				return err
			}
			if asJSON {
				return c.PrintJSON(p)
			}
			if p.Description != "" {
				fmt.Fprintln(c.Out, p.Description)
			}
			fmt.Fprintf(c.Out, "Servers: %s\n", strings.Join(p.Servers, ", "))
			if p.Config != nil {
				for _, term := range [][2]string{{"Mode", p.Config.Mode}, {"Approval", string(p.Config.Approval)}, {"Instructions", p.Config.Instructions}} {
					if term[1] != "" {
						fmt.Fprintf(c.Out, "%s: %s\n", term[0], term[1])
					}
				}
				if p.Config.Rate != nil {
					fmt.Fprintf(c.Out, "Rate: %d calls per %s\n", p.Config.Rate.Calls, p.Config.Rate.Per())
				}
			}
			fmt.Fprintf(c.Out, "Tools (%d):\n", p.ToolCount)
			for _, name := range p.Tools {
				fmt.Fprintf(c.Out, "  %s\n", terminal.OneLine(name))
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
