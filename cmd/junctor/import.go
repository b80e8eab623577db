package main

import (
	"bufio"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"junctor/internal/clients"
	"junctor/internal/config"
	"junctor/internal/terminal"
)

// machine returns the facts that determine where other programs store their
// configurations.
func (c *cli) machine() clients.Machine {
	return clients.Machine{
		OS: runtime.GOOS, Home: c.home, Project: c.workDir,
		Getenv: func(name string) string { v, _ := c.Lookup(name); return v },
	}
}

func (c *cli) importCommand() *cobra.Command {
	var (
		from           []string
		all, dryRun    bool
		asJSON, asIs   bool
		includeDiffers bool
	)
	cmd := &cobra.Command{
		Use: "import [CLIENT…]", Short: "Import servers from the MCP clients on this machine", ValidArgs: clientIDs(),
		Long: `Find the MCP servers in the configurations of other programs on this machine and
in this folder, show what is new, and import what you choose. Nothing is run.

Known clients: ` + knownClients(),
		Example: "  junctor import --dry-run\n  junctor import cursor --all",
		RunE: func(_ *cobra.Command, args []string) error {
			picked, err := lookupClients(append(from, args...))
			if err != nil {
				return usageError{err}
			}
			found := clients.Discover(c.machine(), picked...)
			own, err := clients.Own(c.options(useWorkDir))
			if err != nil {
				return err
			}
			candidates := clients.Compare(found, own, clients.Variables(c.options(useWorkDir)))
			if asJSON {
				return c.PrintJSON(map[string]any{"found": found, "candidates": candidates})
			}
			c.showFound(found, candidates)
			take := choosable(candidates, includeDiffers)
			if len(take) == 0 || dryRun {
				if len(take) == 0 {
					c.Note("Nothing new to import.")
				}
				return nil
			}
			if !all {
				if take, err = c.pick(candidates, take); err != nil || len(take) == 0 {
					return err
				}
			}
			return c.takeOver(c.options(useWorkDir), take, asIs)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&from, "from", nil, "only from these clients")
	_ = cmd.RegisterFlagCompletionFunc("from", oneOf(clientIDs()...))
	f.BoolVar(&all, "all", false, "import everything that is new, without asking")
	f.BoolVar(&dryRun, "dry-run", false, "show what would be done, without doing it")
	f.BoolVar(&includeDiffers, "replace", false, "also replace servers that exist with other settings")
	f.BoolVar(&asIs, "keep-secrets", false, "keep secrets in the configuration file instead of moving them to .env")
	f.BoolVar(&asJSON, "json", false, "print what was found as JSON; imports nothing")
	return cmd
}

func clientIDs() (ids []string) {
	for _, k := range clients.Known() {
		ids = append(ids, k.ID)
	}
	return ids
}

func knownClients() string { return strings.Join(clientIDs(), ", ") }

func lookupClients(names []string) ([]clients.Client, error) {
	var out []clients.Client
	for _, n := range names {
		k, err := clients.Lookup(n)
		if err != nil {
			return nil, err
		}
		out = append(out, k)
	}
	return out, nil
}

func (c *cli) showFound(found []clients.Found, candidates []clients.Candidate) {
	for _, f := range found {
		if f.Err != nil {
			c.Note("%s: %s", f.File.Path, strings.TrimPrefix(f.Err.Error(), f.File.Path+": "))
		}
		for _, s := range f.Skipped {
			c.Note("%s: %s", f.File.Path, terminal.OneLine(s))
		}
	}
	if len(candidates) == 0 {
		c.Note("No servers found. Searched the files of: %s", knownClients())
		return
	}
	t := terminal.NewTable("#", "SERVER", "STATE", "FROM", "STARTS", "NOTES")
	for i, k := range candidates {
		notes := slices.Clone(k.Notes)
		for _, s := range k.Secrets {
			notes = append(notes, fmt.Sprintf("%s is a secret in plain text; it would be replaced by ${%s}", s.Key, s.Variable))
		}
		if k.State == clients.Differs {
			notes = append(notes, "differs in "+strings.Join(k.Keys, ", "))
		}
		t.Row(i+1, k.As, terminal.Cell{Text: string(k.State), Colour: candidateColour(k.State)}, k.File.Client, k.Starts(), strings.Join(notes, "; "))
	}
	c.PrintTable(t)
}

func candidateColour(s clients.State) terminal.Colour {
	switch s {
	case clients.New:
		return terminal.Green
	case clients.Differs:
		return terminal.Yellow
	}
	return terminal.Dim
}

func choosable(all []clients.Candidate, differing bool) []clients.Candidate {
	return slices.DeleteFunc(slices.Clone(all), func(k clients.Candidate) bool {
		return k.State != clients.New && (k.State != clients.Differs || !differing)
	})
}

// pick asks the user to choose some of from, by name or by their number in
// shown.
func (c *cli) pick(shown, from []clients.Candidate) ([]clients.Candidate, error) {
	if !c.IsInput {
		return nil, errors.New("not a terminal; use --all, or --dry-run to see what would be imported")
	}
	var names []string
	for _, k := range from {
		names = append(names, k.As)
	}
	fmt.Fprintf(c.Err, "Import which? (all, none, names or numbers: %s) ", strings.Join(names, " "))
	line, err := bufio.NewReader(c.In).ReadString('\n')
	if err != nil && line == "" {
		return nil, errors.New("no answer")
	}
	var out []clients.Candidate
	for _, w := range strings.FieldsFunc(line, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		switch w {
		case "all":
			return from, nil
		case "none":
			return nil, nil
		}
		if n, err := strconv.Atoi(w); err == nil && n >= 1 && n <= len(shown) {
			w = shown[n-1].As
		}
		i := slices.IndexFunc(from, func(k clients.Candidate) bool { return k.As == w || k.Original == w })
		if i < 0 {
			return nil, fmt.Errorf("no such server: %q; choose from %s", w, strings.Join(names, ", "))
		}
		out = append(out, from[i])
	}
	return out, nil
}

// takeOver writes the servers into Junctor's file and prints what it did.
func (c *cli) takeOver(o config.Options, take []clients.Candidate, asTheyAre bool) error {
	done, err := clients.TakeOver(o, take, asTheyAre)
	if err != nil {
		return err
	}
	if done.Secrets > 0 {
		c.Note("%s moved to .env next to the configuration file (readable only by you).", terminal.Count(done.Secrets, "secret"))
	}
	if len(done.Unset) > 0 {
		c.Note("Fill in these values in .env next to the configuration file: %s", strings.Join(done.Unset, ", "))
	}
	if len(done.Names) > 0 {
		c.Note("Imported %s into %s. See them with: junctor servers list", strings.Join(done.Names, ", "), done.Path)
	}
	if len(done.Refused) > 0 {
		return fmt.Errorf("import failed: %w", errors.Join(done.Refused...))
	}
	return nil
}
