package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"junctor/internal/catalog"
	"junctor/internal/config"
	"junctor/internal/control"
	"junctor/internal/launch"
	"junctor/internal/terminal"
	"junctor/internal/tool"
	"junctor/internal/upstream"
)

func (c *cli) serversCommand() *cobra.Command {
	return parent("servers", "List, add, remove, enable, restart, test and sign in to MCP servers",
		c.serversList(), c.serversAdd(), c.serversRemove(), c.serversEnable(), c.serversDisable(), c.serversRestart(), c.serversLogs(), c.serversTest(), c.serversDiff(), c.serversApprove(), c.serversLogin(), c.serversLogout())
}

func (c *cli) serversList() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the servers and their state", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var list struct {
				Servers []control.Server `json:"servers"`
			}
			err := c.withGateway(cmd.Context(), func(g *launch.Gateway) error {
				defer g.ShowConnecting(cmd.Context())()
				return g.Get(cmd.Context(), "/api/servers", url.Values{"wait": {""}}, &list)
			})
			if err != nil {
				return err
			}
			if asJSON {
				return c.PrintJSON(list.Servers)
			}
			t := terminal.NewTable("SERVER", "STATE", "TOOLS", "TRANSPORT", "PROTOCOL", "ABOUT")
			for _, s := range list.Servers {
				about := cmp.Or(s.Reason, tool.Shorten(tool.OneLine(s.Description), 120), s.Title, s.Server)
				t.Row(s.Name, terminal.Cell{Text: string(s.State), Colour: stateColour(s.State)}, s.EnabledTools, s.Transport, s.Protocol, about)
			}
			c.PrintTable(t)
			for _, s := range list.Servers {
				c.printProblems(s)
			}
			if len(list.Servers) == 1 && list.Servers[0].Transport == upstream.InProcess {
				c.Note("\n" + noServersYet)
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// noServersYet explains what to do if there is only the built-in server.
const noServersYet = "Only the built-in server is configured. Import servers from your MCP clients with junctor import, or add one with junctor servers add NAME -- COMMAND"

// lastLines is the number of lines printed of a failed server's stderr.
const lastLines = 5

// printProblems prints the last output of a disconnected server, and the
// problems of its tools.
func (c *cli) printProblems(s control.Server) {
	if s.State == upstream.Disconnected && len(s.Stderr) > 0 {
		c.Note("\n%s wrote to stderr:", s.Name)
		for _, line := range s.Stderr[max(0, len(s.Stderr)-lastLines):] {
			c.Note("  %s", terminal.OneLine(line))
		}
	}
	if len(s.Problems) > 0 {
		c.Note("\n%s lists invalid tools:", s.Name)
		for _, p := range s.Problems {
			c.Note("  %s", terminal.OneLine(p))
		}
	}
}

func stateColour(s upstream.State) terminal.Colour {
	switch s {
	case upstream.Connected:
		return terminal.Green
	case upstream.Disabled:
		return terminal.Dim
	case upstream.Disconnected:
		return terminal.Red
	}
	return terminal.Yellow
}

func (c *cli) serversAdd() *cobra.Command {
	var (
		env, headers []string
		description  string
		cwd          string
		proxy        bool
		replace      bool
		noWait       bool
		rest         openAPIFlags
	)
	cmd := &cobra.Command{
		Use: "add NAME (URL | --openapi DOCUMENT | -- COMMAND [ARGS…])", Short: "Add a server to the configuration and connect to it", Args: minArgs(1),
		Example: `  junctor servers add fs -- npx -y @modelcontextprotocol/server-filesystem ~/notes
  junctor servers add github https://api.githubcopilot.com/mcp/ --header 'Authorization=Bearer ${GITHUB_TOKEN}'
  junctor servers add shop --openapi https://shop.example/openapi.json --include 'GET /**' --credential 'apiKey=${SHOP_KEY}'`,
		RunE: func(cmd *cobra.Command, args []string) error {
			name := args[0]
			if !tool.ValidServer(name) {
				return usageError{fmt.Errorf("invalid server name %q; use 1 to %d characters of A-Z a-z 0-9 _ -", name, tool.MaxServerName)}
			}
			entry := map[string]any{}
			if rest.document != "" {
				if len(args) > 1 {
					return usageError{fmt.Errorf("--openapi describes the server; remove %q", args[1])}
				}
				if err := rest.fill(entry); err != nil {
					return usageError{err}
				}
			} else if len(args) < 2 {
				return usageError{errors.New("give a URL, --openapi DOCUMENT or -- COMMAND (see junctor servers add --help)")}
			} else if u, err := url.Parse(args[1]); err == nil && (u.Scheme == "http" || u.Scheme == "https") {
				if len(args) > 2 {
					return wrongUsage(cmd, "unexpected argument %q after the URL", args[2])
				}
				entry["url"] = args[1]
			} else if strings.Contains(args[1], "://") {
				return usageError{fmt.Errorf("invalid server URL %q; it must start with http:// or https://", args[1])}
			} else {
				entry["command"] = args[1]
				if len(args) > 2 {
					entry["args"] = args[2:]
				}
			}
			for key, pairs := range map[string][]string{"env": env, "headers": headers} {
				m, err := parsePairs(key, pairs)
				if err != nil {
					return usageError{err}
				}
				if len(m) > 0 {
					entry[key] = m
				}
			}
			for key, value := range map[string]string{"description": description, "cwd": cwd} {
				if value != "" {
					entry[key] = value
				}
			}
			if proxy {
				entry["proxy"] = true
			}
			raw, err := json.Marshal(entry)
			if err != nil {
				return err
			}
			o := c.options(useWorkDir)
			before, _, err := config.Load(o)
			if err != nil {
				before = nil // Apply reports the error if it matters
			}
			write, exists := config.Add, fmt.Errorf("a server named %q already exists; use --replace to replace it", name)
			if replace {
				write = config.Set
			} else if before != nil {
				if _, taken := before.Server(name); taken {
					return exists
				}
			}
			path, err := config.Apply(o, write(name, raw))
			if errors.Is(err, config.ErrServerExists) {
				return exists
			}
			if err != nil {
				return err
			}
			c.Note("Added %q to %s.", name, path)
			return c.firstConnection(cmd.Context(), before, name, !noWait)
		},
	}
	f := cmd.Flags()
	f.StringArrayVarP(&env, "env", "e", nil, "an environment variable for the program, `NAME=VALUE`; ${VAR} is taken from your environment")
	f.StringArrayVarP(&headers, "header", "H", nil, "an HTTP header for the server, `NAME=VALUE`")
	f.StringVar(&description, "description", "", "one line about the server")
	f.StringVar(&cwd, "cwd", "", "the `folder` in which the program starts")
	f.BoolVar(&proxy, "proxy", false, "make it available at /api/mcp/NAME/proxy")
	f.BoolVar(&replace, "replace", false, "replace an existing server of that name")
	f.BoolVar(&noWait, "no-wait", false, "do not connect to the server")
	rest.add(f)
	return cmd
}

func parsePairs(what string, pairs []string) (map[string]string, error) {
	m := map[string]string{}
	for _, p := range pairs {
		k, v, ok := strings.Cut(p, "=")
		if !ok && what == "headers" {
			k, v, ok = strings.Cut(p, ":")
			v = strings.TrimSpace(v)
		}
		if !ok || k == "" {
			return nil, fmt.Errorf("%q is not NAME=VALUE", p)
		}
		m[k] = v
	}
	return m, nil
}

func (c *cli) serversRemove() *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Remove a server from the configuration", Args: oneArg, ValidArgsFunction: c.completeServer,
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := config.Apply(c.options(useWorkDir), config.Remove(args[0]))
			if errors.Is(err, config.ErrNoServer) {
				if cfg, _, loadErr := config.Load(c.completionOptions()); loadErr == nil {
					return noSuchServer(cfg, args[0])
				}
			}
			if err != nil {
				return err
			}
			c.Note("Removed %q from %s.", args[0], path)
			return nil
		},
	}
}

// noSuchServer returns an error that lists the servers that exist.
func noSuchServer(cfg *config.Config, name string) error {
	var names []string
	for _, s := range cfg.Servers {
		names = append(names, s.Name)
	}
	if len(names) == 0 {
		return fmt.Errorf("no server named %q: the configuration has none (junctor servers add)", name)
	}
	if near := catalog.Nearest(name, names, 3); len(near) > 0 {
		return fmt.Errorf("no server named %q; did you mean %s?", name, strings.Join(near, " or "))
	}
	slices.Sort(names)
	return fmt.Errorf("no server named %q; there are %s", name, strings.Join(names, ", "))
}
