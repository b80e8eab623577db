package main

import (
	"context"

	"github.com/spf13/cobra"

	"junctor/internal/discovery"
)

func (c *cli) mcpCommand() *cobra.Command {
	var mode, server, profile string
	var standalone bool
	cmd := &cobra.Command{
		Use: "mcp", Short: "Serve MCP on stdio, for an agent's configuration", Args: noArgs,
		Long: `Speak MCP on stdin and stdout. Put it into your agent's configuration as

  {"mcpServers": {"junctor": {"command": "junctor", "args": ["mcp"]}}}

The agent sees five tools with which it finds and runs all tools of all servers;
with --mode direct it sees all tools; with --mode code two, with which one script
makes many calls; with --server one server as it is.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			view, err := discovery.ParseView(mode, server)
			if err != nil {
				return usageError{err}
			}
			view.Profile = profile
			outliveReaders()
			return c.serveMCP(cmd.Context(), view, standalone)
		},
	}
	cmd.Flags().StringVar(&mode, "mode", "", "meta (five tools that find all others), direct (all tools) or code (scripts that call tools)")
	cmd.Flags().StringVar(&server, "server", "", "serve only this `server`, unchanged")
	cmd.Flags().StringVar(&profile, "profile", "", "serve only the servers and tools of this `profile`")
	flagValues(cmd, "mode", oneOf(discovery.Mode("").Values()...))
	flagValues(cmd, "server", c.completeServers)
	cmd.Flags().BoolVar(&standalone, "standalone", false, "start the servers for this client alone, even when another gateway is running")
	return cmd
}

// serveMCP serves one client on stdin and stdout, which are used for nothing
// else. It uses the gateway that is running with the same configuration, or
// becomes that gateway if there is none. With standalone it always starts a
// gateway for this client only.
func (c *cli) serveMCP(ctx context.Context, view discovery.View, standalone bool) error {
	o := c.options(ignoreWorkDir)
	o.Trust = nil // stdin belongs to the client
	cfg, err := c.loadAndReport(o)
	switch {
	case !standalone:
		return c.ServeMCP(ctx, cfg, o, view, err)
	case err != nil:
		return err
	}
	return c.ServeMCPAlone(ctx, cfg, o, view)
}
