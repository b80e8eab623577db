package clients

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
	Unset   []string // the variables that are in .env without a value
	Refused []error  // why a server was not taken, one for each
}

// TakeOver writes the candidates into Junctor's own file. Unless they are to
// stay as they are, secrets in plain text go into the .env beside it, readable
// by its owner alone, and variables stand in their place. Variables that have
// no value here, as those that a client asks for, get a line there to be
// filled in. A server that cannot be taken keeps no other from it.
func TakeOver(o config.Options, take []Candidate, asTheyAre bool) (TakenOver, error) {
	lookup := Variables(o)
	vars := map[string]telemetry.Secret{}
	var done TakenOver
	if !asTheyAre {
		var err error
		if take, vars, err = setVariables(lookup, take); err != nil {
			return done, err
		}
	}
	done.Secrets = len(vars)
	for _, c := range take {
		for _, name := range variablesIn(c.JSON) {
			_, ours := vars[name]
			if _, set := lookup(name); !set && !ours {
				vars[name] = ""
				done.Unset = append(done.Unset, name)
			}
		}
	}
	if len(vars) > 0 {
		if err := keep(o, vars); err != nil {
			return done, err
		}
	}
	for _, c := range take {
		path, err := config.Apply(o, config.Set(c.As, c.JSON))
		if _, bad := errors.AsType[*config.Error](err); bad {
			done.Refused = append(done.Refused, fmt.Errorf("%s: %w", c.As, withoutLines(err)))
			continue
		}
		if err != nil {
			return done, err
		}
		done.Path, done.Names = path, append(done.Names, c.As)
	}
	return done, nil
}

// Variables returns the lookup of the variables that the configuration uses.
func Variables(o config.Options) func(string) (string, bool) {
	if cfg, _, err := config.Load(o); err == nil {
		return cfg.Lookup
	}
	if o.LookupEnv != nil {
		return o.LookupEnv
	}
	return func(string) (string, bool) { return "", false }
}

// variablesIn lists the variables that a server cannot do without.
func variablesIn(server json.RawMessage) []string {
	var names []string
	mapStrings(server, func(_, s string) string {
		for _, match := range neededName.FindAllStringSubmatch(s, -1) {
			if !predefined.MatchString(match[0]) && !slices.Contains(names, match[1]) {
				names = append(names, match[1])
			}
		}
		return s
	})
	return names
}

// setVariables puts variables in the place of the candidates' secrets.
func setVariables(lookup func(string) (string, bool), take []Candidate) ([]Candidate, map[string]telemetry.Secret, error) {
	servers := make([]Server, len(take))
	for i, c := range take {
		servers[i] = c.Server
	}
	changed, vars, err := UseVariables(servers, lookup)
	if err != nil {
		return nil, nil, err
	}
	take = slices.Clone(take)
	for i := range take {
		take[i].Server = changed[i]
	}
	return take, vars, nil
}

// keep adds variables to the .env beside the configuration.
func keep(o config.Options, vars map[string]telemetry.Secret) error {
	place := config.Locate(o)
	path := filepath.Join(filepath.Dir(cmp.Or(place.Path, place.New)), ".env")
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
	if err := config.WriteSecrets(path, text); err != nil {
		return fmt.Errorf("write the secrets: %w", err)
	}
	return nil
}

// Starts is what the server runs, with its arguments, or the address that it
// is reached at. Secrets are masked.
func (s Server) Starts() string {
	var e struct {
		Command string   `json:"command"`
		Args    []string `json:"args"`
		URL     string   `json:"url"`
	}
	if json.Unmarshal(s.JSON, &e) != nil || e.Command == "" && e.URL == "" {
		return ""
	}
	words := append([]string{e.Command}, e.Args...)
	if e.URL != "" {
		words = []string{e.URL}
	}
	for i, word := range words {
		for _, secret := range s.Secrets {
			word = strings.ReplaceAll(word, secret.value.Reveal(), telemetry.Redacted)
		}
		words[i] = word
	}
	words = config.MaskArgs(words)
	for i, word := range words {
		if word == "" || strings.ContainsAny(word, " \t\n\"'") {
			words[i] = strconv.Quote(word)
		}
	}
	return strings.Join(words, " ")
}
