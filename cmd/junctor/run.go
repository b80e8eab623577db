package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"junctor/internal/codemode"
	"junctor/internal/launch"
)

func (c *cli) runCommand() *cobra.Command {
	var code string
	var asJSON bool
	cmd := &cobra.Command{
		Use: "run [FILE]", Short: "Run a script that calls tools", Args: maxArgs(1),
		Long: `Run a JavaScript or TypeScript file, or stdin with -, as the body of an async
function. It calls tools with tools.SERVER.TOOL(args) or
tools.call("server:tool", args), and what it returns is printed.`,
		Example: `  junctor run report.ts
  junctor run -e 'return await tools.junctor.calculate({expression: "2^64"})'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			source, err := c.scriptSource(code, args)
			if err != nil {
				return err
			}
			var answer json.RawMessage // printed unchanged with --json
			err = c.withGateway(cmd.Context(), func(g *launch.Gateway) error {
				return g.Post(cmd.Context(), "/run", map[string]string{"code": source}, &answer)
			})
			var out struct {
				codemode.Outcome
				Error *struct {
					Message string           `json:"message"`
					Details codemode.Details `json:"details"`
				} `json:"error"`
			}
			if err == nil {
				err = json.Unmarshal(answer, &out)
			}
			switch {
			case err != nil:
				return err
			case asJSON:
				err = c.PrintJSON(answer)
			default:
				c.printScript(out.Outcome)
			}
			if err == nil && out.Error != nil {
				message := out.Error.Message
				if at := out.Error.Details.At; at != "" {
					message += "\n" + at
				}
				err = errors.New(message)
			}
			return err
		},
	}
	cmd.Flags().StringVarP(&code, "eval", "e", "", "the `script` itself")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the value with the calls and their times as JSON")
	return cmd
}

// scriptSource returns the script from a flag, a file or stdin.
func (c *cli) scriptSource(code string, args []string) (string, error) {
	switch {
	case code != "" && len(args) > 0:
		return "", usageError{errors.New("give a file or --eval, not both")}
	case code != "":
		return code, nil
	case len(args) == 0:
		return "", usageError{errors.New("no file given; use junctor run FILE, junctor run - for stdin, or junctor run -e SCRIPT")}
	case args[0] == "-":
		b, err := io.ReadAll(c.In)
		return string(b), err
	}
	b, err := os.ReadFile(args[0])
	return string(b), err
}

// printScript prints the log of a script and its value, formatted for people.
func (c *cli) printScript(out codemode.Outcome) {
	for _, line := range out.Log {
		c.Note("%s", c.Text(c.Err, line))
	}
	var text string
	switch {
	case string(out.Value) == "null" || len(out.Value) == 0:
	case json.Unmarshal(out.Value, &text) == nil:
		fmt.Fprintln(c.Out, c.Text(c.Out, text))
	default:
		fmt.Fprintln(c.Out, indentJSON(out.Value, ""))
	}
	if out.More != "" {
		c.Note("%s", out.More)
	}
}
