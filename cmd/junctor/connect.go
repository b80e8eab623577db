package main

import (
	"bufio"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"junctor/internal/clients"
	"junctor/internal/config"
	"junctor/internal/profile"
	"junctor/internal/terminal"
)

func (c *cli) connectCommand() *cobra.Command {
	var (
		address, name, scope string
		asProfile            string
		dryRun, undo, moves  bool
	)
	cmd := &cobra.Command{
		Use: "connect [CLIENT]", Short: "Add junctor to a client's configuration", Args: maxArgs(1), ValidArgs: clientIDs(),
		Long: `Add junctor to a client's configuration, keeping everything else in it and
a backup of the file. With --move the client's other servers move into
junctor, so that the client sees them through it.

Known clients: ` + knownClients(),
		Example: "  junctor connect claude-desktop --dry-run\n  junctor connect cursor --move\n  junctor connect cursor --undo",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				id, err := c.chooseClient()
				if err != nil || id == "" {
					return err
				}
				args = []string{id}
			}
			client, err := clients.Lookup(args[0])
			if err != nil {
				return usageError{err}
			}
			if undo {
				change, err := client.Undo(c.machine(), clients.Scope(scope), name)
				if err != nil {
					return err
				}
				return c.change(client, change, dryRun, "removed from")
			}
			want := clients.Connection{Name: name, URL: address, Scope: clients.Scope(scope), Replace: moves}
			if address == "" {
				if want.Command, want.Args, err = c.startedBy(); err != nil {
					return err
				}
				if asProfile != "" {
					want.Args = append(want.Args, "--profile", asProfile)
				}
			} else if asProfile != "" {
				if want.URL, err = withProfile(address, asProfile); err != nil {
					return usageError{err}
				}
			}
			return c.connect(client, want, dryRun)
		},
	}
	f := cmd.Flags()
	f.StringVar(&address, "url", "", "connect to a running junctor at this address instead of starting one")
	f.StringVar(&asProfile, "profile", "", "connect only to the servers and tools of this `profile`")
	f.StringVar(&name, "name", "", "the server's name in the client; default junctor")
	f.StringVar(&scope, "scope", string(clients.User), "user, project or local")
	_ = cmd.RegisterFlagCompletionFunc("scope", oneOf(string(clients.User), string(clients.Project), string(clients.Local)))
	f.BoolVar(&moves, "move", false, "move the client's other servers into junctor")
	f.BoolVar(&dryRun, "dry-run", false, "show what would be written, without writing it")
	f.BoolVar(&undo, "undo", false, "remove junctor again and restore the servers that were moved")
	return cmd
}

// withProfile returns the address of the MCP API with a profile.
func withProfile(address, name string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", err
	}
	q := u.Query()
	q.Set(profile.Parameter, name)
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// chooseClient lists the clients found on this machine and asks for one. It
// returns "" if there are none or the input is not a terminal.
func (c *cli) chooseClient() (string, error) {
	var ids []string
	for _, found := range clients.Discover(c.machine()) {
		if id := found.File.Client; !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		c.Note("No MCP client with servers found on this machine. Name one: junctor connect CLIENT, with CLIENT one of %s", knownClients())
		return "", nil
	}
	for _, id := range ids {
		fmt.Fprintln(c.Out, id)
	}
	if !c.IsInput {
		c.Note("Connect one of them with: junctor connect CLIENT")
		return "", nil
	}
	fmt.Fprint(c.Err, "Connect which client? ")
	line, err := bufio.NewReader(c.In).ReadString('\n')
	if err != nil && line == "" {
		return "", errors.New("no answer")
	}
	return strings.TrimSpace(line), nil
}

// startedBy returns the command with which a client starts this program.
// Clients use their own folder and environment, so the path of a configuration
// other than the user's default is added to args.
func (c *cli) startedBy() (command string, args []string, err error) {
	if command, err = os.Executable(); err != nil {
		return "", nil, fmt.Errorf("find this program: %w", err)
	}
	place := config.Locate(c.options(ignoreWorkDir))
	if place.Path != "" && place.Path != filepath.Join(c.userDir, "junctor", filepath.Base(place.Path)) {
		args = []string{"--config", place.Path}
	}
	command, args = throughNpx(runtime.GOOS, command, append(args, "mcp"))
	return command, args, nil
}

// throughNpx replaces a command in npx's cache by npx itself, because the cache
// is emptied periodically and never updated.
func throughNpx(goos, command string, args []string) (string, []string) {
	if !strings.Contains(filepath.ToSlash(command), "/_npx/") {
		return command, args
	}
	args = append([]string{"-y", "junctor"}, args...)
	if goos == "windows" { // npx is a script there, which only the shell can run
		return "cmd", append([]string{"/c", "npx"}, args...)
	}
	return "npx", args
}

func (c *cli) connect(client clients.Client, want clients.Connection, dryRun bool) error {
	change, err := client.Connect(c.machine(), want)
	if err != nil {
		return err
	}
	if !want.Replace {
		if change, err = c.offerMove(client, want, change, dryRun); err != nil {
			return err
		}
	}
	if len(change.Moved) > 0 {
		if err := c.move(change.Moved, dryRun); err != nil {
			return err
		}
	}
	return c.change(client, change, dryRun, "written into")
}

// offerMove asks whether to move the client's other servers into junctor. If
// the input is not a terminal, it prints which flag does that.
func (c *cli) offerMove(client clients.Client, want clients.Connection, change clients.Change, dryRun bool) (clients.Change, error) {
	want.Replace = true
	moving, err := client.Connect(c.machine(), want)
	if err != nil || len(moving.Moved) == 0 {
		return change, nil // connecting is possible even if moving is not
	}
	var names []string
	for _, s := range moving.Moved {
		names = append(names, terminal.OneLine(s.Original))
	}
	has := fmt.Sprintf("%s also has its own servers: %s.", client.Name, strings.Join(names, ", "))
	if !c.IsInput || dryRun {
		c.Note("%s Use --move to move them into junctor.", has)
		return change, nil
	}
	yes, err := c.Confirm(has + " Move them into junctor? [y/N] ")
	if err != nil || !yes {
		return change, err
	}
	return moving, nil
}

// move imports the client's servers into the configuration that the client's
// junctor will read. It must be called before they are removed from the
// client's file. With dryRun it shows what it would import.
func (c *cli) move(moved []clients.Server, dryRun bool) error {
	o := c.options(ignoreWorkDir)
	own, err := clients.Own(o)
	if err != nil {
		return err
	}
	found := []clients.Found{{File: moved[0].File, Servers: moved}}
	candidates := clients.RenameConflicts(clients.Compare(found, own, clients.Variables(o)), own)
	if dryRun {
		c.Note("These servers would be imported if their state is new:")
		c.showFound(found, candidates)
		return nil
	}
	take := choosable(candidates, false)
	if len(take) == 0 {
		return nil
	}
	return c.takeOver(o, take, false)
}

func (c *cli) change(client clients.Client, change clients.Change, dryRun bool, done string) error {
	if !change.Changes() {
		c.Note("%s: nothing to change.", change.File.Path)
		return nil
	}
	if dryRun {
		c.showChange(change)
		return nil
	}
	if err := change.Apply(); err != nil {
		return err
	}
	c.Note("junctor was %s %s.", done, change.File.Path)
	if change.Backup != "" {
		c.Note("The previous file is saved as %s.", change.Backup)
	}
	c.Note("Restart %s to see it.", client.Name)
	return nil
}

// showChange prints a diff of the change.
func (c *cli) showChange(change clients.Change) {
	switch {
	case change.Before == nil:
		fmt.Fprintf(c.Out, "%s would be created:\n", change.File.Path)
	case change.After == nil:
		fmt.Fprintf(c.Out, "%s would be removed:\n", change.File.Path)
	default:
		fmt.Fprintf(c.Out, "%s would change:\n", change.File.Path)
	}
	c.PrintDiff(change.File.Mask(change.Before), change.File.Mask(change.After))
}
