package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"junctor/internal/apiclient"
	"junctor/internal/config"
	"junctor/internal/control"
	"junctor/internal/terminal"
	"junctor/internal/upstream"
)

func (c *cli) serversEnable() *cobra.Command {
	return &cobra.Command{
		Use: "enable NAME", Short: "Enable a server", Args: oneArg, ValidArgsFunction: c.completeServer,
		RunE: func(cmd *cobra.Command, args []string) error { return c.setEnabled(cmd.Context(), args[0], true) },
	}
}

func (c *cli) serversDisable() *cobra.Command {
	return &cobra.Command{
		Use: "disable NAME", Short: "Disable a server; it stays in the configuration", Args: oneArg, ValidArgsFunction: c.completeServer,
		RunE: func(cmd *cobra.Command, args []string) error { return c.setEnabled(cmd.Context(), args[0], false) },
	}
}

// setEnabled changes the configuration file. If a gateway is running with it,
// the change is made through that gateway, so that it is in effect when the
// command returns.
func (c *cli) setEnabled(ctx context.Context, name string, enabled bool) error {
	o := c.options(useWorkDir)
	cfg, err := c.load(o)
	if err != nil {
		return err
	}
	if _, ok := cfg.Server(name); !ok {
		return noSuchServer(cfg, name)
	}
	path := cfg.Place().Path
	if running := c.Running(ctx, cfg); running != nil {
		g := apiclient.Client{HTTP: running}
		err = g.Patch(ctx, "/api/servers/"+url.PathEscape(name), map[string]bool{"enabled": enabled})
	} else {
		var patch []byte
		if patch, err = json.Marshal(map[string]any{"enabled": enabled, "disabled": nil}); err == nil {
			path, err = config.Apply(o, config.Merge(name, patch))
		}
	}
	if err != nil {
		return err
	}
	c.Note("%s %q in %s.", map[bool]string{true: "Enabled", false: "Disabled"}[enabled], name, path)
	return nil
}

func (c *cli) serversRestart() *cobra.Command {
	return &cobra.Command{
		Use: "restart NAME", Short: "Restart a server of the running gateway", Args: oneArg, ValidArgsFunction: c.completeServer,
		Long: `Close the connection to a server and make a new one; a program is stopped and
started again. Calls under way get an error. A gateway must be running (junctor
serve): other commands start the servers that they need by themselves.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := c.load(c.options(useWorkDir))
			if err != nil {
				return err
			}
			running := c.Running(cmd.Context(), cfg)
			if running == nil {
				if _, ok := cfg.Server(args[0]); !ok && args[0] != "junctor" {
					return noSuchServer(cfg, args[0])
				}
				return errors.New("no gateway is running with this configuration, so there is nothing to restart; start one with junctor serve")
			}
			g := apiclient.Client{HTTP: running}
			err = g.Post(cmd.Context(), "/api/servers/"+url.PathEscape(args[0])+"/restart", nil, nil)
			if err != nil {
				return err
			}
			c.Note("Restarting %q. Its state: junctor servers list", args[0])
			return nil
		},
	}
}

func (c *cli) serversLogs() *cobra.Command {
	var (
		asJSON bool
		limit  int
	)
	cmd := &cobra.Command{
		Use: "logs NAME", Short: "Show what a server's program wrote to stderr", Args: oneArg, ValidArgsFunction: c.completeServer,
		Long: `Show the latest lines that a server's program wrote to its standard error, as the
running gateway has them. Without a gateway the server is started for it. The
calls to a server are in another log: junctor logs --server NAME.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if limit < 1 {
				return usageError{fmt.Errorf("invalid --limit %d; use 1 or more", limit)}
			}
			s, err := c.diagnose(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			lines := s.Stderr[max(0, len(s.Stderr)-limit):]
			if asJSON {
				return c.PrintJSON(struct {
					Server string         `json:"server"`
					State  upstream.State `json:"status"`
					Reason string         `json:"reason,omitempty"`
					Lines  []string       `json:"lines"`
				}{s.Name, s.State, s.Reason, append([]string{}, lines...)})
			}
			for _, line := range lines {
				fmt.Fprintln(c.Out, terminal.OneLine(line))
			}
			switch {
			case s.State == upstream.Disconnected:
				c.Note("%q is not connected: %s", s.Name, terminal.OneLine(s.Reason))
			case len(lines) > 0:
			case s.Transport == upstream.Stdio:
				c.Note("%q has written nothing to stderr.", s.Name)
			default:
				c.Note("%q is not a program that junctor starts, so it has no log here.", s.Name)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().IntVarP(&limit, "limit", "n", 50, "at most this many lines")
	return cmd
}

// diagnose returns the state of a server after its first connection has
// succeeded or failed.
func (c *cli) diagnose(ctx context.Context, name string) (control.Server, error) {
	var s control.Server
	cfg, err := c.load(c.options(useWorkDir))
	if err != nil {
		return s, err
	}
	if _, ok := cfg.Server(name); !ok && name != "junctor" {
		return s, noSuchServer(cfg, name)
	}
	g, err := c.prepareWith(ctx, cfg, name)
	if err != nil {
		return s, err
	}
	defer g.Close()
	g.Run()
	if err := g.Get(ctx, "/api/servers/"+url.PathEscape(name), nil, &s); err != nil || s.State != upstream.Connecting {
		return s, err
	}
	return g.AwaitConnection(ctx, name)
}
