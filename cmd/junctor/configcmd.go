package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"junctor/docs"
	"junctor/internal/config"
	"junctor/internal/rawjson"
	"junctor/internal/terminal"
)

func (c *cli) configCommand() *cobra.Command {
	return parent("config", "Check and show the configuration, or print its schema",
		c.configCheck(), c.configShow(), c.configSchema())
}

func (c *cli) configCheck() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "check [FILE]", Short: "Check the configuration file", Args: maxArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			o := c.options(useWorkDir)
			if len(args) == 1 {
				o.File = args[0]
			}
			if o.File == "" { // reading a file starts nothing, so no trust is needed
				if place := config.Locate(o); place.Path != "" {
					o.File = place.Path
				}
			}
			cfg, notes, err := config.Load(o)
			if asJSON {
				return c.checkJSON(cfg, notes, err)
			}
			c.printNotes(notes)
			if err != nil {
				return err
			}
			if cfg.Place().Path == "" {
				fmt.Fprintf(c.Out, "no configuration file; using the defaults. Create one with junctor servers add or junctor import\n")
				return nil
			}
			fmt.Fprintf(c.Out, "%s is valid: %s, %s\n", cfg.Place().Path, terminal.Count(len(cfg.Servers), "server"), terminal.Count(len(cfg.ToolRules), "rule"))
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c *cli) checkJSON(cfg *config.Config, notes []config.Note, err error) error {
	report := struct {
		OK       bool             `json:"ok"`
		File     string           `json:"file,omitempty"`
		Problems []config.Problem `json:"problems"`
		Notes    []config.Note    `json:"notes"`
	}{OK: err == nil, Problems: []config.Problem{}, Notes: []config.Note{}}
	if cfg != nil {
		report.File = cfg.Place().Path
	}
	report.Notes = append(report.Notes, notes...)
	if listed, ok := errors.AsType[*config.Error](err); ok {
		report.Problems = append(report.Problems, listed.Problems...)
	} else if err != nil {
		report.Problems = append(report.Problems, config.Problem{Msg: err.Error()})
	}
	if e := c.PrintJSON(report); e != nil {
		return e
	}
	if err != nil {
		return silentError{err}
	}
	return nil
}

func (c *cli) configShow() *cobra.Command {
	var asJSON, all bool
	cmd := &cobra.Command{
		Use: "show", Short: "Show the effective configuration and the source of each value (secrets masked)", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			cfg, err := c.load(c.options(useWorkDir))
			if err != nil {
				return err
			}
			var shown []config.Setting
			for _, s := range cfg.Effective() {
				if all || asJSON || s.Source != "default" {
					shown = append(shown, s)
				}
			}
			if asJSON {
				return c.PrintJSON(map[string]any{"place": cfg.Place(), "settings": shown})
			}
			if cfg.Place().Path == "" {
				c.Note("No configuration file; a new one would be %s.", cfg.Place().New)
			} else {
				c.Note("%s (%s)", cfg.Place().Path, cfg.Place().How)
			}
			t := terminal.NewTable("SETTING", "VALUE", "FROM")
			for _, s := range shown {
				value, err := rawjson.Marshal(s.Value)
				if err != nil {
					return err
				}
				t.Row(s.Key, string(value), terminal.Cell{Text: s.From, Colour: terminal.Dim})
			}
			c.PrintTable(t)
			if !all {
				c.Note("Defaults are not shown; use --all to see them.")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&all, "all", false, "include defaults")
	return cmd
}

func (c *cli) configSchema() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of the configuration file", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := c.Out.Write(docs.ConfigSchema)
			return err
		},
	}
}
