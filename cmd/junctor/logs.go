package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"junctor/internal/store"
	"junctor/internal/terminal"
)

// statuses are the possible statuses of a call.
var statuses = []string{string(store.StatusOK), string(store.StatusError), string(store.StatusFailed)}

func (c *cli) logsCommand() *cobra.Command {
	var (
		follow, asJSON bool
		q              store.CallQuery
		status, since  string
	)
	cmd := &cobra.Command{
		Use: "logs", Short: "Show the call log", Args: noArgs,
		Example: "  junctor logs -f\n  junctor logs --server github --status failed --since 24h",
		RunE: func(cmd *cobra.Command, _ []string) error {
			q.Status = store.Status(status)
			if status != "" && !slices.Contains(statuses, status) {
				return usageError{fmt.Errorf("invalid --status %q; use ok, error or failed", status)}
			}
			var err error
			if q.Since, err = parseSince(since, time.Now()); err != nil {
				return usageError{err}
			}
			return c.withStore(cmd.Context(), func(s store.Store) error {
				calls, err := s.Calls(cmd.Context(), q)
				if err != nil {
					return err
				}
				for _, call := range calls {
					if err := c.printCall(call, asJSON); err != nil {
						return err
					}
				}
				if !follow {
					switch {
					case len(calls) > 0:
					case q.Server+q.Tool+q.Caller+status+since != "":
						c.Note("No matching calls.")
					default:
						c.Note("No calls yet.")
					}
					return nil
				}
				if q.AfterSeq, err = s.LastSeq(cmd.Context()); err != nil {
					return err
				}
				if len(calls) > 0 {
					q.AfterSeq = calls[len(calls)-1].Seq
				}
				go func() { _ = s.Run(cmd.Context()) }() // reads the records of other processes
				for call, err := range store.Tail(cmd.Context(), s, q) {
					if err != nil {
						return err
					}
					if err := c.printCall(call, asJSON); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	f := cmd.Flags()
	f.BoolVarP(&follow, "follow", "f", false, "follow: print new calls as they happen")
	f.StringVarP(&q.Server, "server", "s", "", "only calls to this server")
	f.StringVarP(&q.Tool, "tool", "t", "", "only calls of this tool")
	f.StringVar(&q.Caller, "caller", "", "only calls by the caller with this `id`, as --json shows it")
	f.StringVar(&status, "status", "", "only calls with this status: ok, error or failed")
	f.StringVar(&since, "since", "", "only calls since then: `1h`, 2026-11-15, or 2026-11-15T12:00:00Z")
	f.IntVarP(&q.Limit, "limit", "n", 50, "at most this many")
	f.BoolVar(&asJSON, "json", false, "print JSON lines, with arguments and results")
	flagValues(cmd, "server", c.completeServers)
	flagValues(cmd, "status", oneOf(statuses...))
	return cmd
}

func parseSince(s string, now time.Time) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	if d, err := time.ParseDuration(s); err == nil {
		return now.Add(-d), nil
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04", time.DateOnly} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("invalid --since %q; use a duration (1h) or a time (2026-11-15)", s)
}

func (c *cli) printCall(call store.Call, asJSON bool) error {
	if asJSON {
		b, err := call.MarshalJSON()
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(c.Out, "%s\n", b)
		return err
	}
	what := call.Method
	if call.Tool != "" {
		what = call.Server + ":" + call.Tool
	} else if call.Server != "" {
		what = call.Server + " " + call.Method
	}
	col := map[store.Status]terminal.Colour{store.StatusOK: terminal.Green, store.StatusError: terminal.Yellow, store.StatusFailed: terminal.Red}[call.Status]
	line := fmt.Sprintf("%s  %s  %8s  %-9s  %s", call.Time.Local().Format("2006-01-02 15:04:05"), c.Paint(c.Out, col, fmt.Sprintf("%-6s", call.Status)),
		call.Duration.Round(100*time.Microsecond), call.Face, terminal.OneLine(what))
	if call.Error != "" {
		line += "  " + c.Paint(c.Out, terminal.Dim, terminal.OneLine(call.Kind+": "+call.Error))
	}
	_, err := fmt.Fprintln(c.Out, line)
	return err
}
