package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"junctor/internal/telemetry"
)

func (c *cli) agentifyCommand() *cobra.Command {
	return &cobra.Command{
		Use: "agentify", Short: "Serve the agentify API on stdio, for an IDE", Args: noArgs,
		Long: `Speak the agentify protocol and MCP on stdin and stdout, newline-delimited or
with Content-Length headers. An IDE sends what the user wants and is looking at
(agentify/orchestrateTask, or the MCP tool orchestrate_task); a model picks the
one fitting call among all backends, and its result comes back.

Backends are those of the configuration and of the client's
initializationOptions. The model is the configured one, or OpenAI's with
OPENAI_API_KEY. With DEBUG_PORT the web page and the debug interface are served
on that port of this machine.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			outliveReaders()
			return c.agentify(cmd.Context())
		},
	}
}

// agentify serves one IDE on stdin and stdout, which are used for nothing else.
// It does not share a running gateway, because the options come from the
// client.
func (c *cli) agentify(ctx context.Context) error {
	o := c.options(ignoreWorkDir)
	o.Trust = nil // stdin belongs to the client
	cfg, err := c.loadAndReport(o)
	if err != nil {
		return err
	}
	a, err := c.Build(ctx, cfg, o, telemetry.LevelWarn, nil)
	if err != nil {
		return err
	}
	core, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- a.Run(core) }()
	err = a.ServeAgentify(ctx, c.In, c.Out)
	stop()
	return errors.Join(err, <-done, a.Close())
}
