package main

import "github.com/spf13/cobra"

// buildCommands are constructors of commands that exist only with certain build
// tags.
var buildCommands []func() *cobra.Command

// hiddenCommands returns the commands that are meant for other programs.
func (c *cli) hiddenCommands() []*cobra.Command {
	hidden := []*cobra.Command{c.conformanceClient(), c.healthCommand()}
	for _, newCommand := range buildCommands {
		hidden = append(hidden, newCommand())
	}
	return hidden
}
