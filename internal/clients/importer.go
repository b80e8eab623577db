package clients

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"junctor/internal/config"
	"junctor/internal/control"
	"junctor/internal/tool"
)

// Importer imports servers from other programs on this machine, for the page.
type Importer struct {
	Reload config.Options
	Apply  func() error // applies the changed configuration file
}

func (i Importer) machine() Machine {
	o := i.Reload
	return Machine{OS: runtime.GOOS, Home: o.Home, Project: o.WorkDir, Getenv: func(name string) string {
		if o.LookupEnv == nil {
			return ""
		}
		v, _ := o.LookupEnv(name)
		return v
	}}
}

func (i Importer) candidates() ([]Candidate, []string, error) {
	own, err := Own(i.Reload)
	if err != nil {
		return nil, nil, err
	}
	found := Discover(i.machine())
	var problems []string
	for _, f := range found {
		if f.Err != nil {
			problems = append(problems, f.Err.Error())
		}
		for _, s := range f.Skipped {
			problems = append(problems, f.File.Client+": "+s)
		}
	}
	return Compare(found, own, Variables(i.Reload)), problems, nil
}

// Found returns the servers that can be imported, without secrets.
func (i Importer) Found(context.Context) ([]control.Candidate, []string, error) {
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
		if c.State == Differs {
			v.Notes = append(slices.Clone(v.Notes), "differs in "+strings.Join(c.Keys, ", "))
		}
		list = append(list, v)
	}
	return list, problems, nil
}

// Import imports the named servers and moves their secrets to the .env file
// next to the configuration.
func (i Importer) Import(_ context.Context, names []string) ([]string, error) {
	found, _, err := i.candidates()
	if err != nil {
		return nil, err
	}
	take := slices.DeleteFunc(found, func(c Candidate) bool {
		return !slices.Contains(names, c.As) || c.State != New && c.State != Differs
	})
	if len(take) == 0 || len(take) < len(names) {
		return nil, &tool.Error{Kind: tool.InvalidArguments, Msg: "not all of these servers can be imported; reload the list"}
	}
	done, err := TakeOver(i.Reload, take, false)
	if err != nil && len(done.Names) > 0 {
		err = fmt.Errorf("%w for %s only: %w", control.ErrWritten, strings.Join(done.Names, ", "), err)
	}
	if err != nil {
		return done.Names, err
	}
	if err := i.Apply(); err != nil {
		return done.Names, fmt.Errorf("%w but takes effect only when the file is valid: %w", control.ErrWritten, err)
	}
	if len(done.Refused) > 0 {
		return done.Names, &tool.Error{Kind: tool.InvalidArguments, Msg: "not imported: " + errors.Join(done.Refused...).Error(), Err: control.ErrWritten}
	}
	return done.Names, nil
}
