package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"junctor/internal/app"
	"junctor/internal/config"
	"junctor/internal/doctor"
	"junctor/internal/llm"
	"junctor/internal/store"
	"junctor/internal/terminal"
)

func (c *cli) doctorCommand() *cobra.Command {
	var asJSON, strict bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Find problems and show how to fix them", Args: noArgs,
		Long: `Check everything: the configuration, the programs that servers need, each
server, the tools and what model providers make of them, what definitions say to
the model, ports, permissions, the clock, the store and your other clients.

It exits with 1 if something does not work; with --strict, also if there are
warnings.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := c.examine(cmd.Context())
			if err != nil {
				return err
			}
			if asJSON {
				err = c.PrintJSON(report)
			} else {
				report.Write(c.Out, c.severity)
			}
			if err == nil && !report.OK(strict) {
				err = silentError{errors.New("problems found")}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&strict, "strict", false, "treat warnings as failures")
	return cmd
}

// severity colours a text of a report by severity.
func (c *cli) severity(s doctor.Severity, text string) string {
	col := map[doctor.Severity]terminal.Colour{doctor.OK: terminal.Green, doctor.Info: terminal.Dim, doctor.Warning: terminal.Yellow, doctor.Problem: terminal.Red}[s]
	return c.Paint(c.Out, col, text)
}

// examine gathers the facts and passes them to doctor.Examine.
func (c *cli) examine(ctx context.Context) (*doctor.Report, error) {
	o := c.options(useWorkDir)
	cfg, notes, err := config.Load(o)
	f := doctor.Facts{Config: cfg, Err: err, Notes: notes, Place: config.Locate(o), Environ: c.Environ, Begun: time.Now()}
	step, done := c.Progress()
	defer done()
	if err == nil {
		f.Place = cfg.Place()
		c.gatewayFacts(ctx, cfg, &f)
	}
	report := doctor.Examine(ctx, f, doctor.MachineProbes(step))
	report.AddClients(c.machine())
	return report, ctx.Err()
}

// gatewayFacts adds the facts from the running gateway, or from one that is
// started for this.
func (c *cli) gatewayFacts(ctx context.Context, cfg *config.Config, f *doctor.Facts) {
	if chosen := llm.Choose(cfg.LLM, func(name string) string { v, _ := cfg.Lookup(name); return v }, nil); len(chosen) > 0 {
		f.Model = string(chosen[0].Provider) + "/" + chosen[0].Model
	}
	f.Store = app.StorePath(cfg.Store, c.DataDir)
	admin, _ := cfg.Lookup("JUNCTOR_ADMIN_KEY")
	f.HasKey = admin != "" || len(cfg.Auth.Keys) > 0
	f.Running = c.Running(ctx, cfg) != nil
	if f.StoreErr = c.checkStore(ctx, cfg); f.StoreErr != nil && !f.Running {
		dir, err := os.MkdirTemp("", "junctor-doctor-")
		if err != nil {
			f.Gateway = err
			return
		}
		defer os.RemoveAll(dir)
		empty := *cfg
		empty.Store = store.DefaultConfig()
		empty.Store.Path = filepath.Join(dir, "junctor.db")
		cfg = &empty
	}
	g, err := c.prepareWith(ctx, cfg)
	if err != nil {
		f.Gateway = err
		return
	}
	defer g.Close()
	g.Run()
	stop := g.ShowConnecting(ctx)
	defer stop()
	f.Gateway = f.Ask(ctx, g.Client)
}

// storeCheckTimeout bounds the check of a large store. What was not read by then
// is assumed to be intact.
const storeCheckTimeout = 10 * time.Second

// checkStore reports why the configured store cannot be used.
func (c *cli) checkStore(ctx context.Context, cfg *config.Config) error {
	return c.withStoreOf(ctx, cfg, func(s store.Store) error {
		checker, ok := s.(interface{ Check(context.Context) error })
		if !ok {
			return nil
		}
		ctx, cancel := context.WithTimeout(ctx, storeCheckTimeout)
		defer cancel()
		err := checker.Check(ctx)
		if ctx.Err() != nil {
			return nil
		}
		return err
	})
}
