package clients

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"junctor/internal/config"
	"junctor/internal/telemetry"
)

// Own returns the servers in Junctor's own file, for [Compare]; none when
// there is no file yet.
func Own(o config.Options) ([]config.Entry, error) {
	place := config.Locate(o)
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

// TakenOver is what TakeOver did.
type TakenOver struct {
	Path    string   // the file that has the servers now
	Names   []string // theirs
	Secrets int      // how many secrets went into .env beside it
}

// TakeOver writes the candidates into Junctor's own file. Unless they are to
// stay as they are, secrets in plain text go into the .env beside it, readable
// by its owner alone, and variables stand in their place.
func TakeOver(o config.Options, take []Candidate, asTheyAre bool) (TakenOver, error) {
	var done TakenOver
	if !asTheyAre {
		vars, err := setVariables(o, take)
		if err != nil {
			return done, err
		}
		if len(vars) > 0 {
			if err := keep(o, vars); err != nil {
				return done, err
			}
		}
		done.Secrets = len(vars)
	}
	for _, c := range take {
		done.Names = append(done.Names, c.As)
	}
	var err error
	done.Path, err = config.Apply(o, Edits(take)...)
	return done, err
}

// setVariables puts variables in the place of the candidates' secrets.
func setVariables(o config.Options, take []Candidate) (map[string]telemetry.Secret, error) {
	taken := func(name string) (string, bool) { return "", false }
	if cfg, _, err := config.Load(o); err == nil {
		taken = cfg.Lookup
	} else if o.LookupEnv != nil {
		taken = o.LookupEnv
	}
	servers := make([]Server, len(take))
	for i, c := range take {
		servers[i] = c.Server
	}
	changed, vars, err := UseVariables(servers, taken)
	if err != nil {
		return nil, err
	}
	for i := range take {
		take[i].Server = changed[i]
	}
	return vars, nil
}

// keep adds variables to the .env beside the configuration.
func keep(o config.Options, vars map[string]telemetry.Secret) error {
	place := config.Locate(o)
	target := place.Path
	if target == "" {
		target = place.New
	}
	path := filepath.Join(filepath.Dir(target), ".env")
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read %s: %w", path, err)
	}
	text, err := AddDotenv(old, vars)
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

// Starts says in a few words what the server runs or reaches. Arguments are
// left out: they may hold secrets.
func (s Server) Starts() string {
	var e struct{ Command, URL string }
	_ = json.Unmarshal(s.JSON, &e) // an entry without either shows nothing
	if e.URL != "" {
		host, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(e.URL, "https://"), "http://"), "/")
		return host
	}
	return filepath.Base(e.Command)
}
