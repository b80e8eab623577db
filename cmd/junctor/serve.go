package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"syscall"

	"github.com/spf13/cobra"

	"junctor/internal/app"
	"junctor/internal/auth"
	"junctor/internal/config"
)

func (c *cli) faceCommands() []*cobra.Command {
	return []*cobra.Command{c.serveCommand(), c.mcpCommand(), c.agentifyCommand()}
}

func (c *cli) useCommands() []*cobra.Command {
	return []*cobra.Command{c.openCommand(), c.toolsCommand(), c.runCommand(), c.chatCommand(), c.logsCommand()}
}

func (c *cli) manageCommands() []*cobra.Command {
	return []*cobra.Command{c.serversCommand(), c.importCommand(), c.connectCommand(), c.keysCommand(), c.profilesCommand(), c.clientsCommand(), c.approvalsCommand(), c.auditCommand(), c.configCommand(), c.storeCommand(), c.doctorCommand()}
}

func (c *cli) serveCommand() *cobra.Command {
	var listen string
	var printURL bool
	cmd := &cobra.Command{
		Use: "serve", Short: "Run all APIs on one listener, with the web page at /", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o := c.options(useWorkDir)
			if listen != "" {
				o.Overrides = append(o.Overrides, config.Override{Key: "listen", Value: listen, Source: "--listen"})
			}
			cfg, err := c.loadAndReport(o)
			if err != nil {
				return err
			}
			outliveReaders()
			return c.serve(cmd.Context(), cfg, o, printURL)
		},
	}
	cmd.Flags().StringVar(&listen, "listen", "", "the `address`, host:port; default 127.0.0.1:8787 or PORT")
	cmd.Flags().BoolVar(&printURL, "print-url", false, "print the page's address with its token to stdout, for the user who starts it without a terminal")
	return cmd
}

func (c *cli) serve(ctx context.Context, cfg *config.Config, o config.Options, printURL bool) error {
	a, err := c.Build(ctx, cfg, o, "", nil)
	if err != nil {
		return err
	}
	err = c.listen(ctx, cfg, a, printURL)
	return errors.Join(err, a.Close())
}

func (c *cli) listen(ctx context.Context, cfg *config.Config, a *app.App, printURL bool) error {
	if admin, _ := cfg.Lookup("JUNCTOR_ADMIN_KEY"); admin == "" {
		hasKey, err := a.HasKey(ctx)
		if err != nil {
			return err
		}
		if err := auth.Ready(cfg.Listen, cfg.Auth, hasKey); err != nil {
			return err
		}
	}
	ln, err := net.Listen("tcp", cfg.Listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is already in use, perhaps by another junctor; stop it or use another address: junctor serve --listen 127.0.0.1:0", cfg.Listen)
	}
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	slog.SetDefault(slog.New(slog.DiscardHandler)) // discard what libraries log
	return a.Serve(ctx, ln, func() error {
		if err := c.showPage(cfg.TLS.Scheme(), ln.Addr().String(), printURL); err != nil {
			return err
		}
		if len(cfg.Servers) == 0 {
			c.Note(noServersYet)
		}
		return nil
	})
}

// showPage prints the address of the gateway. The address of the page contains
// a token with administrator's rights, so it is printed only to a terminal, or
// to stdout if requested, and never to a log.
func (c *cli) showPage(scheme, listen string, printURL bool) error {
	page, err := auth.PageURL(scheme, listen, c.DataDir)
	if printURL {
		if err == nil {
			_, err = fmt.Fprintln(c.Out, page)
		}
		if err != nil {
			return fmt.Errorf("--print-url: %w", err)
		}
	}
	if _, terminal := c.Width(c.Err); terminal && err == nil {
		c.Note("Junctor %s is at %s", buildVersion(), page)
	} else {
		c.Note("Junctor %s is at %s://%s", buildVersion(), scheme, reachable(listen))
	}
	return nil
}
