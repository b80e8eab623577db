package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"junctor/internal/clients"
)

func (c *cli) connectCommand() *cobra.Command {
	var (
		url, name, scope    string
		dryRun, undo, moves bool
	)
	cmd := &cobra.Command{
		Use: "connect CLIENT", Short: "Write junctor into a client's own configuration", Args: exactArgs(1),
		Long: `Write junctor into a client's configuration, keeping everything else in it and a
copy of the file beside it. With --move the client's other servers move into
junctor, so that the client sees them through it.

Known clients: ` + knownClients(),
		Example: "  junctor connect claude-desktop --dry-run\n  junctor connect cursor --move\n  junctor connect cursor --undo",
		RunE: func(_ *cobra.Command, args []string) error {
			client, err := clients.Lookup(args[0])
			if err != nil {
				return usageError{err}
			}
			if undo {
				change, err := client.Undo(c.machine(), clients.Scope(scope), name)
				if err != nil {
					return err
				}
				return c.change(client, change, dryRun, "taken out of")
			}
			want := clients.Connection{Name: name, URL: url, Scope: clients.Scope(scope), Replace: moves}
			if url == "" {
				self, err := os.Executable()
				if err != nil {
					return fmt.Errorf("find this program: %w", err)
				}
				want.Command, want.Args = self, []string{"mcp"}
				if c.flags.config != "" {
					want.Args = []string{"--config", c.flags.config, "mcp"}
				}
			}
			change, err := client.Connect(c.machine(), want)
			if err != nil {
				return err
			}
			if len(change.Moved) > 0 && !dryRun {
				if err := c.move(change.Moved); err != nil {
					return err
				}
			}
			return c.change(client, change, dryRun, "written into")
		},
	}
	f := cmd.Flags()
	f.StringVar(&url, "url", "", "connect to a running junctor at this address instead of starting one")
	f.StringVar(&name, "name", "", "the server's name in the client; default junctor")
	f.StringVar(&scope, "scope", string(clients.User), "user, project or local")
	f.BoolVar(&moves, "move", false, "move the client's other servers into junctor")
	f.BoolVar(&dryRun, "dry-run", false, "only show what would be written")
	f.BoolVar(&undo, "undo", false, "take junctor out again, and put moved servers back")
	return cmd
}

// move takes the client's servers over before they leave its file.
func (c *cli) move(moved []clients.Server) error {
	own, err := clients.Own(c.options(hereToo))
	if err != nil {
		return err
	}
	found := []clients.Found{{File: moved[0].File, Servers: moved}}
	take := choosable(clients.Compare(found, own), false)
	if len(take) == 0 {
		return nil
	}
	return c.takeOver(take, false)
}

func (c *cli) change(client clients.Client, change clients.Change, dryRun bool, done string) error {
	if !change.Changes() {
		c.note("%s has nothing to change.", change.File.Path)
		return nil
	}
	if dryRun {
		fmt.Fprintf(c.out, "%s would become:\n%s\n", change.File.Path, strings.TrimSpace(string(change.After)))
		return nil
	}
	if err := change.Apply(); err != nil {
		return err
	}
	c.note("junctor was %s %s.", done, change.File.Path)
	if change.Backup != "" {
		c.note("The file as it was is at %s.", change.Backup)
	}
	c.note("Restart %s to see it.", client.Name)
	return nil
}
