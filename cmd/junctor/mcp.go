package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"junctor/internal/attach"
	"junctor/internal/config"
	"junctor/internal/discovery"
	"junctor/internal/telemetry"
)

func (c *cli) mcpCommand() *cobra.Command {
	var mode, server string
	var standalone bool
	cmd := &cobra.Command{
		Use: "mcp", Short: "Serve MCP on stdio, for an agent's configuration", Args: noArgs,
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
	cmd.Flags().StringVar(&server, "server", "", "serve only this `server`, unchanged")
	flagValues(cmd, "mode", oneOf(discovery.Mode("").Words()...))
	flagValues(cmd, "server", c.completeServers)
	cmd.Flags().BoolVar(&standalone, "standalone", false, "start the servers in this process even when junctor serve is running")
	return cmd
}

// serveMCP serves one client on stdin and stdout, which carry nothing else:
// through the gateway that serves with the same configuration, or by itself.
func (c *cli) serveMCP(ctx context.Context, view discovery.View, standalone bool) error {
	o := c.options(notHere)
	o.Trust = nil // stdin is the client's
	cfg, err := c.loadAndTell(o)
	if err != nil {
		return err
	}
	if path := c.find(ctx, cfg); path != "" && !standalone {
		wish := attach.StreamRequest{Mode: string(view.Mode), Server: view.Server}
		conn, err := attach.Open(ctx, path, wish)
		if err == nil {
			return c.relayMCP(ctx, conn, cfg, o, wish, view)
		}
		if !errors.Is(err, attach.ErrNone) {
			return err
		}
	}
	return c.serveAlone(ctx, cfg, o, view, c.in, c.out)
}

// serveAlone serves a client with a gateway of its own.
func (c *cli) serveAlone(ctx context.Context, cfg *config.Config, o config.Options, view discovery.View, in io.Reader, out io.Writer) error {
	a, err := c.build(ctx, cfg, o, telemetry.LevelWarn, nil)
	if err != nil {
		return err
	}
	core, stop := context.WithCancel(context.WithoutCancel(ctx))
	done := make(chan error, 1)
	go func() { done <- a.Run(core) }()
	err = a.ServeMCP(ctx, view, in, out)
	stop()
	return errors.Join(err, <-done, a.Close())
}

// patience is how long a client waits for a gateway that is being restarted
// before it is given one of its own.
const patience = 20 * time.Second

// relayMCP serves a client through the gateway that runs, and goes on when
// that is restarted, or ends.
func (c *cli) relayMCP(ctx context.Context, conn *attach.Conn, cfg *config.Config, o config.Options, wish attach.StreamRequest, view discovery.View) error {
	ctx, stop := context.WithCancel(ctx)
	var own sync.WaitGroup
	defer own.Wait()
	defer stop()
	relay := attach.Relay{Reconnect: func(attempt context.Context) (io.ReadWriteCloser, error) {
		for end := time.Now().Add(patience); time.Now().Before(end); {
			// The file may have changed, and the gateway moved with it.
			if changed, _, err := config.Load(o); err == nil {
				cfg = changed
			}
			if path := c.find(attempt, cfg); path != "" {
				next, err := attach.Open(attempt, path, wish)
				if !errors.Is(err, attach.ErrNone) {
					return next, err
				}
			}
			select {
			case <-attempt.Done():
				return nil, attempt.Err()
			case <-time.After(100 * time.Millisecond):
			}
		}
		near, far := net.Pipe()
		own.Go(func() {
			defer far.Close()
			if err := c.serveAlone(ctx, cfg, o, view, far, far); err != nil {
				fmt.Fprintln(c.err, "junctor: "+err.Error())
			}
		})
		return near, nil
	}}
	return relay.Run(ctx, conn, c.in, c.out)
}
