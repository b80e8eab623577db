package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"junctor/internal/clients"
	"junctor/internal/config"
	"junctor/internal/control"
	"junctor/internal/telemetry"
	"junctor/internal/tool"
)

// importer takes servers over from the other programs on this machine.
type importer struct{ app *App }

func (i importer) machine() clients.Machine {
	o := i.app.opts.Reload
	return clients.Machine{OS: runtime.GOOS, Home: o.Home, Project: o.WorkDir, Getenv: func(name string) string {
		if o.LookupEnv == nil {
			return ""
		}
		v, _ := o.LookupEnv(name)
		return v
	}}
}

func (i importer) candidates() ([]clients.Candidate, []string, error) {
	var own []config.Entry
	if path := i.app.config.Load().Place().Path; path != "" {
		text, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, nil, fmt.Errorf("read the configuration: %w", err)
		}
		if own, err = config.Entries(path, text); err != nil {
			return nil, nil, err
		}
	}
	found := clients.Discover(i.machine())
	var problems []string
	for _, f := range found {
		if f.Err != nil {
			problems = append(problems, f.Err.Error())
		}
		for _, s := range f.Skipped {
			problems = append(problems, f.File.Client+": "+s)
		}
	}
	return clients.Compare(found, own), problems, nil
}

// Found lists what there is, without anything secret.
func (i importer) Found(context.Context) ([]control.Candidate, []string, error) {
	found, problems, err := i.candidates()
	if err != nil {
		return nil, nil, err
	}
	var list []control.Candidate
	for _, c := range found {
		v := control.Candidate{
			Name: c.Original, As: c.As, State: string(c.State), Client: c.File.Client, Path: c.File.Path,
			Starts: starts(c.JSON), Notes: c.Notes,
		}
		for _, s := range c.Secrets {
			v.Secrets = append(v.Secrets, s.Key)
		}
		if c.State == clients.Differs {
			v.Notes = append(slices.Clone(v.Notes), "differs in "+strings.Join(c.Keys, ", "))
		}
		list = append(list, v)
	}
	return list, problems, nil
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

// Import takes over the named servers, their secrets into the .env beside the
// configuration.
func (i importer) Import(_ context.Context, names []string) ([]string, error) {
	found, _, err := i.candidates()
	if err != nil {
		return nil, err
	}
	take := slices.DeleteFunc(found, func(c clients.Candidate) bool {
		return !slices.Contains(names, c.As) || c.State != clients.New && c.State != clients.Differs
	})
	if len(take) == 0 || len(take) < len(names) {
		return nil, &tool.Error{Kind: tool.InvalidArguments, Msg: "not all of these servers can be taken over; look at the list again"}
	}
	servers := make([]clients.Server, len(take))
	for n, c := range take {
		servers[n] = c.Server
	}
	changed, vars, err := clients.UseVariables(servers, i.app.config.Load().Lookup)
	if err != nil {
		return nil, err
	}
	for n := range take {
		take[n].Server = changed[n]
	}
	if len(vars) > 0 {
		if err := i.keep(vars); err != nil {
			return nil, err
		}
	}
	if err := (settings{i.app}).edit(clients.Edits(take)...); err != nil {
		return nil, err
	}
	added := make([]string, len(take))
	for n, c := range take {
		added[n] = c.As
	}
	return added, nil
}

// keep puts secrets into the .env beside the configuration, for its owner's
// eyes alone.
func (i importer) keep(vars map[string]telemetry.Secret) error {
	place := config.Locate(i.app.opts.Reload)
	target := place.Path
	if target == "" {
		target = place.New
	}
	path := filepath.Join(filepath.Dir(target), ".env")
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
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return fmt.Errorf("write the secrets: %w", err)
	}
	return os.Rename(path+".new", path)
}
