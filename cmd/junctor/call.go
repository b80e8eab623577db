package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"junctor/internal/apiclient"
	"junctor/internal/callio"
	"junctor/internal/control"
	"junctor/internal/mcpclient"
	"junctor/internal/terminal"
)

func (c *cli) toolsCall() *cobra.Command {
	var (
		arguments string
		timeout   time.Duration
		output    string
		asJSON    bool
	)
	cmd := &cobra.Command{
		Use: "call TOOL [KEY=VALUE…]", Short: "Call a tool", Args: minArgs(1), ValidArgsFunction: c.completeTool,
		Long: `Call a tool. Arguments are given as key=value, where the tool's schema says what
the value is; as key:=JSON; as one JSON object, in their place or with --args;
or as JSON on stdin with --args -. Text is printed; images and other files are saved.
In a terminal you can answer questions that the server asks while the tool runs.`,
		Example: `  junctor tools call junctor:calculate expression='2^64'
  junctor tools call fs:read_file '{"path": "README.md"}'
  echo '{"path": "README.md"}' | junctor tools call fs:read_file --args -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			g, d, err := c.gatewayWithTool(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			defer g.Close()
			raw, err := callio.Arguments(d.InputSchema, arguments, args[1:], c.In)
			if err != nil {
				return usageError{err}
			}
			in := control.CallRequest{Server: d.Server, Tool: d.Tool.Tool, Arguments: raw, TimeoutMs: int(timeout.Milliseconds()), Approved: true}
			if d.Approval == "ask" {
				if in.Approved, err = c.approve(d.Name, raw); err != nil {
					return err
				}
			}
			if c.IsInput && arguments != "-" {
				in.Ask = callio.SupportedQuestions
			}
			g.Run()
			var last control.CallAnswer
			err = g.Stream(cmd.Context(), "/api/call", "application/x-ndjson", in, func(body io.Reader) error {
				last, err = callio.Follow(cmd.Context(), &c.Terminal, body, func(ctx context.Context, call, input string, answer json.RawMessage) error {
					return g.Post(ctx, "/api/calls/"+url.PathEscape(call), map[string]any{"input": input, "answer": answer}, nil)
				})
				return err
			})
			if refused, ok := errors.AsType[*apiclient.Error](err); ok && len(refused.Schema) > 0 {
				return fmt.Errorf("%w\nthe tool's input schema:\n%s", err, indentJSON(refused.Schema, "  "))
			}
			if err != nil {
				return err
			}
			if err := callio.Print(&c.Terminal, d.Tool.Tool, last, output, asJSON); err != nil {
				return err
			}
			if last.IsError && in.Ask == nil && strings.Contains(string(last.Result), mcpclient.NoUserToAsk) {
				c.Note("The tool asks for input while it runs: call it in a terminal to answer.")
			}
			if last.IsError {
				return silentError{errors.New("the tool failed")}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&arguments, "args", "a", "", "all arguments as one JSON object, or - for stdin")
	cmd.Flags().DurationVar(&timeout, "timeout", 0, "idle timeout: how long the tool may take without reporting progress")
	cmd.Flags().StringVarP(&output, "output", "o", ".", "the folder for images and other files")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the result as JSON")
	return cmd
}

// approve asks the user at the terminal, as the tool's rule requires. A refusal
// is an error, because a call that is sent without approval waits in the inbox,
// where someone else could still allow it.
func (c *cli) approve(name string, arguments json.RawMessage) (bool, error) {
	if !c.IsInput {
		return false, nil // the gateway's error explains how to allow it
	}
	yes, err := c.Confirm(fmt.Sprintf("Run %s with %s? [y/N] ", terminal.OneLine(name), terminal.OneLine(string(arguments))))
	if err == nil && !yes {
		err = fmt.Errorf("not approved; %s was not called", name)
	}
	return yes, err
}
