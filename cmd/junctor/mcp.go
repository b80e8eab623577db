package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"junctor/internal/attach"
	"junctor/internal/discovery"
	"junctor/internal/telemetry"
)

func (c *cli) mcpCommand() *cobra.Command {
	var mode, server string
	var standalone bool
	cmd := &cobra.Command{
		Use: "mcp", Short: "Speak MCP on stdio, for an agent's configuration", Args: noArgs,
		Long: `Speak MCP on stdin and stdout. Put it into your agent's configuration as

  {"mcpServers": {"junctor": {"command": "junctor", "args": ["mcp"]}}}

The agent sees five tools with which it finds and runs all tools of all servers;
with --mode direct it sees all tools; with --server one server as it is.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			view, err := discovery.ParseView(mode, server)
			if err != nil {
				return usageError{err}
			}
			return c.serveMCP(cmd.Context(), view, standalone)
		},
	}
	cmd.Flags().StringVar(&mode, "mode", "", "meta (five tools that find all others) or direct (all tools)")
	cmd.Flags().StringVar(&server, "server", "", "offer this one `server` as it is")
	cmd.Flags().BoolVar(&standalone, "standalone", false, "start the servers here, even when a junctor serve is running")
	return cmd
}

// serveMCP serves one client on stdin and stdout, which carry nothing else:
// through the gateway that serves with the same configuration, or by itself.
func (c *cli) serveMCP(ctx context.Context, view discovery.View, standalone bool) error {
	o := c.options(notHere)
	o.Trust = nil // stdin is the client's
	cfg, err := c.load(o)
	if err != nil {
		return err
	}
	if path := c.socket(cfg); path != "" && !standalone {
		wish := attach.Wish{Mode: string(view.Mode), Server: view.Server}
		if err := attach.Stream(ctx, path, wish, c.in, c.out); !errors.Is(err, attach.ErrNone) {
			return err
		}
	}
	a, err := c.build(ctx, cfg, o, telemetry.LevelWarn, nil)
	if err != nil {
		return err
	}
	core, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- a.Run(core) }()
	err = a.ServeMCP(ctx, view, c.in, c.out)
	stop()
	return errors.Join(err, <-done, a.Close())
}
