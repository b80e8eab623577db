package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"junctor/internal/clients"
	"junctor/internal/config"
	"junctor/internal/telemetry"
)

// machine is what decides where other programs keep their configurations.
func (c *cli) machine() clients.Machine {
	return clients.Machine{
		OS: runtime.GOOS, Home: c.home, Project: c.workDir,
		Getenv: func(name string) string { v, _ := c.lookup(name); return v },
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
		Use: "import [CLIENT…]", Short: "Take over servers from the clients found on this machine",
		Long: `Find the MCP servers in the configurations of other programs on this machine and
in this folder, show what is new, and take over what you pick. Nothing is run.

Known clients: ` + knownClients(),
		Example: "  junctor import --dry-run\n  junctor import cursor --all",
		RunE: func(_ *cobra.Command, args []string) error {
			picked, err := lookupClients(append(from, args...))
			if err != nil {
				return usageError{err}
			}
			found := clients.Discover(c.machine(), picked...)
			own, err := c.ownEntries()
			if err != nil {
				return err
			}
			candidates := clients.Compare(found, own)
			if asJSON {
				return c.printJSON(map[string]any{"found": found, "candidates": candidates})
			}
			c.showFound(found, candidates)
			take := choosable(candidates, includeDiffers)
			if len(take) == 0 || dryRun {
				if len(take) == 0 {
					c.note("Nothing new to take over.")
				}
				return nil
			}
			if !all {
				if take, err = c.pick(take); err != nil || len(take) == 0 {
					return err
				}
			}
			return c.takeOver(take, asIs)
		},
	}
	f := cmd.Flags()
	f.StringSliceVar(&from, "from", nil, "only from these clients")
	f.BoolVar(&all, "all", false, "take everything that is new, without asking")
	f.BoolVar(&dryRun, "dry-run", false, "only show what would be done")
	f.BoolVar(&includeDiffers, "replace", false, "those too that Junctor has under the same name with other settings")
	f.BoolVar(&asIs, "keep-secrets", false, "leave secrets in plain text where they are")
	f.BoolVar(&asJSON, "json", false, "show what was found, for programs; takes nothing")
	return cmd
}

func knownClients() string {
	var ids []string
	for _, k := range clients.Known() {
		ids = append(ids, k.ID)
	}
	return strings.Join(ids, ", ")
}

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

// ownEntries are the servers in Junctor's own file.
func (c *cli) ownEntries() ([]config.Entry, error) {
	place := config.Locate(c.options(hereToo))
	if place.Path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(place.Path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the configuration: %w", err)
	}
	return config.Entries(place.Path, text)
}

func (c *cli) showFound(found []clients.Found, candidates []clients.Candidate) {
	for _, f := range found {
		if f.Err != nil {
			c.note("%s: %s", f.File.Path, f.Err)
		}
		for _, s := range f.Skipped {
			c.note("%s: %s", f.File.Path, oneLine(s))
		}
	}
	if len(candidates) == 0 {
		c.note("No servers found. Looked at the files of: %s", knownClients())
		return
	}
	t := newTable("#", "SERVER", "STATE", "FROM", "STARTS", "NOTES")
	for i, k := range candidates {
		notes := slices.Clone(k.Notes)
		for _, s := range k.Secrets {
			notes = append(notes, fmt.Sprintf("%s is a secret in plain text; ${%s} would stand for it", s.Key, s.Variable))
		}
		if k.State == clients.Differs {
			notes = append(notes, "differs in "+strings.Join(k.Keys, ", "))
		}
		t.row(i+1, k.As, cell{string(k.State), candidateColour(k.State)}, k.File.Client, starts(k.JSON), strings.Join(notes, "; "))
	}
	c.printTable(t)
}

func candidateColour(s clients.State) colour {
	switch s {
	case clients.New:
		return green
	case clients.Differs:
		return yellow
	}
	return dim
}

// starts says in a few words what an entry runs or reaches. Arguments are left
// out: they may hold secrets.
func starts(entry json.RawMessage) string {
	var e struct{ Command, URL string }
	_ = json.Unmarshal(entry, &e) // an entry without either shows nothing
	if e.URL != "" {
		host, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(e.URL, "https://"), "http://"), "/")
		return host
	}
	return filepath.Base(e.Command)
}

func choosable(all []clients.Candidate, differing bool) []clients.Candidate {
	return slices.DeleteFunc(slices.Clone(all), func(k clients.Candidate) bool {
		return k.State != clients.New && (k.State != clients.Differs || !differing)
	})
}

// pick lets the person choose by number or name.
func (c *cli) pick(from []clients.Candidate) ([]clients.Candidate, error) {
	if !c.isInput {
		return nil, errors.New("nobody can be asked here; say --all, or --dry-run to look only")
	}
	var names []string
	for _, k := range from {
		names = append(names, k.As)
	}
	fmt.Fprintf(c.err, "Take over which? (all, none, or names: %s) ", strings.Join(names, " "))
	line, err := bufio.NewReader(c.in).ReadString('\n')
	if err != nil && line == "" {
		return nil, errors.New("no answer")
	}
	words := strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == ',' || r == '\n' || r == '\t' })
	if len(words) == 1 && words[0] == "all" {
		return from, nil
	}
	var out []clients.Candidate
	for _, w := range words {
		if w == "none" {
			return nil, nil
		}
		i := slices.IndexFunc(from, func(k clients.Candidate) bool { return k.As == w || k.Original == w })
		if n, err := strconv.Atoi(w); i < 0 && err == nil && n >= 1 && n <= len(from) {
			i = n - 1
		}
		if i < 0 {
			return nil, fmt.Errorf("%q is none of them", w)
		}
		out = append(out, from[i])
	}
	return out, nil
}

// takeOver writes the servers into Junctor's file and their secrets into .env
// beside it.
func (c *cli) takeOver(take []clients.Candidate, asIs bool) error {
	o := c.options(hereToo)
	var vars map[string]telemetry.Secret
	if !asIs {
		servers := make([]clients.Server, len(take))
		for i, k := range take {
			servers[i] = k.Server
		}
		taken := func(name string) (string, bool) { return c.lookup(name) }
		if cfg, _, err := config.Load(o); err == nil {
			taken = cfg.Lookup
		}
		changed, found, err := clients.UseVariables(servers, taken)
		if err != nil {
			return err
		}
		for i := range take {
			take[i].Server = changed[i]
		}
		vars = found
	}
	if len(vars) > 0 {
		place := config.Locate(o)
		target := place.Path
		if target == "" {
			target = place.New
		}
		if err := addDotenv(filepath.Join(filepath.Dir(target), ".env"), vars); err != nil {
			return err
		}
		c.note("%d secrets went into .env beside the configuration, readable by you alone.", len(vars))
	}
	path, err := config.Apply(o, clients.Edits(take)...)
	if err != nil {
		return err
	}
	var names []string
	for _, k := range take {
		names = append(names, k.As)
	}
	c.note("Took over %s into %s. Look at them: junctor servers list", strings.Join(names, ", "), path)
	return nil
}

func addDotenv(path string, vars map[string]telemetry.Secret) error {
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read %s: %w", path, err)
	}
	text, err := clients.AddDotenv(old, vars)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	tmp := path + ".new"
	if err := os.WriteFile(tmp, text, 0o600); err != nil {
		return fmt.Errorf("write the secrets: %w", err)
	}
	return os.Rename(tmp, path)
}
