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

// completionTimeout bounds how long the shell waits for the names of tools.
const completionTimeout = time.Second

// oneOf completes a flag with a fixed set of values.
func oneOf(list ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(list, cobra.ShellCompDirectiveNoFileComp)
}

// completeServer completes the first argument with the names of the configured
// servers.
func (c *cli) completeServer(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return c.completeServers(cmd, args, typed)
}

// completeServers completes with the names of the configured servers.
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

// completionOptions returns options for reading the configuration without
// prompting the user.
func (c *cli) completionOptions() config.Options {
	o := c.options(useWorkDir)
	o.Trust = nil
	return o
}

// completeTool completes with the names of tools, from the running gateway or
// from the stored catalogs. It starts no server.
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
	_ = c.withStoreOf(ctx, cfg, func(s store.Store) error { // after an error there are just no completions
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

// flagValues registers the completion of a flag's values.
func flagValues(cmd *cobra.Command, flag string, values cobra.CompletionFunc) {
	if err := cmd.RegisterFlagCompletionFunc(flag, values); err != nil {
		panic(err) // there is no such flag: a bug in this program
	}
}

// describe returns a completion with a description, which shells show beside
// it.
func describe(value, about string) string {
	if about = tool.Shorten(tool.OneLine(about), 80); about == "" {
		return value
	}
	return value + "\t" + strings.ReplaceAll(about, "\t", " ")
}
