package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"junctor/internal/control"
	"junctor/internal/launch"
	"junctor/internal/terminal"
)

func (c *cli) toolsCommand() *cobra.Command {
	return parent("tools", "List, search, inspect and call tools",
		c.toolsList(), c.toolsSearch(), c.toolsShow(), c.toolsCall())
}

func (c *cli) toolsList() *cobra.Command {
	var servers, tags []string
	var state string
	var asJSON, fresh bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the tools of all servers", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := c.listTools(cmd.Context(), servers, fresh, url.Values{"server": servers, "tag": tags, "state": {state}})
			if err != nil {
				return err
			}
			if asJSON {
				return c.PrintJSON(list)
			}
			t := terminal.NewTable("TOOL", "PARAMETERS", "DESCRIPTION")
			t.Cuts = true
			for _, tool := range list.Tools {
				t.Row(terminal.Cell{Text: tool.Name, Colour: nameColour(tool)}, signatureCell(tool), tool.Summary)
			}
			c.PrintTable(t)
			c.pendingNote(list)
			switch {
			case len(list.Tools) > 0 && state == "flagged":
				c.Note("See why a tool is flagged: junctor tools show TOOL")
			case len(list.Tools) > 0 || len(list.Pending) > 0:
			case len(servers)+len(tags) > 0 || state != "":
				c.Note("No matching tools. List all: junctor tools list")
			default:
				c.Note("No tools. Add a server: junctor servers add NAME -- COMMAND, or junctor import")
			}
			return nil
		},
	}
	cmd.Flags().StringSliceVarP(&servers, "server", "s", nil, "only these servers")
	cmd.Flags().StringSliceVar(&tags, "tag", nil, "only tools with one of these tags")
	cmd.Flags().StringVar(&state, "state", "", "only enabled, disabled, changed or flagged tools")
	flagValues(cmd, "server", c.completeServers)
	flagValues(cmd, "state", oneOf("enabled", "disabled", "changed", "flagged"))
	cmd.Flags().BoolVar(&fresh, "fresh", false, "wait for every server instead of using the cached tool lists")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// signatureCell shows a tool's parameters, clipped to leave room for the
// description.
func signatureCell(t control.Tool) terminal.Cell {
	const maxWidth = 60
	return terminal.Cell{Text: terminal.Clip(t.Signature, maxWidth), Colour: terminal.Dim}
}

func nameColour(t control.Tool) terminal.Colour {
	if !t.Enabled {
		return terminal.Red
	}
	return terminal.Cyan
}

func (c *cli) listTools(ctx context.Context, servers []string, fresh bool, q url.Values) (control.ToolList, error) {
	maps.DeleteFunc(q, func(_ string, values []string) bool { // flags that are not set do not filter
		return len(values) == 1 && values[0] == ""
	})
	g, err := c.prepare(ctx, servers...)
	if err != nil {
		return control.ToolList{}, err
	}
	defer g.Close()
	return g.ListTools(ctx, q, fresh)
}

// pendingNote prints which servers' tools are not in the list.
func (c *cli) pendingNote(list control.ToolList) {
	if len(list.Pending) > 0 {
		c.Note("Still starting, not in this list: %s", strings.Join(list.Pending, ", "))
	}
	for _, d := range list.Down {
		if slices.Contains(list.Pending, d.Name) { // still being installed
			c.Note("%s is %s", d.Name, terminal.OneLine(d.Reason))
			continue
		}
		c.Note("No tools of %s: %s", d.Name, terminal.OneLine(d.Reason))
	}
}

func (c *cli) toolsSearch() *cobra.Command {
	var servers, tags []string
	var limit int
	var asJSON, explain, fresh bool
	cmd := &cobra.Command{
		Use: "search WORDS…", Short: "Find tools by what they do", Args: minArgs(1),
		Example: "  junctor tools search create a github issue\n  junctor tools search 'send mail' --explain",
		RunE: func(cmd *cobra.Command, args []string) error {
			q := url.Values{"query": {strings.Join(args, " ")}, "server": servers, "tag": tags, "state": {"enabled"}, "limit": {strconv.Itoa(limit)}}
			if explain {
				q.Set("explain", "1")
			}
			list, err := c.listTools(cmd.Context(), servers, fresh, q)
			if err != nil {
				return err
			}
			if asJSON {
				return c.PrintJSON(list)
			}
			t := terminal.NewTable("FIT", "TOOL", "PARAMETERS", "DESCRIPTION")
			t.Name, t.Cuts = 1, true
			for _, tool := range list.Tools {
				t.Row(fmt.Sprintf("%.2f", tool.Relevance), terminal.Cell{Text: tool.Name, Colour: terminal.Cyan}, signatureCell(tool), tool.Summary)
			}
			if len(list.Tools) > 0 {
				c.PrintTable(t)
			}
			if explain {
				c.explain(list.Tools)
			}
			c.pendingNote(list)
			switch {
			case len(list.Tools) > 0:
			case len(list.Pending) > 0:
				c.Note("No matching tools yet; try again when they have started.")
			default:
				c.Note("No matching tools. Try other words, or list all: junctor tools list")
			}
			return nil
		},
	}
	cmd.Flags().StringSliceVarP(&servers, "server", "s", nil, "only these servers")
	cmd.Flags().StringSliceVar(&tags, "tag", nil, "only tools with one of these tags")
	cmd.Flags().IntVarP(&limit, "limit", "n", 10, "at most this many")
	cmd.Flags().BoolVar(&explain, "explain", false, "explain the ranking")
	flagValues(cmd, "server", c.completeServers)
	cmd.Flags().BoolVar(&fresh, "fresh", false, "wait for every server instead of searching the cached tool lists")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// explain prints the components of each hit's score.
func (c *cli) explain(tools []control.Tool) {
	for _, t := range tools {
		e := t.Explanation
		if e == nil {
			continue
		}
		fmt.Fprintf(c.Out, "\n%s  score %.3f", c.Paint(c.Out, terminal.Bold, terminal.OneLine(t.Name)), e.Score)
		if e.Named {
			fmt.Fprint(c.Out, "  (exact name match)")
		}
		if e.Clause != "" {
			fmt.Fprintf(c.Out, "  (found by %q)", e.Clause)
		}
		fmt.Fprintf(c.Out, "\n  words %.3f  name %.3f  server %+.3f  action %+.3f  meaning %.3f (cosine %.2f)  signals %+.3f\n",
			e.Words, e.NameMatch, e.Server, e.Action, e.Meaning, e.Cosine, e.Signals)
		for _, m := range e.Matches {
			fmt.Fprintf(c.Out, "    %-16s %-9s %-16s %.3f in %s\n", m.Word, m.How, m.Term, m.Score, strings.Join(m.Fields, ", "))
		}
		if len(e.Unmatched) > 0 {
			fmt.Fprintf(c.Out, "    not found: %s\n", strings.Join(e.Unmatched, ", "))
		}
	}
}

func (c *cli) toolsShow() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show TOOL", Aliases: []string{"inspect"}, Short: "Show everything about one tool", Args: oneArg,
		ValidArgsFunction: c.completeTool,
		Example:           "  junctor tools show github:create_issue",
		RunE: func(cmd *cobra.Command, args []string) error {
			g, d, err := c.gatewayWithTool(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer g.Close()
			if asJSON {
				return c.PrintJSON(d)
			}
			c.printTool(d)
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// gatewayWithTool returns a gateway and one of its tools. If the stored catalog
// has the tool, no server is started yet, and later only the tool's.
func (c *cli) gatewayWithTool(ctx context.Context, name string) (*launch.Gateway, control.ToolDetails, error) {
	var only []string
	server, _, qualified := strings.Cut(name, ":")
	if qualified {
		only = []string{server}
	}
	g, err := c.prepare(ctx, only...)
	if err != nil {
		return nil, control.ToolDetails{}, err
	}
	d, err := g.Tool(ctx, name, false)
	switch {
	case err != nil:
		g.Run()
		d, err = g.Tool(ctx, name, true)
	case !qualified:
		g.Close()
		g, err = c.prepare(ctx, d.Server)
	}
	if err != nil && g != nil {
		g.Close()
	}
	return g, d, err
}

func (c *cli) printTool(d control.ToolDetails) {
	fmt.Fprintln(c.Out, c.Paint(c.Out, terminal.Bold, terminal.OneLine(d.Name)))
	if d.Title != "" {
		fmt.Fprintln(c.Out, terminal.OneLine(d.Title))
	}
	if d.Description != "" {
		fmt.Fprintf(c.Out, "\n%s\n", terminal.Printable(strings.TrimSpace(d.Description)))
	}
	if !d.Enabled {
		fmt.Fprintf(c.Out, "\n%s %s\n", c.Paint(c.Out, terminal.Red, "disabled:"), terminal.OneLine(d.Reason))
	}
	if d.Approval != "" {
		fmt.Fprintf(c.Out, "\napproval: %s\n", d.Approval)
	}
	for i, flag := range d.Flags {
		if i == 0 {
			fmt.Fprintf(c.Out, "\n%s\n", c.Paint(c.Out, terminal.Yellow, "Warnings"))
		}
		fmt.Fprintf(c.Out, "  %s\n", terminal.OneLine(flag))
	}
	fmt.Fprintf(c.Out, "\n%s\n%s\n", c.Paint(c.Out, terminal.Bold, "Parameters"), indentJSON(d.InputSchema, "  "))
	if len(d.OutputSchema) > 0 {
		fmt.Fprintf(c.Out, "\n%s\n%s\n", c.Paint(c.Out, terminal.Bold, "Result"), indentJSON(d.OutputSchema, "  "))
	}
	if len(d.Tags) > 0 {
		fmt.Fprintf(c.Out, "\ntags: %s\n", terminal.OneLine(strings.Join(d.Tags, ", ")))
	}
	if s := d.Stats; s.Calls > 0 {
		fmt.Fprintf(c.Out, "\n%d calls, %d failed, %s on average, circuit %s\n", s.Calls, s.Failures, s.MeanLatency, s.Circuit)
	}
	if len(d.Original) > 0 {
		fmt.Fprintf(c.Out, "\n%s\n%s\n", c.Paint(c.Out, terminal.Bold, "As its server defines it (toolRules override it)"), indentJSON(d.Original, "  "))
	}
	example := strings.TrimSpace("junctor tools call " + d.Name + " " + exampleArguments(d.InputSchema))
	fmt.Fprintf(c.Out, "\n%s\n  %s\n", c.Paint(c.Out, terminal.Bold, "Call it"), terminal.OneLine(example))
}

// exampleArguments returns the required parameters in the syntax of the command
// line.
func exampleArguments(schema json.RawMessage) string {
	var s struct {
		Required []string `json:"required"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return ""
	}
	var out []string
	for _, name := range s.Required {
		out = append(out, name+"=…")
	}
	return strings.Join(out, " ")
}

// indentJSON formats JSON without changing the order of its members. Each line
// begins with prefix.
func indentJSON(raw json.RawMessage, prefix string) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, prefix, "  ") != nil {
		return terminal.Printable(string(raw))
	}
	return prefix + terminal.Printable(b.String())
}
