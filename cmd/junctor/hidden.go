package main

import "github.com/spf13/cobra"

// buildCommands makes the commands that only builds with certain tags have.
var buildCommands []func() *cobra.Command

// hiddenCommands are not for people.
func (c *cli) hiddenCommands() []*cobra.Command {
	hidden := []*cobra.Command{c.conformanceClient(), c.healthCommand()}
	for _, newCommand := range buildCommands {
		hidden = append(hidden, newCommand())
	}
	return hidden
}
