package main

import (
	"encoding/json"
	"log/slog"
	"os"

	"github.com/spf13/cobra"

	"junctor/internal/app"
	"junctor/internal/conformance"
	"junctor/internal/secretkey"
	"junctor/internal/store"
)

// conformanceClient is the command that the official conformance suite runs to
// test Junctor as a client, with the same transports and logins as for every
// upstream. The scenario is in an environment variable.
func (c *cli) conformanceClient() *cobra.Command {
	return &cobra.Command{
		Use: "conformance-client URL", Hidden: true, Args: oneArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			scenario, _ := c.Lookup("MCP_CONFORMANCE_SCENARIO")
			about, _ := c.Lookup("MCP_CONFORMANCE_CONTEXT")
			dir, err := os.MkdirTemp("", "junctor-conformance-")
			if err != nil {
				return err
			}
			defer os.RemoveAll(dir)
			log := slog.New(slog.DiscardHandler)
			s, err := app.OpenStore(cmd.Context(), store.DefaultConfig(), dir, log)
			if err != nil {
				return err
			}
			defer s.Close()
			http, done := conformance.Logins(args[0], json.RawMessage(about), s, secretkey.Sealer("", dir, false), log)
			defer done()
			return conformance.Run(cmd.Context(), conformance.Options{Scenario: scenario, URL: args[0], Context: json.RawMessage(about), HTTP: http})
		},
	}
}
