package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// usageError is an error in the command line.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// wrongUsage returns a usage error with the command's usage.
func wrongUsage(cmd *cobra.Command, format string, args ...any) error {
	use := strings.TrimSuffix(cmd.UseLine(), " [flags]")
	return usageError{fmt.Errorf("%s: %s (see %s --help)", use, fmt.Sprintf(format, args...), cmd.CommandPath())}
}

// argsBetween accepts min to max arguments. A negative max means no maximum.
func argsBetween(min, max int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < min && len(args) == 0:
			return wrongUsage(cmd, "missing arguments")
		case len(args) < min:
			return wrongUsage(cmd, "missing argument after %q", args[len(args)-1])
		case max >= 0 && len(args) > max:
			return wrongUsage(cmd, "unexpected argument %q", args[max])
		}
		return nil
	}
}

func noArgs(cmd *cobra.Command, args []string) error { return argsBetween(0, 0)(cmd, args) }
func oneArg(cmd *cobra.Command, args []string) error { return argsBetween(1, 1)(cmd, args) }
func minArgs(n int) cobra.PositionalArgs             { return argsBetween(n, -1) }
func maxArgs(n int) cobra.PositionalArgs             { return argsBetween(0, n) }

// parent returns a command that only has subcommands.
func parent(use, short string, subs ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: noCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(subs...)
	return cmd
}

// noCommand returns a usage error for an unknown command, with suggestions.
func noCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	hint := ""
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		hint = fmt.Sprintf("; did you mean %s %s?", cmd.CommandPath(), strings.Join(near, " or "))
	}
	return usageError{fmt.Errorf("unknown command %q%s (see %s --help)", args[0], hint, cmd.CommandPath())}
}
