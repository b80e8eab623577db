package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"junctor/internal/child"
	"junctor/internal/doctor"
	"junctor/internal/launch"
	"junctor/internal/mcpclient"
	"junctor/internal/telemetry"
	"junctor/internal/terminal"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

func (c *cli) serversTest() *cobra.Command {
	var (
		command, url         string
		env, headers, calls  []string
		asJSON, strict, none bool
		timeout              time.Duration
	)
	cmd := &cobra.Command{
		Use: "test [NAME | -- COMMAND [ARGS…]]", Short: "Test an MCP server", ValidArgsFunction: c.completeServer,
		Long: `Test an MCP server: the handshake in every version of the protocol, the names and
schemas of its tools and what each model provider would refuse, results against
their schema, errors, cancellation, stray output, latency.

The server is one of the configuration, or the one that --command, --url or the
words after -- describe. Tools are called only when they are marked as read-only
and need no argument, or when --call names them. It exits with 1 if something
does not work; with --strict, also if there are warnings.`,
		Example: `  junctor servers test github
  junctor servers test -- node dist/server.js
  junctor servers test --url http://127.0.0.1:3000/mcp --call 'add {"a": 1, "b": 2}'
  junctor servers test --command 'python3 server.py' --strict --json`,
		RunE: func(cmd *cobra.Command, args []string) error {
			dash := cmd.ArgsLenAtDash()
			o := doctor.TestOptions{NoCalls: none, Timeout: timeout, Version: buildVersion()}
			var err error
			if o.Calls, err = doctor.ParseCalls(calls); err != nil {
				return usageError{err}
			}
			ctx := cmd.Context()
			o.Dial = doctor.Dial{Environ: c.Environ, RoundTripper: mcpclient.NewRoundTripper(http.ProxyFromEnvironment)}
			switch {
			case command != "" || url != "" || dash == 0:
				if command != "" {
					args = append(doctor.SplitCommand(command), args...)
				}
				o.Server, err = adHocServer(args, url, env, headers)
				if err != nil {
					return usageError{err}
				}
			case len(args) == 1:
				closeLogins, err := c.known(ctx, args[0], &o)
				if err != nil {
					return err
				}
				defer closeLogins()
			default:
				return usageError{errors.New("name a server, or give --command, --url or -- COMMAND (see junctor servers test --help)")}
			}
			return c.test(ctx, o, asJSON, strict)
		},
	}
	f := cmd.Flags()
	f.StringVar(&command, "command", "", "the `command` that starts the server")
	f.StringVar(&url, "url", "", "the `address` of the server")
	f.StringArrayVarP(&env, "env", "e", nil, "an environment variable for the program, `NAME=VALUE`")
	f.StringArrayVarP(&headers, "header", "H", nil, "an HTTP header for the server, `NAME=VALUE`")
	f.StringArrayVar(&calls, "call", nil, "a tool to call and its arguments, `'TOOL {…}'`")
	f.BoolVar(&none, "no-calls", false, "do not call tools that --call does not name")
	f.DurationVar(&timeout, "timeout", 30*time.Second, "timeout of one step")
	f.BoolVar(&strict, "strict", false, "treat warnings as failures")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (c *cli) test(ctx context.Context, o doctor.TestOptions, asJSON, strict bool) error {
	o.Dial.Launcher = child.NewLauncher()
	o.Dial.Launcher.HideFolder(c.DataDir)
	defer o.Dial.Launcher.Close()
	step, done := c.Progress()
	o.Progress = step
	report := doctor.Test(ctx, o)
	done()
	if err := ctx.Err(); err != nil {
		return err
	}
	if asJSON {
		if err := c.PrintJSON(report); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(c.Out, "%s", c.Paint(c.Out, terminal.Bold, terminal.OneLine(report.Server)))
		if report.Name != "" {
			fmt.Fprintf(c.Out, "  %s %s, protocol %s, %d tools", terminal.OneLine(report.Name), terminal.OneLine(report.Version), report.Protocol, report.Tools)
		}
		fmt.Fprintln(c.Out)
		report.Write(c.Out, c.severity)
	}
	if !report.OK(strict) {
		return silentError{errors.New("the test failed")}
	}
	return nil
}

// known sets up the test of a configured server, with its login.
func (c *cli) known(ctx context.Context, name string, o *doctor.TestOptions) (done func(), err error) {
	opts := c.options(useWorkDir)
	cfg, err := c.load(opts)
	if err != nil {
		return nil, err
	}
	server, ok := cfg.Server(name)
	if !ok {
		return nil, noSuchServer(cfg, name)
	}
	o.Server = server
	if server.URL == "" {
		return func() {}, nil
	}
	a, err := c.Build(ctx, cfg, opts, telemetry.LevelError, launch.WithoutServers)
	if err != nil {
		return nil, err
	}
	logins := a.Logins()
	o.Dial.Authorize = func(ctx context.Context, r *http.Request, refused *mcpclient.HTTPError) error {
		return logins.Authorize(tool.WithCaller(ctx, tool.Local), server.LoginOf(tool.Local.ID), r, refused)
	}
	return func() {
		logins.Close()
		_ = a.Close() // only used for reading
	}, nil
}

// adHocServer returns the configuration of a server from the command line.
func adHocServer(args []string, url string, env, headers []string) (upstream.Config, error) {
	s := upstream.DefaultConfig()
	s.Name, s.URL = "server", url
	if url != "" {
		s.Transport = upstream.Auto
	}
	if len(args) > 0 {
		s.Transport, s.Command, s.Args = upstream.Stdio, args[0], args[1:]
	}
	for _, set := range []struct {
		what  string
		pairs []string
		into  *map[string]telemetry.Secret
	}{{"env", env, &s.Env}, {"headers", headers, &s.Headers}} {
		m, err := parsePairs(set.what, set.pairs)
		if err != nil {
			return s, err
		}
		for k, v := range m {
			if *set.into == nil {
				*set.into = map[string]telemetry.Secret{}
			}
			(*set.into)[k] = telemetry.Secret(v)
		}
	}
	return s, s.Validate()
}
