package app

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"

	"junctor/internal/clients"
	"junctor/internal/control"
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
	own, err := clients.Own(i.app.opts.Reload)
	if err != nil {
		return nil, nil, err
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
	return clients.Compare(found, own, clients.Variables(i.app.opts.Reload)), problems, nil
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
			Starts: c.Starts(), Notes: c.Notes,
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
	done, err := clients.TakeOver(i.app.opts.Reload, take, false)
	if err != nil {
		return nil, err
	}
	if err := settings(i).reload(); err != nil {
		return nil, err
	}
	if len(done.Refused) > 0 {
		return nil, &tool.Error{Kind: tool.InvalidArguments, Msg: "not taken over: " + errors.Join(done.Refused...).Error()}
	}
	return done.Names, nil
}
