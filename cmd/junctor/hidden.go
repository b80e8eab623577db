package main

import "github.com/spf13/cobra"

// hiddenCommands are not for people.
func (c *cli) hiddenCommands() []*cobra.Command {
	return []*cobra.Command{c.conformanceClient(), c.healthCommand(), c.manCommand()}
}
