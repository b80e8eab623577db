package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"junctor/internal/clients"
	"junctor/internal/config"
	"junctor/internal/control"
	"junctor/internal/doctor"
	"junctor/internal/llm"
	"junctor/internal/store"
	"junctor/internal/terminal"
	"junctor/internal/tool"
)

func (c *cli) doctorCommand() *cobra.Command {
	var asJSON, strict bool
	cmd := &cobra.Command{
		Use: "doctor", Short: "Find problems and show how to fix them", Args: noArgs,
		Long: `Look at everything: the configuration, the programs that servers need, each
server, the tools and what model providers make of them, what definitions say to
the model, ports, permissions, the clock, the store and your other clients.

It exits with 1 when something does not work; with --strict, when something
should be fixed too.`,
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
				err = silentError{errors.New("not well")}
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "for programs")
	cmd.Flags().BoolVar(&strict, "strict", false, "treat warnings as failures")
	return cmd
}

// severity paints a text of a report.
func (c *cli) severity(s doctor.Severity, text string) string {
	col := map[doctor.Severity]terminal.Colour{doctor.OK: terminal.Green, doctor.Info: terminal.Dim, doctor.Warning: terminal.Yellow, doctor.Problem: terminal.Red}[s]
	return c.Paint(c.Out, col, text)
}

// examine gathers the facts and lets the doctor judge them.
func (c *cli) examine(ctx context.Context) (*doctor.Report, error) {
	o := c.options(hereToo)
	cfg, notes, err := config.Load(o)
	f := doctor.Facts{Config: cfg, Err: err, Notes: notes, Place: config.Locate(o), Environ: c.environ, Begun: time.Now()}
	step, done := c.Progress()
	defer done()
	if err == nil {
		f.Place = cfg.Place()
		c.gatewayFacts(ctx, cfg, &f)
	}
	report := doctor.Examine(ctx, f, doctor.MachineProbes(step))
	c.clientFindings(report)
	return report, ctx.Err()
}

// gatewayFacts asks the gateway that runs, or one started for this.
func (c *cli) gatewayFacts(ctx context.Context, cfg *config.Config, f *doctor.Facts) {
	if chosen := llm.Choose(cfg.LLM, func(name string) string { v, _ := cfg.Lookup(name); return v }, nil); len(chosen) > 0 {
		f.Model = string(chosen[0].Provider) + "/" + chosen[0].Model
	}
	if cfg.Store.URL == "" {
		f.Store = cfg.Store.Path
		if f.Store == "" {
			f.Store = filepath.Join(c.dataDir, "junctor.db")
		}
	}
	admin, _ := cfg.Lookup("JUNCTOR_ADMIN_KEY")
	f.HasKey = admin != ""
	f.HasKey = f.HasKey || len(cfg.Auth.Keys) > 0
	f.Running = c.running(ctx, cfg) != nil
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
	g, err := c.openWith(ctx, cfg)
	if err != nil {
		f.Gateway = err
		return
	}
	defer g.close()
	stop := g.waiting(ctx)
	defer stop()
	f.Gateway = g.facts(ctx, f)
}

// storeCheckTimeout bounds the check of a large store. What was not read by then
// counts as healthy.
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

func (g *gateway) facts(ctx context.Context, f *doctor.Facts) error {
	var servers struct {
		Servers []control.Server `json:"servers"`
	}
	if err := g.Get(ctx, "/api/servers", url.Values{"wait": {""}}, &servers); err != nil {
		return err
	}
	f.Servers = servers.Servers
	var raw struct {
		Tools []json.RawMessage `json:"tools"`
	}
	if err := g.Get(ctx, "/tools", nil, &raw); err != nil {
		return err
	}
	for _, r := range raw.Tools {
		var of struct {
			Server string `json:"server"`
		}
		if json.Unmarshal(r, &of) != nil {
			continue
		}
		if d, err := tool.ParseDefinition(of.Server, r); err == nil { // what is broken was dropped and is among the server's problems
			f.Tools = append(f.Tools, d)
		}
	}
	var changed control.ToolList
	if err := g.Get(ctx, "/api/tools", url.Values{"state": {"changed"}}, &changed); err != nil {
		return err
	}
	for _, t := range changed.Tools {
		f.Changed = append(f.Changed, t.Name)
	}
	var keys struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := g.Get(ctx, "/api/keys", nil, &keys); err != nil {
		return err
	}
	f.HasKey = f.HasKey || len(keys.Keys) > 0
	return nil
}

// clientFindings tells which clients on this machine go through junctor.
func (c *cli) clientFindings(r *doctor.Report) {
	for _, found := range clients.Discover(c.machine()) {
		f := doctor.Finding{Severity: doctor.OK, Area: "clients", Subject: found.File.Path, What: "already connected to junctor"}
		through := slices.ContainsFunc(found.Servers, clients.Server.Self)
		switch {
		case found.Err != nil:
			f.Severity, f.What = doctor.Warning, "cannot be read: "+strings.TrimPrefix(found.Err.Error(), found.File.Path+": ")
		case !through && len(found.Servers) > 0:
			f.Severity, f.What = doctor.Info, "has "+terminal.Count(len(found.Servers), "server")+" of its own"
			f.Do = "junctor connect " + found.File.Client + " --move moves them into junctor"
		case !through:
			continue
		}
		r.Add(f)
	}
}
