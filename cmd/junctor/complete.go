package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"junctor/internal/apiclient"
	"junctor/internal/config"
	"junctor/internal/control"
	"junctor/internal/store"
	"junctor/internal/tool"
)

// completionTimeout bounds how long the shell waits for completions.
const completionTimeout = time.Second

// oneOf is a fixed set of values for a flag.
func oneOf(list ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
}

// completeServer offers the names of the configured servers for the first
// argument.
func (c *cli) completeServer(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.completeServers(cmd, args, typed)
}

// completeServers offers the names of the configured servers.
func (c *cli) completeServers(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	cfg, _, err := config.Load(c.completionOptions())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, s := range cfg.Servers {
		names = append(names, describe(s.Name, s.Description))
	}
	slices.Sort(names)
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completionOptions returns options that read the configuration without asking
// the user anything.
func (c *cli) completionOptions() config.Options {
	o := c.options(useWorkDir)
	o.Trust = nil
	return o
}

// completeTool offers the names of the tools: of the gateway that runs, or as
// they were last seen. It starts no server.
func (c *cli) completeTool(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTimeout)
	defer cancel()
	cfg, _, err := config.Load(c.completionOptions())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	if running := c.Running(ctx, cfg); running != nil {
		var list control.ToolList
		if (apiclient.Client{HTTP: running}).Get(ctx, "/api/tools", nil, &list) == nil {
			var names []string
			for _, t := range list.Tools {
				names = append(names, describe(t.Name, t.Summary))
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		}
	}
	var names []string
	_ = c.withStoreOf(ctx, cfg, func(s store.Store) error { // without names there is nothing to offer, and that is all
		kept, err := s.Catalogues(ctx)
		for _, k := range kept {
			if _, configured := cfg.Server(k.Server); !configured {
				continue
			}
			for _, raw := range k.Tools {
				if d, err := tool.ParseDefinition(k.Server, raw); err == nil {
					names = append(names, describe(d.Name.String(), d.Summary(80)))
				}
			}
		}
		return err
	})
	return names, cobra.ShellCompDirectiveNoFileComp
}

// flagValues lets the values of a flag be completed.
func flagValues(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic(err) // there is no such flag: a mistake in this program
	}
}

// describe is a value with what shells show beside it.
func describe(value, about string) string {
	if about = tool.Shorten(tool.OneLine(about), 80); about == "" {
		return value
	}
	return value + "\t" + strings.ReplaceAll(about, "\t", " ")
}
